/* plain.c - jobs without the engine: a ring and a parameter server over TCP.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A flow carries messages of whole segments, in an order that both ends know.
 * Progress is two counters: messages that the sender released, and messages
 * received.
 */
#include "apps/lab/sim/plain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/lab/array.h"
#include "apps/lab/sim/sim.h"
#include "apps/lab/sim/tcp.h"
#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/params.h"

enum {
	HEADS = 70, /* Ethernet with FCS, IPv4, TCP with timestamps */
	ACK_BYTES = 70,
	QUEUE_NS = 50000, /* a sender keeps its own link's queue short */
	BUCKET_BYTES = 25 << 20,
	SPLIT_BYTES = 4000000,
	FLOW_BITS = 24,
};

/* Interval at which a node checks the timers of its flows. */
static const uint64_t WATCH_NS = 10 * SW_MS;

/* Messages that a flow carries in each round, as numbers of segments. */
struct list {
	uint32_t *segments, *tensors; /* tensors: only of a server */
	uint32_t n;
};

struct flow {
	struct sw_sim_plain *plain;
	uint32_t index, from, to; /* from, to: nodes */
	uint32_t receiver;        /* rank, or index of a server */
	const struct list *list;
	/* NULL: both ends are on the same node */
	struct sw_sim_tcp *tcp;
	uint64_t n_released; /* messages that may be sent */
	uint64_t limit;      /* total segments of these messages */
	/* next_end: segment that ends the next message */
	uint64_t n_received, next_end;
};

/* State of a node: its turns of sending, and its timers in the network. */
struct host {
	struct sw_sim_plain *plain;
	uint32_t node, *flows, n_flows, next;
	uint32_t pump_timer, watch_timer;
	bool is_pumping;
};

struct bucket {
	uint32_t first, n; /* indices in the order of pushes */
};

struct member {
	struct sw_sim_agent *agent;
	uint32_t timer;
	uint64_t n_pushed;   /* tensors pushed in all rounds */
	uint32_t *n_missing; /* by tensor: parts that have not arrived */
	uint64_t n_finished; /* completed buckets */
};

struct sw_sim_plain {
	struct sw_sim_job *job;
	bool is_ring;
	uint32_t frame_bytes, base; /* base: offset of the flows' numbers */
	struct flow *flows;
	uint32_t n_flows;
	struct list *lists;
	uint32_t n_lists;
	struct host *hosts;
	uint32_t n_hosts;
	struct member *members;
	uint32_t *order; /* tensors in the order of their pushes */
	struct bucket *buckets;
	uint32_t n_buckets;
	void (*other)(
		void *ctx, struct sw_sim_node *n, const struct sw_sim_frame *f);
	void *other_ctx;
};

static struct sw_sim_net *net_of(struct sw_sim_plain *p)
{
	return &p->job->sim->net;
}

/* Set a timer of the network.  The network cannot move a timer that is already
 * set. */
static void arm(struct sw_sim_plain *p, uint32_t timer, uint64_t at_ns)
{
	sw_sim_put(&net_of(p)->events, at_ns, SW_SIM_TIMER, timer);
}

static uint32_t add_timer(struct sw_sim_plain *p,
	uint64_t (*fire)(void *ctx, uint64_t now_ns), void *ctx)
{
	uint32_t timer = net_of(p)->n_timers;

	sw_sim_timer_add(net_of(p), net_of(p)->now_ns, fire, ctx);
	return timer;
}

static uint64_t segments_of(const struct sw_sim_plain *p, uint64_t bytes)
{
	return sw_max64(
		(bytes + p->frame_bytes - HEADS - 1) / (p->frame_bytes - HEADS),
		1);
}

/* --- flows --- */

static void receive(struct flow *f, uint64_t n_segments);

