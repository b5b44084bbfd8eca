/* net.c - a simulated network: nodes, their ports, virtual time.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/sim/net.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/params.h"
#include "engine/wire/wire.h"

/* TURN_NS: a turn of a polling loop. */
enum { TURN_NS = 500, QUEUE_NS = 20000 };

uint32_t sim_ip(uint32_t i)
{
	return 0x0a000001 + i;
}

/* --- the port --- */

static struct sim_node *node_of(struct sw_port *port)
{
	return (struct sim_node *)port;
}

static uint32_t port_rx(
	struct sw_port *port, struct sw_rx_frame *out, uint32_t max)
{
	struct sim_node *n = node_of(port);
	uint32_t most = (uint32_t)sw_min64(max, n->net->rx_burst), i = 0;

	for (; i < most && n->first; i++) {
		struct sim_frame *f = n->first;

		n->first = f->next;
		if (!n->first)
			n->last = &n->first;
		n->n_inbox--;
		n->taken[i] = f;
		out[i] = (struct sw_rx_frame){.data = f->bytes,
			.payload = f->bytes + SW_HEAD_BYTES,
			.endpoint = (uint16_t)((f->to_udp - SIM_UDP) %
					       SIM_ENDPOINTS),
			.landed = (uint16_t)n->lcore,
			.is_marked = f->is_marked,
			.len = f->len,
			.from = {.ip = sw_ip_v4(sim_ip(f->from)),
				.udp = f->from_udp}};
	}
	n->n_taken = i;
	return i;
}

static void port_rx_release(struct sw_port *port)
{
	struct sim_node *n = node_of(port);

	while (n->n_taken)
		free(n->taken[--n->n_taken]);
}

static uint32_t port_tx_room(struct sw_port *port)
{
	struct sim_node *n = node_of(port);

	/* Model a queue of about 20 us, as real ports keep it. */
	n = &n->net->nodes[n->main];
	return n->sent_until_ns > n->net->now_ns + QUEUE_NS ? 0
							    : n->net->tx_burst;
}

/* Does the frame belong to another lcore, which handed it over through a ring?
 * As behind a NIC, a repeated result may be overwritten while it waits there,
 * and its receiver drops it. So the oracle checks frames as engines send them,
 * and only the sums check handed frames. */
static bool is_handed(const struct sim_node *n, uint16_t endpoint)
{
	return n->net->nodes[n->main].owners[endpoint] != n->lcore;
}

static void look(struct sim_node *n, const struct sw_tx_frame *t)
{
	if (n->net->on_tx && !is_handed(n, t->endpoint))
		n->net->on_tx(n->net->ctx, n->main, t);
}

static void send(struct sim_node *n, const struct sw_tx_frame *t)
{
	struct sim_net *net = n->net;
	uint32_t len = SW_HEAD_BYTES + t->payload_len;
	struct sim_frame *f = malloc(sizeof(*f) + len);

	if (!f)
		abort();
	look(n, t);
	n = &net->nodes[n->main];
	*f = (struct sim_frame){.from = n->index,
		.to = (uint32_t)t->to.ip.low - sim_ip(0),
		.from_udp = (uint16_t)(SIM_UDP + t->endpoint +
				       t->way * SIM_ENDPOINTS),
		.to_udp = t->to.udp,
		.len = len,
		.is_leaving = true,
		.payload = t->is_stable ? t->payload : NULL};
	memcpy(f->bytes, t->head, SW_HEAD_BYTES);
	if (t->payload_len && !t->is_stable)
		memcpy(f->bytes + SW_HEAD_BYTES, t->payload, t->payload_len);
	n->sent_until_ns =
		sw_max64(n->sent_until_ns, net->now_ns) +
		(len + SIM_WIRE_BYTES + 0ULL) * 8 * SW_S / n->rate_bits_s;
	f->at_ns = n->sent_until_ns +
		   (net->faults.gather_ns
				   ? sim_below(&net->rng, net->faults.gather_ns)
				   : 0);
	sim_heap_put(net, f);
}

static void port_tx(
	struct sw_port *port, const struct sw_tx_frame *frames, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		send(node_of(port), &frames[i]);
}

static void port_tx_flush(struct sw_port *port)
{
	(void)port;
}

/* Show the oracle also the frames that a node sends to itself, and those that
 * an lcore without a queue pair hands to the lcore that has it. */
static void watched_tx(
	struct sw_port *port, const struct sw_tx_frame *frames, uint32_t n)
{
	struct sim_watch *watch = (struct sim_watch *)(uintptr_t)port->ops;

	for (uint32_t i = 0; i < n; i++)
		look(watch->node, &frames[i]);
	watch->theirs->tx(port, frames, n);
}

