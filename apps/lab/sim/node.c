/* node.c - a node: the loop of a daemon over a port of the network.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/sim/net.h"

#include <stdlib.h>
#include <string.h>

#include "apps/lab/array.h"
#include "engine/base/bytes.h"
#include "engine/base/limits.h"
#include "engine/base/params.h"
#include "engine/wire/wire.h"
#include "pmd/lcores/handoff.h"

enum {
	/* length of the queue below the scheduler, as ports keep it */
	QUEUE_NS = 20000,
	TX_BURST = 16,
	SLEEP_NS = 100000000,
	TYPE_AT = offsetof(struct sw_header, type),
	/* shorter than the interval that a loop calls a gap in polling */
	GAP_NS = 400000,
};

/* Source of payloads that frames do not carry. */
static const uint8_t zeros[SW_PAYLOAD_MAX] __attribute__((aligned(64)));

static struct sw_sim_node *node_of(struct sw_port *port)
{
	return (struct sw_sim_node *)port;
}

static uint32_t port_rx(
	struct sw_port *port, struct sw_rx_frame *out, uint32_t max)
{
	struct sw_sim_node *n = node_of(port);
	uint32_t i = 0;

	for (; i < max && n->first && !n->is_deaf; i++) {
		struct sw_sim_frame *f = n->first;

		n->first = f->next;
		if (!n->first)
			n->last = &n->first;
		n->n_inbox--;
		n->taken[i] = f;
		out[i] = (struct sw_rx_frame){.data = f->head,
			.payload = f->has_body ? f->body : zeros,
			.endpoint = (uint16_t)((f->to_udp - SW_SIM_UDP) %
					       SW_LOOP_ENGINES),
			.is_marked = f->is_marked,
			.len = f->len,
			.from = {.ip = sw_ip_v4(sw_sim_ip(f->from)),
				.udp = f->from_udp}};
	}
	n->n_taken = i;
	return i;
}

static void port_rx_release(struct sw_port *port)
{
	struct sw_sim_node *n = node_of(port);

	while (n->n_taken)
		sw_sim_frame_free(n->net, n->taken[--n->n_taken]);
}

static uint64_t frame_ns(const struct sw_sim_node *n)
{
	uint64_t bytes = n->port.max_payload + SW_HEAD_BYTES + SW_SIM_WIRE;

	return bytes * n->up->ns_q16 >> 16;
}

static uint32_t port_tx_room(struct sw_port *port)
{
	struct sw_sim_node *n = node_of(port);
	uint64_t now = n->net->now_ns;
	uint64_t busy = sw_max64(n->up->free_ns, now);

	n->n_sent = 0;
	n->room =
		busy > now + QUEUE_NS
			? 0
			: (uint32_t)sw_min64(
				  (now + QUEUE_NS - busy) / (frame_ns(n) + 1) +
					  1,
				  TX_BURST);
	return n->room;
}

static void send(struct sw_sim_node *n, const struct sw_tx_frame *t)
{
	struct sw_sim_net *net = n->net;
	bool is_bare = net->is_bare && sw_type_is_data(t->head[TYPE_AT]);
	struct sw_sim_frame *f =
		sw_sim_frame_new(net, is_bare ? 0 : t->payload_len);

	f->from = n->index;
	f->to = (uint32_t)t->to.ip.low - sw_sim_ip(0);
	f->from_udp =
		(uint16_t)(SW_SIM_UDP + t->endpoint + t->way * SW_LOOP_ENGINES);
	f->to_udp = t->to.udp;
	f->len = SW_HEAD_BYTES + t->payload_len;
	f->bytes = f->len + SW_SIM_HEADS;
	f->has_body = !is_bare;
	memcpy(f->head, t->head, SW_HEAD_BYTES);
	if (t->payload_len && !is_bare)
		memcpy(f->body, t->payload, t->payload_len);
	if (f->to < net->n_nodes)
		sw_sim_send(net, n->up, f);
	else
		sw_sim_frame_free(net, f);
}

static void port_tx(
	struct sw_port *port, const struct sw_tx_frame *frames, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		send(node_of(port), &frames[i]);
	node_of(port)->n_sent += n;
}

static void port_tx_flush(struct sw_port *port)
{
	(void)port;
}

static const struct sw_port_ops port_ops = {.rx = port_rx,
	.rx_release = port_rx_release,
	.tx_room = port_tx_room,
	.tx = port_tx,
	.tx_flush = port_tx_flush};

uint32_t sw_sim_node_payload(const struct sw_sim_node *n)
{
	return sw_payload_within(
		n->up->most_bytes - SW_SIM_HEADS - SW_HEAD_BYTES);
}

void sw_sim_node_open(struct sw_sim_node *n, uint32_t n_lcores,
	bool has_loopback, uint64_t stop_gap_ns)
{
	n->port = (struct sw_port){.ops = &port_ops,
		.name = n->name,
		.ip = sw_ip_v4(sw_sim_ip(n->index)),
		.udp = SW_SIM_UDP,
		.max_payload = sw_sim_node_payload(n),
		.rate_bit_s = n->net->port_bit_s / n_lcores,
		.link_bit_s =
			n->net->is_paced ? n->up->rate_bit_s / n_lcores : 0};
	n->ports[0] = &n->port;
	n->n_ports = 1;
	if (has_loopback) {
		n->loopback = sw_loopback_open();
		if (!n->loopback)
			abort();
		n->ports[n->n_ports++] = sw_loopback_port(n->loopback);
	}
	n->loop = sw_lab_array(1, sizeof(*n->loop));
	n->last = &n->first;
	sw_loop_init(
		n->loop, n->ports, n->n_ports, stop_gap_ns, n->net->now_ns);
	n->wake_ns = UINT64_MAX;
}