static void emit(struct flow *f, uint32_t from, uint32_t to, uint32_t bytes,
	const struct sw_sim_segment *segment)
{
	struct sw_sim_net *net = net_of(f->plain);
	struct sw_sim_frame *frame =
		sw_sim_frame_other(net, from, to, bytes, segment);

	/* so that flows take different paths */
	frame->from_udp = (uint16_t)f->index;
	frame->other.flow = f->plain->base | f->index;
	sw_sim_send(net, net->nodes[from].up, frame);
}

static bool send_one(struct flow *f)
{
	struct sw_sim_segment s = {.sent_ns = net_of(f->plain)->now_ns};

	if (!f->tcp->n_lost && f->tcp->next == f->limit)
		return false;
	if (!sw_sim_tcp_send(f->tcp, s.sent_ns, &s.number))
		return false;
	emit(f, f->from, f->to, f->plain->frame_bytes, &s);
	return true;
}

/* Let the flows of a node send in turn, while its link's queue is short. */
static uint64_t pump(void *ctx, uint64_t now_ns)
{
	struct host *h = ctx;
	const struct sw_sim_link *up = net_of(h->plain)->nodes[h->node].up;
	uint32_t n_idle = 0;

	h->is_pumping = true;
	while (n_idle < h->n_flows) {
		struct flow *f = &h->plain->flows[h->flows[h->next]];

		if (up->free_ns > now_ns + QUEUE_NS)
			return up->free_ns - QUEUE_NS / 2;
		n_idle = send_one(f) ? 0 : n_idle + 1;
		h->next = (h->next + 1) % h->n_flows;
	}
	h->is_pumping = false;
	return UINT64_MAX;
}

static void wake(struct host *h)
{
	if (h->is_pumping)
		return;
	h->is_pumping = true;
	arm(h->plain, h->pump_timer, net_of(h->plain)->now_ns);
}

static uint64_t watch(void *ctx, uint64_t now_ns)
{
	struct host *h = ctx;

	for (uint32_t i = 0; i < h->n_flows; i++)
		sw_sim_tcp_tick(h->plain->flows[h->flows[i]].tcp, now_ns);
	if (h->n_flows)
		wake(h);
	return now_ns + WATCH_NS;
}

static struct host *host_of(struct sw_sim_plain *p, uint32_t node)
{
	uint32_t i = 0;

	while (i < p->n_hosts && p->hosts[i].node != node)
		i++;
	if (i == p->n_hosts)
		p->hosts[p->n_hosts++] = (struct host){.plain = p,
			.node = node,
			.flows = sw_lab_array(p->n_flows, sizeof(uint32_t))};
	return &p->hosts[i];
}

/* Release the next message. */
static void release(struct flow *f)
{
	f->limit += f->list->segments[f->n_released++ % f->list->n];
	if (f->tcp)
		wake(host_of(f->plain, f->from));
	else
		receive(f, f->limit);
}

static void take(
	void *ctx, struct sw_sim_node *n, const struct sw_sim_frame *frame)
{
	struct sw_sim_plain *p = ctx;
	uint32_t index = frame->other.flow & ((1u << FLOW_BITS) - 1);
	struct sw_sim_segment ack = frame->other;
	struct flow *f = &p->flows[index];

	if ((frame->other.flow ^ index) != p->base) {
		p->other(p->other_ctx, n, frame);
		return;
	}
	if (n->index == f->from && ack.is_ack) {
		sw_sim_tcp_ack(f->tcp, ack.number, ack.next, ack.has_echo,
			ack.sent_ns, p->job->sim->net.now_ns);
		wake(host_of(p, f->from));
		return;
	}
	ack.is_ack = true;
	ack.next = sw_sim_tcp_receive(f->tcp, ack.number);
	ack.has_echo = frame->is_marked;
	emit(f, f->to, f->from, ACK_BYTES, &ack);
	receive(f, ack.next);
}

/* --- a ring --- */

static uint64_t steps_of(const struct sw_sim_plain *p)
{
	return 2 * (uint64_t)(p->job->n_agents - 1);
}

