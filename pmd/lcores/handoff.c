/* handoff.c - rings, engines and ports that pass frames between lcores.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/lcores/handoff.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"

/* --- a ring --- */

static uint32_t load(const _Atomic uint32_t *v)
{
	return atomic_load_explicit(v, memory_order_acquire);
}

/* Return the number of entries that the consumer may read. */
static uint32_t filled(const struct sw_handoff_ring *r)
{
	return load(&r->n_put) - load(&r->n_taken);
}

static struct sw_handoff_slot *slot(struct sw_handoff_ring *r, uint32_t i)
{
	return &r->slots[i & (r->size - 1)];
}

static void advance(_Atomic uint32_t *index, uint32_t n)
{
	atomic_store_explicit(index,
		atomic_load_explicit(index, memory_order_relaxed) + n,
		memory_order_release);
}

static void copy_payload(struct sw_handoff_slot *s)
{
	if (s->frame.payload_len)
		memcpy(s->copy, s->frame.payload, s->frame.payload_len);
	s->frame.payload = s->copy;
	s->frame.is_stable = false;
}

/* Write @f into the @i-th free slot, for which there must be room; the caller
 * advances n_put. A stable payload is not copied. */
static struct sw_tx_frame *put(
	struct sw_handoff_ring *r, uint32_t i, const struct sw_tx_frame *f)
{
	struct sw_handoff_slot *s = slot(r, load(&r->n_put) + i);

	assert(filled(r) + i < r->size && f->payload_len <= SW_PAYLOAD_MAX);
	s->frame = *f;
	s->frame.is_marked = false;
	if (!f->is_stable || !f->payload_len)
		copy_payload(s);
	return &s->frame;
}

/* Allocate a ring without touching its slots. */
static struct sw_handoff_ring *ring_open(uint32_t n_slots)
{
	struct sw_handoff_ring *r = aligned_alloc(
		64, sizeof(*r) + n_slots * sizeof(struct sw_handoff_slot));

	if (!r)
		return NULL;
	atomic_init(&r->n_put, 0);
	atomic_init(&r->n_taken, 0);
	r->size = n_slots;
	return r;
}

/* --- the engine that stands for another lcore --- */

static struct sw_handoff_engine *other_of(const struct sw_engine *engine)
{
	return (struct sw_handoff_engine *)(uintptr_t)engine;
}

static struct sw_handoff_port *far_port(
	const struct sw_handoff_engine *n, uint32_t port_i)
{
	return n->all->ports[n->to][port_i];
}

/* Return the counter to increment if @f must be dropped; NULL if it can be
 * handed on. */
static uint64_t *reason_to_drop(
	struct sw_stats *st, const struct sw_rx_frame *f, bool is_full)
{
	if (f->len < SW_HEAD_BYTES)
		return &st->rx_short;
	if (f->len > SW_HEAD_BYTES + SW_PAYLOAD_MAX)
		return &st->rx_length;
	return is_full ? &st->handoff_full : NULL;
}

static void other_rx(struct sw_engine *engine, uint64_t now_ns, uint32_t port_i,
	const struct sw_rx_frame *frames, uint32_t n)
{
	struct sw_handoff_engine *h = other_of(engine);
	struct sw_handoff_port *p = far_port(h, port_i);
	struct sw_handoff_ring *r = p->in[h->from];
	uint32_t room = r->size - filled(r), taken = 0;

	(void)now_ns;
	for (uint32_t i = 0; i < n; i++) {
		const struct sw_rx_frame *f = &frames[i];
		struct sw_handoff_slot *s = slot(r, load(&r->n_put) + taken);
		uint64_t *counter = reason_to_drop(&h->stats, f, taken == room);

		if (counter) {
			sw_count(counter, 1);
			continue;
		}
		memcpy(s->frame.head, f->data, SW_HEAD_BYTES);
		s->frame.payload = f->payload;
		s->frame.payload_len = f->len - SW_HEAD_BYTES;
		s->frame.endpoint = f->endpoint;
		s->frame.to = f->from;
		s->frame.is_marked = f->is_marked;
		copy_payload(s);
		taken++;
	}
	advance(&r->n_put, taken);
	sw_count(&h->stats.handoff_rx, taken);
	sw_count(&h->stats.handoff_misrouted, p->own ? taken : 0);
}

static uint32_t other_tx(struct sw_engine *engine, uint64_t now_ns,
	uint32_t port_i, struct sw_tx_frame *out, uint32_t max)
{
	struct sw_handoff_engine *h = other_of(engine);
	struct sw_handoff_ring *r;
	uint32_t n, at;

	(void)now_ns;
	if (h->from) /* only lcore 0 sends for another lcore */
		return 0;
	r = far_port(h, port_i)->out;
	if (!r)
		return 0;
	/* The port has taken, or copied, the frames of the last call. */
	advance(&r->n_taken, h->n_sending[port_i]);
	n = engine->holds_data ? 0 : filled(r);
	n = n < max ? n : max;
	at = load(&r->n_taken);
	for (uint32_t i = 0; i < n; i++)
		out[i] = slot(r, at + i)->frame;
	h->n_sending[port_i] = n;
	sw_count(&h->stats.handoff_tx, n);
	return n;
}