static void watch(
	struct sim_watch *watch, struct sim_node *n, struct sw_port *port)
{
	*watch = (struct sim_watch){
		.ops = *port->ops, .theirs = port->ops, .node = n};
	watch->ops.tx = watched_tx;
	port->ops = &watch->ops;
}

static void open_loopback(struct sim_node *n)
{
	sw_loopback_close(n->loopback);
	n->loopback = sw_loopback_open();
	if (!n->loopback)
		abort();
	watch(&n->loopback_watch, n, &n->loopback->port);
	n->ports[SIM_LOOPBACK] = &n->loopback->port;
}

static const struct sw_port_ops port_ops = {.rx = port_rx,
	.rx_release = port_rx_release,
	.tx_room = port_tx_room,
	.tx = port_tx,
	.tx_flush = port_tx_flush};

/* --- nodes --- */

void sim_net_init(struct sim_net *net, uint64_t seed)
{
	memset(net, 0, sizeof(*net));
	net->rng = seed;
	net->latency_ns = 5 * SW_US;
	net->rx_burst = SW_RX_BURST;
	net->tx_burst = 8;
	net->now_ns = SW_S;
	net->steering = SW_STEER_HANDOFF;
}

static void empty_inbox(struct sim_node *n)
{
	while (n->first) {
		struct sim_frame *f = n->first;

		n->first = f->next;
		free(f);
	}
	n->last = &n->first;
	n->n_inbox = 0;
}

void sim_net_fini(struct sim_net *net)
{
	for (uint32_t i = 0; i < net->n_nodes; i++) {
		empty_inbox(&net->nodes[i]);
		sw_handoff_close(&net->nodes[i].handoff);
		sw_loopback_close(net->nodes[i].loopback);
	}
	while (net->n_heap)
		free(sim_heap_take(net));
	while (net->n_held)
		free(net->held[--net->n_held]);
	free(net->heap);
}

struct sim_node *sim_net_add(struct sim_net *net, uint32_t max_payload)
{
	struct sim_node *n = &net->nodes[net->n_nodes];

	n->net = net;
	n->index = net->n_nodes++;
	n->port = (struct sw_port){.ops = &port_ops,
		.name = "sim",
		.ip = sw_ip_v4(sim_ip(n->index)),
		.udp = SIM_UDP,
		.max_payload = max_payload};
	n->ports[0] = &n->port;
	n->main = n->index;
	n->lcores[0] = n;
	n->n_lcores = 1;
	open_loopback(n);
	n->last = &n->first;
	n->wake_ns = UINT64_MAX;
	n->rate_bits_s = 100ULL * 1000 * 1000 * 1000;
	n->turn_ns = TURN_NS;
	return n;
}

/* Give each lcore of machine @m a queue pair, or lcore 0 the only one; each
 * lcore also has a loopback. */
static void open_handoff(struct sim_node *m)
{
	bool has_one = m->net->steering == SW_STEER_HANDOFF;
	struct sw_port *queues[SW_MAX_LCORES][SW_MAX_PORTS] = {0};

	for (uint32_t i = 0; i < m->n_lcores; i++) {
		if (i == 0 || !has_one)
			queues[i][0] = &m->lcores[i]->port;
		queues[i][SIM_LOOPBACK] = &m->lcores[i]->loopback->port;
	}
	sw_handoff_close(&m->handoff);
	if (sw_handoff_open(&m->handoff, m->n_lcores, SIM_PORTS,
		    (struct sw_port *const(*)[SW_MAX_PORTS])queues))
		abort();
	for (uint32_t i = 0; i < m->n_lcores; i++) {
		struct sim_node *n = m->lcores[i];

		memcpy(n->ports, sw_handoff_ports(&m->handoff, i),
			sizeof(n->ports));
		if (i && has_one)
			watch(&n->handoff_watch, n, n->ports[0]);
	}
}

struct sim_node *sim_net_add_lcore(struct sim_net *net, uint32_t main)
{
	struct sim_node *n = sim_net_add(net, SW_PAYLOAD_MAX);
	struct sim_node *m = &net->nodes[main];

	n->main = main;
	n->port.ip = m->port.ip;
	n->port.steering = m->port.steering = net->steering;
	n->lcore = m->n_lcores;
	m->lcores[m->n_lcores++] = n;
	open_handoff(m);
	return n;
}

static void start_node(struct sim_node *n, uint32_t endpoint,
	struct sw_engine *node, uint64_t stop_gap_ns)
{
	if (!n->is_up)
		sw_loop_init(&n->loop, n->ports, SIM_PORTS, stop_gap_ns,
			n->net->now_ns);
	sw_loop_set(&n->loop, endpoint, node);
	n->is_up = true;
	n->wake_ns = n->net->now_ns;
}

