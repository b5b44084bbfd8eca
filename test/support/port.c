/* port.c - a port whose frames and room a test sets.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/port.h"

#include "test/support/unit.h"

static struct test_port *of(struct sw_port *port)
{
	return (struct test_port *)port;
}

static uint32_t rx(struct sw_port *port, struct sw_rx_frame *out, uint32_t max)
{
	static const uint8_t nothing[SW_HEAD_BYTES];
	struct test_port *p = of(port);
	uint32_t n = p->n_inbox < max ? p->n_inbox : max;

	/* the engine must release the previous burst first */
	assert_int_equal(p->n_held, 0);
	assert_true(max <= SW_RX_BURST);
	for (uint32_t i = 0; i < n; i++)
		out[i] = (struct sw_rx_frame){.data = nothing,
			.payload = nothing + sizeof(nothing),
			.len = sizeof(nothing),
			.endpoint = p->endpoint};
	p->n_inbox -= n;
	p->n_held = n;
	p->n_rx++;
	return n;
}

static void rx_release(struct sw_port *port)
{
	of(port)->n_held = 0;
	of(port)->n_releases++;
}

static uint32_t tx_room(struct sw_port *port)
{
	return of(port)->room;
}

static void tx(
	struct sw_port *port, const struct sw_tx_frame *frames, uint32_t n)
{
	struct test_port *p = of(port);

	assert_true(n > 0 && p->room >= n);
	p->room -= n;
	p->n_tx += n;
	p->last = frames[n - 1];
}

static void tx_flush(struct sw_port *port)
{
	of(port)->n_flushes++;
}

static const struct sw_port_ops ops = {.rx = rx,
	.rx_release = rx_release,
	.tx_room = tx_room,
	.tx = tx,
	.tx_flush = tx_flush};

void port_init(struct test_port *p)
{
	*p = (struct test_port){.port = {.ops = &ops,
					.name = "test",
					.max_payload = SW_PAYLOAD_MAX},
		.room = UINT32_MAX};
}
