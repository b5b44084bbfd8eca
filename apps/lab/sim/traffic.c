/* traffic.c - other traffic: senders and receivers of its flows.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/sim/traffic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/lab/array.h"
#include "apps/lab/sim/tcp.h"
#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/params.h"

enum {
	ACK_BYTES = 70,
	TCP_HEADS = 70, /* Ethernet with FCS, IPv4, TCP with timestamps */
	/* interval at which a sender checks its timer and queue */
	TICK_NS = 50000,
	BATCH = 16,
	QUEUE_NS = 20000, /* as ports keep it, because engines share the link */
};

struct flow {
	struct sw_sim_traffic *traffic;
	const struct sw_sim_desc_traffic *desc;
	uint32_t index, from, to, frame_bytes;
	struct sw_sim_tcp *tcp; /* NULL: a flow of datagrams */
	uint64_t rng, phase_end_ns, received;
	uint32_t send_timer;
	bool is_on, is_sending; /* is_sending: send_timer is set */
};

struct sw_sim_traffic {
	struct sw_sim_net *net;
	const struct sw_sim_desc *desc;
	struct flow *flows;
	uint32_t n;
	uint64_t begun_ns, jitter_ns;
};

static void emit(struct flow *f, uint32_t from, uint32_t to, uint32_t bytes,
	const struct sw_sim_segment *segment)
{
	struct sw_sim_frame *frame =
		sw_sim_frame_other(f->traffic->net, from, to, bytes, segment);

	/* so that flows take different paths */
	frame->from_udp = (uint16_t)f->index;
	frame->is_plain = !f->desc->has_ecn;
	frame->other.flow = f->index;
	sw_sim_send(f->traffic->net, f->traffic->net->nodes[from].up, frame);
}

static uint64_t end_of(const struct flow *f)
{
	return f->desc->stop_ns ? f->traffic->begun_ns + f->desc->stop_ns
				: UINT64_MAX;
}

/* --- TCP --- */

static void send_some(struct flow *f)
{
	struct sw_sim_net *net = f->traffic->net;
	struct sw_sim_segment s = {.sent_ns = net->now_ns};

	while (net->now_ns < end_of(f) &&
		net->nodes[f->from].up->free_ns < net->now_ns + QUEUE_NS &&
		sw_sim_tcp_send(f->tcp, net->now_ns, &s.number))
		emit(f, f->from, f->to, f->frame_bytes, &s);
}

static uint64_t send_late(void *ctx, uint64_t now_ns)
{
	struct flow *f = ctx;

	(void)now_ns;
	f->is_sending = false;
	send_some(f);
	return UINT64_MAX;
}

/* Send within the time of BATCH frames on the slowest link, as hosts do that
 * handle frames in batches.  Without this delay each segment would reach a full
 * queue just when a frame has left it. */
static void send_soon(struct flow *f)
{
	struct sw_sim_net *net = f->traffic->net;

	if (f->is_sending)
		return;
	f->is_sending = true;
	sw_sim_put(&net->events,
		net->now_ns + 1 + sw_sim_below(&f->rng, f->traffic->jitter_ns),
		SW_SIM_TIMER, f->send_timer);
}

static uint64_t tick(void *ctx, uint64_t now_ns)
{
	struct flow *f = ctx;

	sw_sim_tcp_tick(f->tcp, now_ns);
	send_some(f);
	return now_ns < end_of(f) ? now_ns + TICK_NS : UINT64_MAX;
}

static void receive(struct flow *f, const struct sw_sim_frame *frame)
{
	struct sw_sim_segment ack = frame->other;

	ack.is_ack = true;
	ack.next = sw_sim_tcp_receive(f->tcp, ack.number);
	ack.has_echo = frame->is_marked && f->desc->has_ecn;
	emit(f, f->to, f->from, ACK_BYTES, &ack);
}

/* --- datagrams --- */

/* Draw a time from half of @mean_ns to one and a half. */
static uint64_t draw(struct flow *f, uint64_t mean_ns)
{
	return mean_ns / 2 + sw_sim_below(&f->rng, mean_ns + 1);
}

static uint64_t shoot(void *ctx, uint64_t now_ns)
{
	struct flow *f = ctx;
	const struct sw_sim_segment s = {.sent_ns = now_ns};

	if (now_ns >= end_of(f))
		return UINT64_MAX;
	if (now_ns >= f->phase_end_ns) {
		f->is_on = !f->is_on || !f->desc->off_ns;
		f->phase_end_ns = now_ns + draw(f, f->is_on ? f->desc->on_ns
							    : f->desc->off_ns);
	}
	if (!f->is_on)
		return f->phase_end_ns;
	emit(f, f->from, f->to, f->frame_bytes, &s);
	return now_ns + (f->frame_bytes + SW_SIM_WIRE - SW_SIM_HEADS) * 8 *
				SW_S / f->desc->rate_bit_s;
}

/* --- all traffic --- */

static void take(
	void *ctx, struct sw_sim_node *n, const struct sw_sim_frame *frame)
{
	struct sw_sim_traffic *t = ctx;
	struct flow *f = &t->flows[frame->other.flow];
	const struct sw_sim_segment *s = &frame->other;

	if (!f->tcp) {
		f->received += frame->bytes - SW_SIM_HEADS;
	} else if (n->index == f->to && !s->is_ack) {
		receive(f, frame);
	} else if (s->is_ack) {
		sw_sim_tcp_ack(f->tcp, s->number, s->next, s->has_echo,
			s->sent_ns, t->net->now_ns);
		send_soon(f);
	}
}