static uint64_t other_tick(
	struct sw_engine *engine, uint64_t now_ns, uint64_t gap_ns)
{
	(void)engine;
	(void)now_ns;
	(void)gap_ns;
	return UINT64_MAX;
}

static bool other_is_busy(const struct sw_engine *engine)
{
	const struct sw_handoff_engine *h = other_of(engine);

	for (uint32_t i = 0; i < h->all->n_ports && !h->from; i++) {
		const struct sw_handoff_port *p = far_port(h, i);

		if (p->out && filled(p->out))
			return true;
	}
	return false;
}

/* --- ports --- */

static struct sw_handoff_port *port_of(struct sw_port *port)
{
	return (struct sw_handoff_port *)port;
}

/* Take at most @max frames that landed at lcore @i. */
static uint32_t take_frame(struct sw_handoff_port *p, uint32_t i,
	struct sw_rx_frame *out, uint32_t max)
{
	struct sw_handoff_ring *r = p->in[i];
	uint32_t n = filled(r), at = load(&r->n_taken);

	n = n < max ? n : max;
	for (uint32_t k = 0; k < n; k++) {
		const struct sw_tx_frame *f = &slot(r, at + k)->frame;

		out[k] = (struct sw_rx_frame){.data = f->head,
			.payload = f->payload,
			.len = SW_HEAD_BYTES + f->payload_len,
			.endpoint = f->endpoint,
			.landed = (uint16_t)i,
			.is_lent = f->is_stable,
			.is_marked = f->is_marked,
			.is_misrouted =
				p->own && p->port.steering == SW_STEER_RSS,
			.from = f->to};
	}
	p->n_given[i] = n;
	return n;
}

/* Take frames from the rings, which take turns at being first, then from the
 * queue. The rings leave half of @max to the queue. */
static uint32_t port_rx(
	struct sw_port *port, struct sw_rx_frame *out, uint32_t max)
{
	struct sw_handoff_port *p = port_of(port);
	uint32_t most = p->own ? max / 2 : max, n = 0;

	p->first = p->first + 1 < p->n_lcores ? p->first + 1 : 0;
	for (uint32_t k = 0, i = p->first; k < p->n_lcores; k++, i++) {
		uint32_t from = i < p->n_lcores ? i : i - p->n_lcores;

		if (p->in[from])
			n += take_frame(p, from, out + n, most - n);
	}
	if (p->own)
		n += p->own->ops->rx(p->own, out + n, max - n);
	return n;
}

static void port_rx_release(struct sw_port *port)
{
	struct sw_handoff_port *p = port_of(port);

	for (uint32_t i = 0; i < p->n_lcores; i++)
		if (p->n_given[i]) {
			advance(&p->in[i]->n_taken, p->n_given[i]);
			p->n_given[i] = 0;
		}
	if (p->own)
		p->own->ops->rx_release(p->own);
}

static uint32_t port_tx_room(struct sw_port *port)
{
	struct sw_handoff_port *p = port_of(port);

	return p->own ? p->own->ops->tx_room(p->own)
		      : p->out->size - filled(p->out);
}

static void port_tx(
	struct sw_port *port, const struct sw_tx_frame *frames, uint32_t n)
{
	struct sw_handoff_port *p = port_of(port);

	if (p->own) {
		p->own->ops->tx(p->own, frames, n);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		put(p->out, i, &frames[i]);
	advance(&p->out->n_put, n);
}

static void port_tx_flush(struct sw_port *port)
{
	struct sw_handoff_port *p = port_of(port);

	if (p->own)
		p->own->ops->tx_flush(p->own);
}

static const struct sw_port_ops port_ops = {.rx = port_rx,
	.rx_release = port_rx_release,
	.tx_room = port_tx_room,
	.tx = port_tx,
	.tx_flush = port_tx_flush};

/* --- life --- */

/* Open port @port_i of lcore @i. An lcore that no other lcore passes frames to
 * uses its queue pair directly. */
static int port_open(struct sw_handoff *h, uint32_t i, uint32_t port_i,
	struct sw_port *const (*queues)[SW_MAX_PORTS])
{
	struct sw_handoff_port *p = calloc(1, sizeof(*p));
	bool is_alone = true;

	if (!p)
		return SW_ENOMEM;
	h->ports[i][port_i] = p;
	p->port = *queues[0][port_i];
	p->port.ops = &port_ops;
	p->own = queues[i][port_i];
	p->n_lcores = h->n_lcores;
	for (uint32_t from = 0; from < h->n_lcores; from++) {
		if (from == i || !queues[from][port_i])
			continue;
		is_alone = false;
		p->in[from] = ring_open(SW_HANDOFF_SLOTS);
		if (!p->in[from])
			return SW_ENOMEM;
	}
	h->lists[i][port_i] = is_alone ? p->own : &p->port;
	if (p->own)
		return 0;
	/* lcore 0 paces the frames that it sends for this lcore */
	p->port.rate_bit_s = p->port.link_bit_s = 0;
	p->out = ring_open(SW_HANDOFF_SLOTS);
	return p->out ? 0 : SW_ENOMEM;
}

int sw_handoff_open(struct sw_handoff *h, uint32_t n_lcores, uint32_t n_ports,
	struct sw_port *const (*queues)[SW_MAX_PORTS])
{
	uint32_t n_pairs = n_lcores * n_lcores;
	int err = 0;

