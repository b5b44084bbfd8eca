/* loopback.c - a port that leads back to its own lcore.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/loop/loopback.h"

#include <assert.h>
#include <string.h>

static struct sw_loopback *of(struct sw_port *port)
{
	return (struct sw_loopback *)port;
}

static struct sw_loopback_slot *slot(struct sw_loopback *l, uint32_t i)
{
	return &l->slots[i % SW_LOOPBACK_SLOTS];
}

static uint32_t rx(struct sw_port *port, struct sw_rx_frame *out, uint32_t max)
{
	struct sw_loopback *l = of(port);
	uint32_t n = l->n_put - l->n_taken;

	n = n < max ? n : max;
	for (uint32_t i = 0; i < n; i++) {
		const struct sw_loopback_slot *s = slot(l, l->n_taken + i);

		out[i] = (struct sw_rx_frame){.data = s->head,
			.payload = s->payload,
			.len = SW_HEAD_BYTES + s->payload_len,
			.endpoint = s->to,
			.is_lent = s->is_stable,
			.from = {.ip = SW_LOOPBACK_IP, .udp = s->from}};
	}
	l->n_given = n;
	return n;
}

static void rx_release(struct sw_port *port)
{
	struct sw_loopback *l = of(port);

	l->n_taken += l->n_given;
	l->n_given = 0;
}

static uint32_t tx_room(struct sw_port *port)
{
	struct sw_loopback *l = of(port);

	return SW_LOOPBACK_SLOTS - (l->n_put - l->n_taken);
}

static void tx(struct sw_port *port, const struct sw_tx_frame *f)
{
	struct sw_loopback *l = of(port);
	struct sw_loopback_slot *s = slot(l, l->n_put);

	assert(tx_room(port) && f->payload_len <= SW_PAYLOAD_MAX);
	memcpy(s->head, f->head, SW_HEAD_BYTES);
	s->payload = f->payload;
	s->payload_len = f->payload_len;
	s->from = f->endpoint;
	s->to = f->to.udp;
	s->is_stable = f->is_stable && f->payload_len;
	if (!s->is_stable) {
		if (f->payload_len)
			memcpy(s->copy, f->payload, f->payload_len);
		s->payload = s->copy;
	}
	l->n_put++;
}

static void tx_flush(struct sw_port *port)
{
	(void)port; /* tx was all */
}

static const struct sw_port_ops ops = {.rx = rx,
	.rx_release = rx_release,
	.tx_room = tx_room,
	.tx = tx,
	.tx_flush = tx_flush};

void sw_loopback_init(struct sw_loopback *l)
{
	l->port = (struct sw_port){.ops = &ops,
		.name = "loopback",
		.ip = SW_LOOPBACK_IP,
		.max_payload = SW_PAYLOAD_MAX,
		.is_inner = true};
	l->n_put = l->n_taken = l->n_given = 0;
}

void sw_loopback_copy_lent(struct sw_loopback *l)
{
	for (uint32_t i = l->n_taken; i != l->n_put; i++) {
		struct sw_loopback_slot *s = slot(l, i);

		if (!s->is_stable)
			continue;
		memcpy(s->copy, s->payload, s->payload_len);
		s->payload = s->copy;
		s->is_stable = false;
	}
}

bool sw_loopback_is_drained(const struct sw_loopback *l)
{
	for (uint32_t i = l->n_taken; i != l->n_put; i++)
		if (l->slots[i % SW_LOOPBACK_SLOTS].is_stable)
			return false;
	return true;
}