static void finish(struct member *m, uint32_t tensor)
{
	struct sw_sim_agent *a = m->agent;

	sw_sim_agent_done(a, tensor);
	arm(a->job->plain, m->timer, a->job->sim->net.now_ns);
}

/* Send what the ring allows.  Message g of a flow is step g % steps of bucket g
 * / steps.  The first step of a bucket needs the agent's own tensors; each
 * later step needs the previous message. */
static void turn_ring(struct sw_sim_plain *p, uint32_t rank)
{
	struct member *m = &p->members[rank];
	struct flow *out = &p->flows[rank];
	struct flow *in =
		&p->flows[(rank + p->job->n_agents - 1) % p->job->n_agents];
	uint64_t steps = steps_of(p);

	for (;;) {
		uint64_t g = out->n_released, bucket = g / steps;
		const struct bucket *b = &p->buckets[bucket % p->n_buckets];
		uint64_t need = bucket / p->n_buckets * p->job->n_tensors +
				b->first + b->n;

		if (m->n_pushed < need || (g % steps && in->n_received < g))
			break;
		release(out);
	}
	while (m->n_finished < in->n_received / steps) {
		const struct bucket *b =
			&p->buckets[m->n_finished++ % p->n_buckets];

		for (uint32_t i = 0; i < b->n; i++)
			finish(m, p->order[b->first + i]);
	}
}

/* --- a parameter server --- */

static struct flow *flow_up(
	struct sw_sim_plain *p, uint32_t rank, uint32_t server)
{
	return &p->flows[rank * p->job->n_servers + server];
}

static struct flow *flow_down(
	struct sw_sim_plain *p, uint32_t server, uint32_t rank)
{
	return &p->flows[(p->job->n_agents + rank) * p->job->n_servers +
			 server];
}

/* Return the parts of tensors that all agents have pushed. */
static void return_parts(struct sw_sim_plain *p, uint32_t server)
{
	uint64_t n = UINT64_MAX;

	for (uint32_t r = 0; r < p->job->n_agents; r++)
		n = sw_min64(n, flow_up(p, r, server)->n_received);
	for (uint32_t r = 0; r < p->job->n_agents; r++)
		while (flow_down(p, server, r)->n_released < n)
			release(flow_down(p, server, r));
}

static void take_part(struct flow *f, uint64_t message)
{
	struct member *m = &f->plain->members[f->receiver];
	uint32_t tensor = f->list->tensors[message % f->list->n];

	if (!--m->n_missing[tensor])
		finish(m, tensor);
}

static bool is_split(const struct sw_sim_plain *p, uint32_t tensor)
{
	return p->job->n_elems[tensor] * 4 >= SPLIT_BYTES;
}

static bool is_on(
	const struct sw_sim_plain *p, uint32_t tensor, uint32_t server)
{
	return is_split(p, tensor) || tensor % p->job->n_servers == server;
}

/* --- both --- */

static bool is_up(const struct flow *f)
{
	return f->index < f->plain->job->n_agents * f->plain->job->n_servers;
}

static void receive(struct flow *f, uint64_t n_segments)
{
	struct sw_sim_plain *p = f->plain;
	uint64_t from = f->n_received;

	while (n_segments >=
			f->next_end +
				f->list->segments[f->n_received % f->list->n] &&
		f->n_received < f->n_released)
		f->next_end += f->list->segments[f->n_received++ % f->list->n];
	if (f->n_received == from)
		return;
	if (p->is_ring)
		turn_ring(p, f->receiver);
	else if (is_up(f))
		return_parts(p, f->receiver);
	else
		for (; from < f->n_received; from++)
			take_part(f, from);
}

static void push(struct sw_sim_agent *a, uint32_t tensor)
{
	struct sw_sim_plain *p = a->job->plain;
	struct member *m = &p->members[a->rank];
	uint32_t n = p->job->n_servers;

	m->n_pushed++;
	if (p->is_ring) {
		turn_ring(p, a->rank);
		return;
	}
	m->n_missing[tensor] = is_split(p, tensor) ? n : 1;
	for (uint32_t s = 0; s < n; s++)
		if (is_on(p, tensor, s))
			release(flow_up(p, a->rank, s));
}