	*h = (struct sw_handoff){.n_lcores = n_lcores, .n_ports = n_ports};
	h->others = calloc(n_pairs, sizeof(*h->others));
	if (!h->others)
		return SW_ENOMEM;
	for (uint32_t i = 0; i < n_pairs; i++)
		h->others[i] = (struct sw_handoff_engine){
			.engine = {.stats = &h->others[i].stats,
				.rx = other_rx,
				.tx = other_tx,
				.is_relay = true,
				.tick = other_tick,
				.is_busy = other_is_busy},
			.all = h,
			.from = i / n_lcores,
			.to = i % n_lcores};
	for (uint32_t i = 0; i < n_lcores * n_ports && !err; i++)
		err = port_open(h, i / n_ports, i % n_ports, queues);
	if (err)
		sw_handoff_close(h);
	return err;
}

static void port_close(struct sw_handoff_port *p)
{
	if (!p)
		return;
	for (uint32_t i = 0; i < p->n_lcores; i++)
		free(p->in[i]);
	free(p->out);
	free(p);
}

void sw_handoff_close(struct sw_handoff *h)
{
	for (uint32_t i = 0; i < h->n_lcores; i++)
		for (uint32_t p = 0; p < h->n_ports; p++)
			port_close(h->ports[i][p]);
	free(h->others);
	*h = (struct sw_handoff){0};
}

struct sw_port *const *sw_handoff_ports(
	const struct sw_handoff *h, uint32_t lcore)
{
	return h->lists[lcore];
}

struct sw_engine *sw_handoff_engine(
	const struct sw_handoff *h, uint32_t from, uint32_t to)
{
	return &h->others[from * h->n_lcores + to].engine;
}

bool sw_handoff_has(const struct sw_handoff *h, uint32_t from, uint32_t to)
{
	for (uint32_t i = 0; i < h->n_ports; i++) {
		const struct sw_handoff_ring *in = h->ports[to][i]->in[from];
		const struct sw_handoff_ring *out = h->ports[from][i]->out;

		if ((in && filled(in)) || (out && !to && filled(out)))
			return true;
	}
	return false;
}

void sw_handoff_release(struct sw_handoff *h, uint32_t lcore)
{
	struct sw_handoff_engine *n = other_of(sw_handoff_engine(h, 0, lcore));

	for (uint32_t i = 0; i < h->n_ports; i++) {
		struct sw_handoff_port *p = h->ports[lcore][i];
		uint32_t waits = p->out ? filled(p->out) : 0;

		if (waits)
			advance(&p->out->n_taken, waits);
		sw_count(&n->stats.handoff_released, waits - n->n_sending[i]);
		n->n_sending[i] = 0;
	}
}

void sw_handoff_add_stats(const struct sw_handoff *h, struct sw_stats *sum)
{
	for (uint32_t i = 0; i < h->n_lcores * h->n_lcores; i++)
		sw_stats_add(sum, &h->others[i].stats);
}

/* --- loopback --- */

/* Put the frames into the ring with source and destination swapped. Both are
 * this node, so the receiver sees the IP address that the sender used. */
static void loopback_tx(
	struct sw_port *port, const struct sw_tx_frame *frames, uint32_t n)
{
	struct sw_handoff_ring *r = port_of(port)->out;

	for (uint32_t i = 0; i < n; i++) {
		const struct sw_tx_frame *f = &frames[i];
		struct sw_tx_frame *in = put(r, i, f);

		in->to = (struct sw_path){.ip = f->to.ip, .udp = f->endpoint};
		in->endpoint = f->to.udp;
	}
	advance(&r->n_put, n);
}

static const struct sw_port_ops loopback_ops = {.rx = port_rx,
	.rx_release = port_rx_release,
	.tx_room = port_tx_room,
	.tx = loopback_tx,
	.tx_flush = port_tx_flush};

struct sw_handoff_port *sw_loopback_open(void)
{
	struct sw_handoff_port *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->port = (struct sw_port){.ops = &loopback_ops,
		.name = "loopback",
		.ip = sw_ip_v4(SW_LOOPBACK_IP),
		.max_payload = SW_PAYLOAD_MAX,
		.is_inner = true};
	p->n_lcores = 1;
	p->in[0] = p->out = ring_open(SW_LOOPBACK_SLOTS);
	if (p->out)
		return p;
	free(p);
	return NULL;
}

void sw_loopback_close(struct sw_handoff_port *p)
{
	if (p)
		free(p->out);
	free(p);
}

void sw_loopback_copy_lent(struct sw_handoff_port *p)
{
	for (uint32_t i = p->out->n_taken; i != p->out->n_put; i++)
		if (slot(p->out, i)->frame.is_stable)
			copy_payload(slot(p->out, i));
}
