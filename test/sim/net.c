/* net.c - a simulated network: nodes, links with faults, virtual time.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/sim/net.h"

#include <stdlib.h>
#include <string.h>

#include "engine/bytes.h"
#include "engine/params.h"

/* splitmix64, by Sebastiano Vigna (public domain). */
uint64_t sim_random(uint64_t *rng)
{
	uint64_t z = *rng += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

uint64_t sim_below(uint64_t *rng, uint64_t n)
{
	return n ? sim_random(rng) % n : 0;
}

bool sim_chance(uint64_t *rng, uint32_t ppm)
{
	return ppm && sim_below(rng, 1000000) < ppm;
}

uint32_t sim_ip(uint32_t i)
{
	return 0x0a000001 + i;
}

/* --- frames on their way: a heap by time --- */

static void heap_swap(struct sim_net *net, uint32_t a, uint32_t b)
{
	struct sim_frame *f = net->heap[a];

	net->heap[a] = net->heap[b];
	net->heap[b] = f;
}

static void heap_put(struct sim_net *net, struct sim_frame *f)
{
	uint32_t i = net->n_heap++;

	if (net->n_heap > net->heap_size) {
		net->heap_size = 2 * net->heap_size + 64;
		net->heap = realloc(
			net->heap, net->heap_size * sizeof(*net->heap));
		if (!net->heap)
			abort();
	}
	net->heap[i] = f;
	for (; i && net->heap[(i - 1) / 2]->at_ns > net->heap[i]->at_ns;
		i = (i - 1) / 2)
		heap_swap(net, i, (i - 1) / 2);
}

static struct sim_frame *heap_take(struct sim_net *net)
{
	struct sim_frame *first = net->heap[0];
	uint32_t i = 0;

	net->heap[0] = net->heap[--net->n_heap];
	for (;;) {
		uint32_t c = 2 * i + 1;

		if (c >= net->n_heap)
			return first;
		if (c + 1 < net->n_heap &&
			net->heap[c + 1]->at_ns < net->heap[c]->at_ns)
			c++;
		if (net->heap[i]->at_ns <= net->heap[c]->at_ns)
			return first;
		heap_swap(net, i, c);
		i = c;
	}
}

static struct sim_frame *new_frame(
	struct sim_net *net, const struct sw_tx_frame *t, uint32_t from)
{
	uint32_t len = SW_HEAD_BYTES + t->payload_len;
	struct sim_frame *f = malloc(sizeof(*f) + len);

	if (!f)
		abort();
	f->to = t->to.ip - sim_ip(0);
	f->from_ip = sim_ip(from);
	f->len = len;
	memcpy(f->bytes, t->head, SW_HEAD_BYTES);
	if (t->payload_len)
		memcpy(f->bytes + SW_HEAD_BYTES, t->payload, t->payload_len);
	(void)net;
	return f;
}

static void damage(struct sim_net *net, struct sim_frame *f)
{
	const struct sim_faults *x = &net->faults;

	if (sim_chance(&net->rng, x->corrupt)) {
		uint64_t bit = sim_below(&net->rng, 8ULL * f->len);

		f->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	if (sim_chance(&net->rng, x->truncate))
		f->len = (uint32_t)sim_below(&net->rng, f->len);
}

static void replay(struct sim_net *net, const struct sim_frame *f,
	uint64_t delay_ns)
{
	struct sim_frame *twin = malloc(sizeof(*twin) + f->len);

	if (!twin)
		abort();
	memcpy(twin, f, sizeof(*twin) + f->len);
	twin->at_ns = f->at_ns + delay_ns;
	heap_put(net, twin);
}

static void send(struct sim_node *n, const struct sw_tx_frame *t)
{
	struct sim_net *net = n->net;
	const struct sim_faults *x = &net->faults;
	struct sim_frame *f = new_frame(net, t, n->index);
	uint64_t wire = (f->len + 66ULL) * 8 * SW_S / net->rate_bits_s;

	n->sent_until_ns = sw_max64(n->sent_until_ns, net->now_ns) + wire;
	f->at_ns = n->sent_until_ns + net->latency_ns +
		   sim_below(&net->rng, x->jitter_ns);
	net->n_frames++;
	if (f->to >= net->n_nodes || sim_chance(&net->rng, x->loss) ||
		(net->drop && net->drop(net->drop_ctx, f->bytes, f->len))) {
		free(f);
		return;
	}
	if (sim_chance(&net->rng, x->dup))
		replay(net, f, sim_below(&net->rng, SW_MS));
	if (sim_chance(&net->rng, x->late))
		replay(net, f, sim_below(&net->rng, x->late_ns));
	damage(net, f);
	heap_put(net, f);
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
	uint32_t i = 0;

	for (; i < max && n->first; i++) {
		struct sim_frame *f = n->first;

		n->first = f->next;
		if (!n->first)
			n->last = &n->first;
		n->n_inbox--;
		n->taken[i] = f;
		out[i] = (struct sw_rx_frame){.data = f->bytes,
			.len = f->len,
			.from = {.ip = f->from_ip, .udp = 5700}};
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

	/* A queue of about 20 us, as the product's ports keep it. */
	return n->sent_until_ns > n->net->now_ns + 20 * SW_US ? 0 : 8;
}

static void port_tx(struct sw_port *port, const struct sw_tx_frame *frame)
{
	send(node_of(port), frame);
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

/* --- nodes --- */

void sim_net_init(struct sim_net *net, uint64_t seed)
{
	memset(net, 0, sizeof(*net));
	net->rng = seed;
	net->rate_bits_s = 100ULL * 1000 * 1000 * 1000;
	net->latency_ns = 5 * SW_US;
	net->now_ns = SW_S;
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
	for (uint32_t i = 0; i < net->n_nodes; i++)
		empty_inbox(&net->nodes[i]);
	while (net->n_heap)
		free(heap_take(net));
	free(net->heap);
}

struct sim_node *sim_net_add(struct sim_net *net, uint32_t max_payload)
{
	struct sim_node *n = &net->nodes[net->n_nodes];

	n->net = net;
	n->index = net->n_nodes++;
	n->port = (struct sw_port){.ops = &port_ops,
		.name = "sim",
		.ip = sim_ip(n->index),
		.max_payload = max_payload};
	n->ports[0] = &n->port;
	n->last = &n->first;
	n->wake_ns = UINT64_MAX;
	return n;
}

void sim_node_start(
	struct sim_node *n, struct sw_node *node, uint64_t stop_gap_ns)
{
	sw_loop_init(&n->loop, node, n->ports, 1, stop_gap_ns, n->net->now_ns);
	n->is_up = true;
	n->wake_ns = n->net->now_ns;
}

void sim_node_stop(struct sim_node *n)
{
	n->is_up = false;
	n->wake_ns = UINT64_MAX;
	empty_inbox(n);
}

static void deliver(struct sim_net *net, struct sim_frame *f)
{
	struct sim_node *n = &net->nodes[f->to];

	if (!n->is_up || n->n_inbox == SIM_INBOX) {
		free(f);
		return;
	}
	f->next = NULL;
	*n->last = f;
	n->last = &f->next;
	n->n_inbox++;
	/* A node in a gap does not notice; else it polls soon. */
	n->wake_ns = sw_min64(n->wake_ns,
		sw_max64(sw_max64(net->now_ns, n->gap_until_ns),
			n->loop.last_ns + SW_US / 2));
}

static void wake(struct sim_net *net, struct sim_node *n)
{
	uint32_t did = sw_loop_turn(&n->loop, net->now_ns);
	uint64_t nap = sw_loop_wait(&n->loop, net->now_ns, 100 * SW_MS);

	if (n->step)
		n->step(n->ctx, net->now_ns);
	if (did || nap < SW_US / 2)
		nap = SW_US / 2;
	if (sim_chance(&net->rng, net->faults.nap)) {
		nap = sim_below(&net->rng, net->faults.nap_ns);
		n->gap_until_ns = net->now_ns + nap;
	}
	n->wake_ns = net->now_ns + nap;
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
	while (!done(ctx)) {
		struct sim_node *n = next_node(net);
		uint64_t frame_ns =
			net->n_heap ? net->heap[0]->at_ns : UINT64_MAX;

		if (sw_min64(frame_ns, n->wake_ns) > until_ns)
			return false;
		if (frame_ns <= n->wake_ns) {
			net->now_ns = sw_max64(net->now_ns, frame_ns);
			deliver(net, heap_take(net));
		} else {
			net->now_ns = sw_max64(net->now_ns, n->wake_ns);
			wake(net, n);
		}
	}
	return true;
}