static uint64_t compute(void *ctx, uint64_t now_ns)
{
	return sw_sim_agent_compute(ctx, now_ns);
}

void sw_sim_plain_start(struct sw_sim_job *j)
{
	struct sw_sim_plain *p = j->plain;

	for (uint32_t r = 0; r < j->n_agents; r++)
		p->members[r].timer = add_timer(p, compute, &j->agents[r]);
	for (uint32_t i = 0; i < p->n_hosts; i++) {
		struct host *h = &p->hosts[i];

		h->pump_timer = add_timer(p, pump, h);
		h->watch_timer = add_timer(p, watch, h);
	}
}

void sw_sim_plain_count(
	const struct sw_sim_plain *p, struct sw_sim_job_result *r)
{
	for (uint32_t i = 0; i < p->n_flows; i++) {
		if (!p->flows[i].tcp)
			continue;
		r->n_again += p->flows[i].tcp->n_again;
		r->n_timeouts += p->flows[i].tcp->n_timeouts;
	}
}

/* --- its start --- */

static void put_in_order(struct sw_sim_plain *p)
{
	const struct sw_sim_job *j = p->job;
	uint32_t n = 0;

	p->order = sw_lab_array(j->n_tensors, sizeof(*p->order));
	for (uint32_t l = j->n_layers; l > 0; l--) {
		const struct sw_sim_layer *layer = &j->layers[l - 1];

		for (uint32_t t = layer->first + layer->n; t > layer->first;
			t--)
			p->order[n++] = t - 1;
	}
}

static void open_flow(struct sw_sim_plain *p, uint32_t i, uint32_t from,
	uint32_t receiver, uint32_t to, const struct list *list)
{
	struct flow *f = &p->flows[i];
	struct host *h;

	*f = (struct flow){.plain = p,
		.index = i,
		.from = from,
		.to = to,
		.receiver = receiver,
		.list = list};
	if (from == to)
		return;
	f->tcp = sw_lab_array(1, sizeof(*f->tcp));
	sw_sim_tcp_init(f->tcp, true);
	h = host_of(p, from);
	h->flows[h->n_flows++] = i;
}

static uint32_t node_of(const struct sw_sim_job *j, uint32_t rank)
{
	return j->agents[rank].node->index;
}

static void open_ring(struct sw_sim_plain *p)
{
	struct sw_sim_job *j = p->job;
	uint64_t steps = steps_of(p), bytes = 0;
	uint32_t first = 0;

	p->n_lists = 1;
	p->lists = sw_lab_array(1, sizeof(*p->lists));
	p->buckets = sw_lab_array(j->n_tensors, sizeof(*p->buckets));
	p->lists[0].segments = sw_lab_array(
		j->n_tensors * steps, sizeof(*p->lists[0].segments));
	for (uint32_t i = 0; i < j->n_tensors; i++) {
		bytes += j->n_elems[p->order[i]] * 4;
		if (bytes < BUCKET_BYTES && i + 1 < j->n_tensors)
			continue;
		p->buckets[p->n_buckets++] =
			(struct bucket){first, i + 1 - first};
		for (uint32_t s = 0; s < steps; s++)
			p->lists[0].segments[p->lists[0].n++] =
				(uint32_t)segments_of(p, bytes / j->n_agents);
		first = i + 1;
		bytes = 0;
	}
	p->n_flows = j->n_agents;
	p->flows = sw_lab_array(p->n_flows, sizeof(*p->flows));
	p->hosts = sw_lab_array(j->n_agents, sizeof(*p->hosts));
	for (uint32_t r = 0; r < j->n_agents; r++)
		open_flow(p, r, node_of(j, r), (r + 1) % j->n_agents,
			node_of(j, (r + 1) % j->n_agents), &p->lists[0]);
}