void sim_node_start(struct sim_node *n, uint32_t endpoint,
	struct sw_engine *node, uint64_t stop_gap_ns)
{
	struct sim_node *m = &n->net->nodes[n->main];

	m->owners[endpoint] = (uint8_t)n->lcore;
	start_node(n, endpoint, node, stop_gap_ns);
	for (uint32_t i = 0; i < m->n_lcores; i++)
		if (i != n->lcore)
			start_node(m->lcores[i], endpoint,
				sw_handoff_engine(&m->handoff, i, n->lcore),
				stop_gap_ns);
}

/* Make the frame empty and its receiver invalid. */
static void vanish(struct sim_frame *f)
{
	f->payload = NULL;
	f->to = SIM_NODES;
	f->len = SW_HEAD_BYTES;
}

void sim_node_stop(struct sim_node *n)
{
	struct sim_net *net = n->net;

	for (uint32_t i = 0; i < n->n_lcores; i++) {
		n->lcores[i]->is_up = false;
		n->lcores[i]->wake_ns = UINT64_MAX;
		empty_inbox(n->lcores[i]);
		open_loopback(n->lcores[i]);
	}
	open_handoff(n);
	for (uint32_t i = 0; i < net->n_heap; i++)
		if (net->heap[i]->is_leaving && net->heap[i]->from == n->index)
			vanish(net->heap[i]);
}

static bool is_within(const void *at, const void *mem, uint64_t bytes)
{
	return (uintptr_t)at >= (uintptr_t)mem &&
	       (uintptr_t)at - (uintptr_t)mem < bytes;
}

static void forget_ring(
	struct sw_handoff_ring *r, const void *mem, uint64_t bytes)
{
	for (uint32_t i = r->n_taken; i != r->n_put; i++) {
		struct sw_handoff_slot *s = &r->slots[i & (r->size - 1)];

		if (is_within(s->frame.payload, mem, bytes))
			s->frame.payload_len = 0;
	}
}

/* Drop frames that wait inside a machine, by giving them a wrong length. */
static void forget_inside(struct sim_node *n, const void *mem, uint64_t bytes)
{
	forget_ring(n->loopback->out, mem, bytes);
	for (uint32_t l = 0; l < n->handoff.n_lcores; l++)
		for (uint32_t p = 0; p < SIM_PORTS; p++)
			if (n->handoff.ports[l][p]->out)
				forget_ring(n->handoff.ports[l][p]->out, mem,
					bytes);
}

void sim_net_forget(struct sim_net *net, const void *mem, uint64_t bytes)
{
	for (uint32_t i = 0; i < net->n_nodes; i++)
		forget_inside(&net->nodes[i], mem, bytes);
	for (uint32_t i = 0; i < net->n_heap; i++) {
		if (is_within(net->heap[i]->payload, mem, bytes))
			vanish(net->heap[i]);
	}
}

void sim_node_freeze(struct sim_node *n, uint64_t gap_ns)
{
	n->gap_until_ns = n->net->now_ns + gap_ns;
	n->wake_ns = n->gap_until_ns;
	sw_loop_rest(&n->loop, 0);
}

/* Make the node poll soon. A node in a gap does not notice. */
void sim_node_poke(struct sim_node *n)
{
	n->wake_ns = sw_min64(
		n->wake_ns, sw_max64(sw_max64(n->net->now_ns, n->gap_until_ns),
				    n->loop.last_ns + n->turn_ns));
}

/* Return the lcore whose queue receives the frame. */
static struct sim_node *landing(struct sim_net *net, const struct sim_frame *f)
{
	struct sim_node *m = &net->nodes[f->to];
	uint64_t hash;

	if (net->rehash_ns && net->now_ns >= net->rehash_ns) {
		net->rehash_ns = 0;
		net->hash_key++;
	}
	hash = net->hash_key ^ (uint64_t)f->from << 32;
	if (!net->is_deaf)
		hash ^= (uint64_t)f->to_udp << 16 ^ f->from_udp;
	switch (net->steering) {
	case SW_STEER_RULES:
		return m->lcores[m->owners[(f->to_udp - SIM_UDP) %
					   SIM_ENDPOINTS]];
	case SW_STEER_RSS:
		return m->lcores[test_random(&hash) % m->n_lcores];
	default:
		return m;
	}
}

static void arrive(struct sim_net *net, struct sim_frame *f)
{
	struct sim_node *n = landing(net, f);

	if (!n->is_up || n->n_inbox == SIM_INBOX) {
		free(f);
		return;
	}
	f->next = NULL;
	*n->last = f;
	n->last = &f->next;
	n->n_inbox++;
	sim_node_poke(n);
}

