/* handoff.c - frames handed from the lcore that polls the ports to another.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/handoff.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/error.h"

/* --- a ring --- */

static uint32_t load(const _Atomic uint32_t *v)
{
	return atomic_load_explicit(v, memory_order_acquire);
}

/* Entries that the consumer may read. */
static uint32_t filled(const struct sw_handoff_ring *r)
{
	return load(&r->n_put) - load(&r->n_taken);
}

static struct sw_handoff_slot *slot(struct sw_handoff_ring *r, uint32_t i)
{
	return &r->slots[i % SW_HANDOFF_SLOTS];
}

static struct sw_handoff_slot *next_put(struct sw_handoff_ring *r)
{
	return slot(r, load(&r->n_put));
}

static void advance(_Atomic uint32_t *index, uint32_t n)
{
	atomic_store_explicit(index,
		atomic_load_explicit(index, memory_order_relaxed) + n,
		memory_order_release);
}

/* The payload stays where it is, or goes into the slot. */
static void set_payload(struct sw_handoff_slot *s, const void *payload,
	uint32_t bytes, bool is_stable)
{
	s->payload_len = bytes;
	s->is_stable = is_stable && bytes;
	s->payload = s->is_stable ? payload : s->copy;
	if (bytes && !s->is_stable)
		memcpy(s->copy, payload, bytes);
}

/* --- the polling lcore: a node --- */

static struct sw_handoff *handoff_of(const struct sw_node *node)
{
	return (struct sw_handoff *)(uintptr_t)node;
}

static void node_rx(struct sw_node *node, uint64_t now_ns, uint32_t port_i,
	const struct sw_rx_frame *frames, uint32_t n)
{
	struct sw_handoff *h = handoff_of(node);
	struct sw_handoff_ring *r = &h->ports[port_i]->in;
	uint32_t room = SW_HANDOFF_SLOTS - filled(r), taken = 0;

	(void)now_ns;
	for (uint32_t i = 0; i < n; i++) {
		const struct sw_rx_frame *f = &frames[i];
		struct sw_handoff_slot *s = slot(r, load(&r->n_put) + taken);

		if (taken == room || f->len > SW_HEAD_BYTES + SW_PAYLOAD_MAX ||
			f->len < SW_HEAD_BYTES) {
			h->stats.handoff_full++;
			continue;
		}
		memcpy(s->head, f->data, SW_HEAD_BYTES);
		s->path = f->from;
		s->endpoint = f->endpoint;
		set_payload(s, f->payload, f->len - SW_HEAD_BYTES, false);
		taken++;
	}
	advance(&r->n_put, taken);
	h->stats.handoff_rx += taken;
}

static bool node_tx(struct sw_node *node, uint64_t now_ns, uint32_t port_i,
	struct sw_tx_frame *out)
{
	struct sw_handoff *h = handoff_of(node);
	struct sw_handoff_port *p = h->ports[port_i];
	struct sw_handoff_ring *r = &p->out;
	const struct sw_handoff_slot *s;

	(void)now_ns;
	/* The port has taken, or copied, the frame of the last call. */
	if (p->is_sending)
		advance(&r->n_taken, 1);
	p->is_sending = filled(r) && !node->holds_data;
	if (!p->is_sending)
		return false;
	s = slot(r, load(&r->n_taken));
	memcpy(out->head, s->head, SW_HEAD_BYTES);
	out->payload = s->payload;
	out->payload_len = s->payload_len;
	out->is_stable = s->is_stable;
	out->class = s->class;
	out->endpoint = s->endpoint;
	out->to = s->path;
	h->stats.handoff_tx++;
	return true;
}

static uint64_t node_tick(
	struct sw_node *node, uint64_t now_ns, uint64_t gap_ns)
{
	(void)node;
	(void)now_ns;
	(void)gap_ns;
	return UINT64_MAX;
}

static bool node_is_busy(const struct sw_node *node)
{
	const struct sw_handoff *h = handoff_of(node);

	for (uint32_t i = 0; i < h->n_ports; i++)
		if (filled(&h->ports[i]->out))
			return true;
	return false;
}

/* --- the far lcore: ports --- */

static struct sw_handoff_port *port_of(struct sw_port *port)
{
	return (struct sw_handoff_port *)port;
}

static uint32_t port_rx(
	struct sw_port *port, struct sw_rx_frame *out, uint32_t max)
{
	struct sw_handoff_port *p = port_of(port);
	uint32_t n = filled(&p->in), at = load(&p->in.n_taken);

	n = n < max ? n : max;
	for (uint32_t i = 0; i < n; i++) {
		const struct sw_handoff_slot *s = slot(&p->in, at + i);

		out[i] = (struct sw_rx_frame){.data = s->head,
			.payload = s->payload,
			.len = SW_HEAD_BYTES + s->payload_len,
			.endpoint = s->endpoint,
			.from = s->path};
	}
	p->n_given = n;
	return n;
}

static void port_rx_release(struct sw_port *port)
{
	struct sw_handoff_port *p = port_of(port);

	advance(&p->in.n_taken, p->n_given);
	p->n_given = 0;
}

static uint32_t port_tx_room(struct sw_port *port)
{
	return SW_HANDOFF_SLOTS - filled(&port_of(port)->out);
}

static void port_tx(struct sw_port *port, const struct sw_tx_frame *f)
{
	struct sw_handoff_ring *r = &port_of(port)->out;
	struct sw_handoff_slot *s = next_put(r);

	assert(port_tx_room(port) && f->payload_len <= SW_PAYLOAD_MAX);
	memcpy(s->head, f->head, SW_HEAD_BYTES);
	s->path = f->to;
	s->endpoint = f->endpoint;
	s->class = f->class;
	set_payload(s, f->payload, f->payload_len, f->is_stable);
	advance(&r->n_put, 1);
}

static void port_tx_flush(struct sw_port *port)
{
	(void)port; /* tx was all */
}

static const struct sw_port_ops port_ops = {.rx = port_rx,
	.rx_release = port_rx_release,
	.tx_room = port_tx_room,
	.tx = port_tx,
	.tx_flush = port_tx_flush};

/* --- life --- */

int sw_handoff_open(
	struct sw_handoff *h, struct sw_port *const *ports, uint32_t n_ports)
{
	*h = (struct sw_handoff){.node = {.stats = &h->stats,
					 .rx = node_rx,
					 .tx = node_tx,
					 .tick = node_tick,
					 .is_busy = node_is_busy}};
	for (uint32_t i = 0; i < n_ports; i++) {
		struct sw_handoff_port *p = aligned_alloc(64, sizeof(*p));

		if (!p) {
			sw_handoff_close(h);
			return SW_ENOMEM;
		}
		memset(p, 0, sizeof(*p));
		p->port = (struct sw_port){.ops = &port_ops,
			.name = ports[i]->name,
			.ip = ports[i]->ip,
			.max_payload = ports[i]->max_payload};
		h->ports[i] = p;
		h->list[i] = &p->port;
		h->n_ports++;
	}
	return 0;
}

void sw_handoff_close(struct sw_handoff *h)
{
	for (uint32_t i = 0; i < h->n_ports; i++)
		free(h->ports[i]);
	h->n_ports = 0;
}

void sw_handoff_let_go(struct sw_handoff *h)
{
	for (uint32_t i = 0; i < h->n_ports; i++) {
		struct sw_handoff_port *p = h->ports[i];

		advance(&p->out.n_taken, filled(&p->out));
		p->is_sending = false;
	}
}