static void fill_list(struct sw_sim_plain *p, uint32_t server)
{
	const struct sw_sim_job *j = p->job;
	struct list *l = &p->lists[server];

	l->segments = sw_lab_array(j->n_tensors, sizeof(*l->segments));
	l->tensors = sw_lab_array(j->n_tensors, sizeof(*l->tensors));
	for (uint32_t i = 0; i < j->n_tensors; i++) {
		uint32_t t = p->order[i];
		uint64_t bytes = j->n_elems[t] * 4;

		if (!is_on(p, t, server))
			continue;
		l->tensors[l->n] = t;
		l->segments[l->n++] = (uint32_t)segments_of(
			p, is_split(p, t) ? bytes / j->n_servers : bytes);
	}
}

static void open_servers(struct sw_sim_plain *p)
{
	struct sw_sim_job *j = p->job;

	p->n_lists = j->n_servers;
	p->lists = sw_lab_array(p->n_lists, sizeof(*p->lists));
	p->n_flows = 2 * j->n_agents * j->n_servers;
	p->flows = sw_lab_array(p->n_flows, sizeof(*p->flows));
	p->hosts = sw_lab_array(j->n_agents + j->n_servers, sizeof(*p->hosts));
	for (uint32_t s = 0; s < j->n_servers; s++)
		fill_list(p, s);
	for (uint32_t r = 0; r < j->n_agents; r++)
		for (uint32_t s = 0; s < j->n_servers; s++) {
			uint32_t i = r * j->n_servers + s;

			open_flow(p, i, node_of(j, r), s, j->servers[s],
				&p->lists[s]);
			open_flow(p, i + j->n_agents * j->n_servers,
				j->servers[s], r, node_of(j, r), &p->lists[s]);
		}
}

static int open_job(struct sw_sim *s, struct sw_sim_job *j)
{
	struct sw_sim_plain *p = j->plain = sw_lab_array(1, sizeof(*p));

	j->push = push;
	p->job = j;
	p->is_ring = j->desc->transport == SW_SIM_RING;
	p->frame_bytes = s->desc->least_mtu + 18;
	p->base = (uint32_t)(j - s->jobs + 1) << FLOW_BITS;
	p->members = sw_lab_array(j->n_agents, sizeof(*p->members));
	for (uint32_t r = 0; r < j->n_agents; r++) {
		p->members[r].agent = &j->agents[r];
		p->members[r].n_missing =
			sw_lab_array(j->n_tensors, sizeof(uint32_t));
	}
	if (p->is_ring && j->n_agents == 1) {
		snprintf(s->why, sizeof(s->why),
			"[job %s] transport: a ring needs two agents",
			j->desc->label);
		return SW_ECONF;
	}
	put_in_order(p);
	if (p->is_ring)
		open_ring(p);
	else
		open_servers(p);
	p->other = s->net.other;
	p->other_ctx = s->net.other_ctx;
	s->net.other = take;
	s->net.other_ctx = p;
	return 0;
}

int sw_sim_plain_open(struct sw_sim *s)
{
	int err = 0;

	for (uint32_t i = 0; i < s->n_jobs && !err; i++)
		if (s->jobs[i].desc->transport != SW_SIM_SUMWIRE)
			err = open_job(s, &s->jobs[i]);
	return err;
}

void sw_sim_plain_close(struct sw_sim_plain *p)
{
	if (!p)
		return;
	for (uint32_t i = 0; i < p->n_flows; i++)
		free(p->flows[i].tcp);
	for (uint32_t i = 0; i < p->n_hosts; i++)
		free(p->hosts[i].flows);
	for (uint32_t i = 0; i < p->n_lists; i++) {
		free(p->lists[i].segments);
		free(p->lists[i].tensors);
	}
	for (uint32_t r = 0; r < p->job->n_agents; r++)
		free(p->members[r].n_missing);
	free(p->flows);
	free(p->hosts);
	free(p->lists);
	free(p->members);
	free(p->order);
	free(p->buckets);
	free(p);
}