/* Make the other lcores of a machine poll soon, to see this lcore's changes. */
static void poke_others(struct sim_net *net, const struct sim_node *n)
{
	for (uint32_t i = 0; i < net->n_nodes; i++) {
		struct sim_node *other = &net->nodes[i];

		if (other != n && other->main == n->main && other->is_up)
			sim_node_poke(other);
	}
}

static void wake(struct sim_net *net, struct sim_node *n)
{
	uint32_t did = sw_loop_turn(&n->loop, net->now_ns);
	uint64_t nap;

	if (did)
		poke_others(net, n);
	if (n->step)
		n->step(n->ctx, net->now_ns);
	nap = sw_loop_wait(&n->loop, net->now_ns, 100 * SW_MS);
	if (did || nap < n->turn_ns)
		nap = n->turn_ns;
	sw_loop_rest(&n->loop, nap);
	if (sim_chance(&net->rng, net->faults.nap)) {
		nap = sim_below(&net->rng, net->faults.nap_ns);
		sw_loop_rest(&n->loop, 0);
		n->gap_until_ns = net->now_ns + nap;
	}
	if (n->is_up)
		n->wake_ns = sw_max64(net->now_ns + nap, n->gap_until_ns);
}

static struct sim_node *next_node(struct sim_net *net)
{
	struct sim_node *best = &net->nodes[0];

	for (uint32_t i = 1; i < net->n_nodes; i++)
		if (net->nodes[i].wake_ns < best->wake_ns)
			best = &net->nodes[i];
	return best;
}

bool sim_net_run(struct sim_net *net, uint64_t until_ns,
	bool (*done)(void *ctx), void *ctx)
{
	while (!done || !done(ctx)) {
		struct sim_node *n = next_node(net);
		uint64_t frame_ns =
			net->n_heap ? net->heap[0]->at_ns : UINT64_MAX;
		struct sim_frame *f;

		if (sw_min64(frame_ns, n->wake_ns) > until_ns) {
			net->now_ns = sw_max64(net->now_ns, until_ns);
			return false;
		}
		if (frame_ns > n->wake_ns) {
			net->now_ns = sw_max64(net->now_ns, n->wake_ns);
			wake(net, n);
			continue;
		}
		net->now_ns = sw_max64(net->now_ns, frame_ns);
		f = sim_heap_take(net);
		if (f->is_leaving)
			sim_road_depart(net, f);
		else
			arrive(net, f);
	}
	return true;
}

void sim_net_tell(const struct sim_net *net)
{
	static const char *const types[SW_N_TYPES] = {[SW_HELLO] = "HELLO",
		[SW_COOKIE] = "COOKIE",
		[SW_JOIN] = "JOIN",
		[SW_ACCEPT] = "ACCEPT",
		[SW_DECLARE] = "DECLARE",
		[SW_DECLARED] = "DECLARED",
		[SW_STATUS] = "STATUS",
		[SW_LEAVE] = "LEAVE",
		[SW_LEFT] = "LEFT",
		[SW_KEEPALIVE] = "KEEPALIVE",
		[SW_ERROR] = "ERROR",
		[SW_TUNE] = "TUNE",
		[SW_END] = "END",
		[SW_CLOSE] = "CLOSE",
		[SW_PUSH] = "PUSH",
		[SW_RESULT] = "RESULT",
		[SW_ACK] = "ACK",
		[SW_QUERY] = "QUERY",
		[SW_ANSWER] = "ANSWER",
		[SW_WANT] = "WANT"};
	static const char *const fates[SIM_N_FATES] = {"", " lost", " held"};
	uint64_t i = net->n_story > SIM_STORY ? net->n_story - SIM_STORY : 0;

	for (; i < net->n_story; i++) {
		const struct sim_line *l = &net->story[i % SIM_STORY];
		struct sw_header h = {0};

		/* Print the header only, whatever the payload. */
		if (l->len < SW_HEAD_BYTES)
			continue;
		h.type = l->head[3] < SW_N_TYPES ? l->head[3] : 0;
		h.key = sw_load32(l->head + 16);
		h.round = sw_load32(l->head + 20);
		h.chunk = sw_load32(l->head + 24);
		printf("# %12.6f %2u > %-2u %-9s class %u psn %-6u",
			(double)l->at_ns / 1e9, l->from, l->to,
			types[h.type] ? types[h.type] : "?", l->head[5],
			sw_load32(l->head + 12));
		if (sw_type_is_data(h.type))
			printf(" key %u round %u chunk %u", h.key, h.round,
				h.chunk);
		printf("%s\n", fates[l->fate]);
	}
}