static void add_flow(struct sw_sim_traffic *t,
	const struct sw_sim_desc_traffic *d, uint32_t from, uint32_t to)
{
	struct flow *f = &t->flows[t->n];

	*f = (struct flow){.traffic = t,
		.desc = d,
		.index = t->n++,
		.from = from,
		.to = to,
		.frame_bytes = t->desc->least_mtu + 18,
		.rng = t->net->seed ^ (uint64_t)t->n << 40};
	if (d->kind != SW_SIM_UDP_ON_OFF) {
		f->tcp = sw_lab_array(1, sizeof(*f->tcp));
		sw_sim_tcp_init(f->tcp, d->kind == SW_SIM_CUBIC);
	}
	/* Flows that begin together must not run in lockstep. */
	sw_sim_timer_add(t->net,
		t->begun_ns + d->start_ns + sw_sim_below(&f->rng, TICK_NS),
		f->tcp ? tick : shoot, f);
	if (!f->tcp)
		return;
	f->is_sending = true;
	f->send_timer = t->net->n_timers;
	sw_sim_timer_add(t->net, t->begun_ns + d->start_ns, send_late, f);
}

struct list {
	uint32_t nodes[SW_SIM_NODES_MAX], n;
};

static int open_one(struct sw_sim_traffic *t,
	const struct sw_sim_desc_traffic *d, struct list *from, struct list *to,
	char *why)
{
	from->n = sw_sim_find_all(t->desc, d->from, from->nodes);
	to->n = sw_sim_find_all(t->desc, d->to, to->nodes);
	if (t->n + (uint64_t)from->n * d->n_flows > SW_SIM_TIMERS / 2) {
		snprintf(why, SW_SIM_TEXT, "[traffic %s] more than %d flows",
			d->label, SW_SIM_TIMERS / 2);
		return SW_ECONF;
	}
	for (uint32_t k = 0; k < d->n_flows; k++)
		for (uint32_t i = 0; i < from->n; i++) {
			uint32_t other = to->nodes[(i + k) % to->n];

			if (from->nodes[i] == other) {
				snprintf(why, SW_SIM_TEXT,
					"[traffic %s] %s would send to itself",
					d->label, t->desc->names[other]);
				return SW_ECONF;
			}
			add_flow(t, d, from->nodes[i], other);
		}
	return 0;
}

int sw_sim_traffic_open(struct sw_sim_net *net, const struct sw_sim_desc *d,
	struct sw_sim_traffic **out, char *why)
{
	struct sw_sim_traffic *t;
	struct list *lists;
	int err = 0;

	*out = NULL;
	if (!d->n_traffic)
		return 0;
	*out = t = sw_lab_array(1, sizeof(*t));
	lists = sw_lab_array(2, sizeof(*lists));
	t->flows = sw_lab_array(SW_SIM_TIMERS / 2, sizeof(*t->flows));
	t->net = net;
	t->desc = d;
	t->begun_ns = net->now_ns;
	for (uint32_t i = 0; i < net->n_links; i++)
		t->jitter_ns = sw_max64(
			t->jitter_ns, BATCH * (d->least_mtu + SW_SIM_WIRE) *
						      net->links[i].ns_q16 >>
					      16);
	net->other = take;
	net->other_ctx = t;
	for (uint32_t i = 0; i < d->n_traffic && !err; i++)
		err = open_one(t, &d->traffic[i], &lists[0], &lists[1], why);
	free(lists);
	return err;
}

static uint64_t bytes_of(const struct flow *f)
{
	return f->tcp ? f->tcp->received * (f->frame_bytes - TCP_HEADS)
		      : f->received;
}

void sw_sim_traffic_count(
	const struct sw_sim_traffic *t, struct sw_sim_result *r)
{
	uint64_t now = t->net->now_ns;

	r->n_traffic = t->desc->n_traffic;
	for (uint32_t i = 0; i < r->n_traffic; i++) {
		const struct sw_sim_desc_traffic *d = &t->desc->traffic[i];
		struct sw_sim_traffic_result *out = &r->traffic[i];
		uint64_t from = t->begun_ns + d->start_ns, bytes = 0;
		uint64_t to = now;

		if (d->stop_ns)
			to = sw_min64(to, t->begun_ns + d->stop_ns);
		memcpy(out->name, d->label, sizeof(out->name));
		for (uint32_t k = 0; k < t->n; k++) {
			const struct flow *f = &t->flows[k];

			if (f->desc != d)
				continue;
			bytes += bytes_of(f);
			out->n_again += f->tcp ? f->tcp->n_again : 0;
			out->n_timeouts += f->tcp ? f->tcp->n_timeouts : 0;
		}
		if (to > from)
			out->goodput_bit_s =
				(uint64_t)((unsigned __int128)bytes * 8 * SW_S /
					   (to - from));
	}
}

void sw_sim_traffic_close(struct sw_sim_traffic *t)
{
	for (uint32_t i = 0; t && i < t->n; i++)
		free(t->flows[i].tcp);
	if (t)
		free(t->flows);
	free(t);
}
