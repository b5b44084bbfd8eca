/* cost_wire.c - a wire between a server and its workers in one process.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/cost/cost_wire.h"

#include <stddef.h>
#include <string.h>

#include "engine/wire/wire.h"

enum cost_kind sw_cost_kind(const uint8_t *head)
{
	uint8_t type = head[offsetof(struct sw_header, type)];

	return type == SW_PUSH || type == SW_RESULT ? COST_DATA
	       : type == SW_ACK                     ? COST_ACK
						    : COST_OTHER;
}

/* Receive a burst.  A burst fits a whole queue, so it always takes all of
 * it. */
static uint32_t wire_rx(
	struct sw_port *port, struct sw_rx_frame *out, uint32_t max)
{
	struct cost_end *e = (struct cost_end *)port;
	struct cost_queue *q = e->queues;

	while (!q->n && q < &e->queues[COST_KINDS - 1])
		q++;
	e->given = q;
	for (e->n_given = 0; e->n_given < q->n && e->n_given < max;
		e->n_given++) {
		const struct cost_slot *s = &q->slots[e->n_given];

		out[e->n_given] = (struct sw_rx_frame){.data = s->head,
			.payload = s->payload,
			.len = SW_HEAD_BYTES + s->payload_len,
			.endpoint = s->to,
			.from = {.ip = e->peer->port.ip, .udp = s->from}};
	}
	return e->n_given;
}

static void wire_rx_release(struct sw_port *port)
{
	struct cost_end *e = (struct cost_end *)port;

	e->given->n -= e->n_given;
	e->n_slots -= e->n_given;
}

static uint32_t wire_tx_room(struct sw_port *port)
{
	struct cost_end *e = (struct cost_end *)port;

	return SW_RX_BURST - e->peer->n_slots - e->sent.n;
}

static void wire_put(struct cost_end *to, const struct cost_slot *from)
{
	enum cost_kind kind =
		to->is_sorted ? sw_cost_kind(from->head) : COST_DATA;
	struct cost_queue *q = &to->queues[kind];
	struct cost_slot *s = &q->slots[q->n++];

	to->n_slots++;
	memcpy(s, from, offsetof(struct cost_slot, payload));
	if (s->payload_len)
		memcpy(s->payload, s->gathered, s->payload_len);
}

void sw_cost_wire_carry(struct cost_end *end)
{
	for (uint32_t i = 0; i < end->sent.n; i++)
		wire_put(end->peer, &end->sent.slots[i]);
	end->sent.n = 0;
}

static void wire_tx(
	struct sw_port *port, const struct sw_tx_frame *frames, uint32_t n)
{
	struct cost_end *e = (struct cost_end *)port;
	struct cost_queue *q = &e->sent;
	bool is_passing = false;

	for (const struct sw_tx_frame *f = frames; f < frames + n; f++) {
		struct cost_slot *s = &q->slots[q->n++];

		memcpy(s->head, f->head, SW_HEAD_BYTES);
		s->payload_len = f->payload_len;
		s->from = f->endpoint;
		s->to = f->to.udp;
		s->gathered = f->payload;
		if (f->payload_len && !f->is_stable && e->is_apart)
			s->gathered =
				memcpy(s->payload, f->payload, f->payload_len);
		is_passing |= f->payload_len && !f->is_stable;
	}
	if (is_passing && !e->is_apart)
		sw_cost_wire_carry(e);
}

static void wire_tx_flush(struct sw_port *port)
{
	struct cost_end *e = (struct cost_end *)port;

	if (!e->is_apart)
		sw_cost_wire_carry(e);
}

static const struct sw_port_ops wire_ops = {.rx = wire_rx,
	.rx_release = wire_rx_release,
	.tx_room = wire_tx_room,
	.tx = wire_tx,
	.tx_flush = wire_tx_flush};

void sw_cost_wire_init(struct cost_end ends[COST_ENDS], bool is_sorted)
{
	for (uint32_t i = 0; i < COST_ENDS; i++) {
		ends[i].port = (struct sw_port){.ops = &wire_ops,
			.name = "wire",
			.ip = sw_ip_v4(i + 1),
			.max_payload = SW_PAYLOAD_MAX};
		ends[i].peer = &ends[COST_ENDS - 1 - i];
		ends[i].is_sorted = is_sorted;
	}
}