void sw_sim_node_lcores(
	struct sw_sim_node *n, uint32_t n_lcores, uint64_t stop_gap_ns)
{
	n->n_lcores = n_lcores;
	for (uint32_t i = 1; i < n_lcores; i++) {
		struct sw_sim_node *core = sw_sim_core(n, i);

		memcpy(core->name, n->name, sizeof(core->name));
		core->net = n->net;
		core->index = n->index;
		core->up = n->up;
		sw_sim_node_open(core, n_lcores, false, stop_gap_ns);
	}
}

static void wake_at(struct sw_sim_node *n, uint64_t at_ns)
{
	uint32_t first = 0;

	if (at_ns >= n->wake_ns)
		return;
	n->wake_ns = at_ns;
	/* A frame may wake the node before a timer, which is then set again. */
	for (uint32_t i = 0; i < SW_SIM_QUEUED; i++) {
		if (n->queued_ns[i] == at_ns)
			return;
		if (n->queued_ns[i] < n->queued_ns[first])
			first = i;
	}
	n->queued_ns[first] = at_ns;
	sw_sim_put(&n->net->events, at_ns, SW_SIM_WAKE,
		(uint32_t)(n - n->net->nodes));
}

/* Wake @n now.  If no other event precedes, skip the event queue. */
static void wake_now(struct sw_sim_node *n)
{
	struct sw_sim_net *net = n->net;

	if (net->is_running && !net->ready && net->now_ns < n->wake_ns &&
		!sw_sim_has(&net->events, net->now_ns)) {
		n->wake_ns = net->now_ns;
		net->ready = n;
		return;
	}
	wake_at(n, net->now_ns);
}

void sw_sim_node_poke(struct sw_sim_node *n)
{
	if (n->last_ns <= n->net->now_ns)
		wake_now(n);
	else
		wake_at(n, n->last_ns);
}

static void take(struct sw_sim_node *n, struct sw_sim_frame *f)
{
	if (n->n_lcores) {
		uint32_t endpoint = (f->to_udp - SW_SIM_UDP) % SW_LOOP_ENGINES;

		if (endpoint < n->n_lcores)
			n = sw_sim_core(n, endpoint);
	}
	if (!n->loop || n->n_inbox == n->net->ring) {
		n->n_full++;
		sw_sim_frame_free(n->net, f);
		return;
	}
	f->next = NULL;
	*n->last = f;
	n->last = &f->next;
	n->n_inbox++;
	sw_sim_node_poke(n);
}

/* Return whether the core is without a CPU at @now, until stall_end_ns.  Draw
 * the next stall when one has ended. */
static bool is_stalled(struct sw_sim_node *n, uint64_t now)
{
	while (n->stall_end_ns <= now) {
		n->stall_ns =
			n->stall_end_ns + 1 +
			sw_sim_straggler_draw(n->net->stall_gap, &n->stall_rng);
		n->stall_end_ns =
			n->stall_ns +
			sw_sim_straggler_draw(n->net->stall, &n->stall_rng);
	}
	return n->stall_ns <= now;
}

/* Let a turn wait for the end of a stall.  The core has polled until the stall
 * began, so only the stall is a gap in polling. */
static bool wait_for_cpu(struct sw_sim_node *n, uint64_t now)
{
	if (!is_stalled(n, now))
		return false;
	sw_loop_rest(
		n->loop, n->stall_ns - sw_min64(n->stall_ns, n->turned_ns));
	n->turned_ns = n->stall_end_ns;
	n->last_ns = n->stall_end_ns;
	n->wake_ns = UINT64_MAX;
	wake_at(n, n->last_ns);
	return true;
}

static void turn(struct sw_sim_node *n)
{
	struct sw_sim_net *net = n->net;
	uint64_t now = net->now_ns, at = UINT64_MAX, wait, busy;
	uint32_t did;

	if (net->stall && wait_for_cpu(n, now))
		return;
	/* The real core polls all the time, so its last poll found nothing,
	 * even though this node has skipped such turns. */
	if (now - n->turned_ns > GAP_NS) {
		n->is_deaf = true;
		sw_loop_turn(n->loop, now);
		n->is_deaf = false;
	}
	n->turned_ns = now;
	did = sw_loop_turn(n->loop, now);
	n->wake_ns = UINT64_MAX;
	n->last_ns = now + net->turn_ns + did * net->frame_ns;
	if (n->step)
		at = n->step(n->ctx, now);
	wait = sw_loop_wait(n->loop, now, SLEEP_NS);
	at = sw_min64(at, now + wait);
	/* The loop filled the port's room, so it may have more to send. */
	if (n->n_sent >= n->room) {
		busy = n->up->free_ns;
		at = sw_min64(at, busy > QUEUE_NS ? busy - QUEUE_NS : 0);
	}
	if (n->first || (did && n->loopback))
		at = now;
	at = sw_max64(at, n->last_ns);
	sw_loop_rest(n->loop, at - now);
	wake_at(n, at);
}

static void wake(struct sw_sim_node *n)
{
	uint64_t now = n->net->now_ns;

	for (uint32_t i = 0; i < SW_SIM_QUEUED; i++)
		if (n->queued_ns[i] == now)
			n->queued_ns[i] = 0;
	if (n->wake_ns == now)
		turn(n);
}

void sw_sim_nodes_init(struct sw_sim_net *net)
{
	net->take = take;
	net->wake = wake;
	net->turn = turn;
}
