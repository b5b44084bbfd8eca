/* loop.c - one turn of an lcore: receive, fire timers, send.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/loop.h"

#include "engine/bytes.h"
#include "engine/params.h"
#include "engine/ticks.h"

enum {
	DRAIN_BURSTS = 64, /* after a gap; a port cannot hold more */
	TICK_NS = 50000,   /* the shortest timer: sw_params.ack_delay */
};

void sw_loop_init(struct sw_loop *l, struct sw_node *node,
	struct sw_port *const *ports, uint32_t n_ports, uint64_t stop_gap_ns,
	uint64_t now_ns)
{
	*l = (struct sw_loop){.node = node,
		.ports = ports,
		.n_ports = n_ports,
		.stop_gap_ns = stop_gap_ns,
		.last_ns = now_ns,
		.gap_from_ns = now_ns,
		.tx_at_ns = UINT64_MAX};
	for (uint32_t i = 0; i < n_ports; i++)
		sw_pace_init(&l->pace[i], ports[i]->rate_bit_s,
			ports[i]->link_bit_s, ports[i]->max_payload);
}

static uint32_t rx(struct sw_loop *l, struct sw_port *port, uint32_t port_i,
	uint64_t now_ns)
{
	struct sw_rx_frame frames[SW_RX_BURST];
	uint32_t n;

	SW_TIMED(l->node->stats->ticks_port_rx,
		n = port->ops->rx(port, frames, SW_RX_BURST));
	for (uint32_t i = 0; i < n; i++)
		frames[i].from.port_i = (uint16_t)port_i;
	if (n) {
		SW_TIMED(l->node->stats->ticks_node_rx,
			l->node->rx(l->node, now_ns, port_i, frames, n));
		port->ops->rx_release(port);
	}
	return n;
}

static uint32_t rx_all(struct sw_loop *l, uint64_t now_ns, uint32_t bursts)
{
	uint32_t sum = 0;

	for (uint32_t p = 0; p < l->n_ports; p++)
		for (uint32_t b = 0; b < bursts; b++) {
			uint32_t n = rx(l, l->ports[p], p, now_ns);

			sum += n;
			if (!n)
				break;
		}
	return sum;
}

static uint32_t tx(struct sw_loop *l, struct sw_port *port, uint32_t port_i,
	uint64_t now_ns)
{
	uint32_t room = port->ops->tx_room(port), n = 0;
	struct sw_pace *pace = &l->pace[port_i];
	struct sw_tx_frame frame;
	bool has_frame;

	for (; n < room; n++) {
		l->node->holds_data = !sw_pace_may(pace, now_ns);
		SW_TIMED(l->node->stats->ticks_node_tx,
			has_frame =
				l->node->tx(l->node, now_ns, port_i, &frame));
		if (!has_frame) {
			sw_pace_note(pace, l->node->holds_data);
			if (l->node->holds_data)
				l->tx_at_ns =
					sw_min64(l->tx_at_ns, sw_pace_at(pace));
			break;
		}
		sw_pace_charge(pace, frame.payload_len, now_ns);
		SW_TIMED(l->node->stats->ticks_port_tx,
			port->ops->tx(port, &frame));
	}
	/* Also without a new frame: some may wait inside the port. */
	SW_TIMED(l->node->stats->ticks_port_tx, port->ops->tx_flush(port));
	return n;
}

/* Note the gap since the last turn.  Returns whether it was long enough for
 * frames to wait that must be seen before any timer fires. */
static bool note_gap(struct sw_loop *l, uint64_t now_ns)
{
	uint64_t since = now_ns - l->last_ns;
	uint64_t gap = since - sw_min64(since, l->rest_ns);

	l->last_ns = now_ns;
	l->rest_ns = 0;
	if (gap >= l->stop_gap_ns) {
		l->skipped_ns += gap;
		l->node->stats->poll_gaps++;
	}
	if (now_ns - l->gap_from_ns >= SW_S) {
		l->gap_from_ns = now_ns;
		l->gap_ns[1] = l->gap_ns[0];
		l->gap_ns[0] = 0;
	}
	l->gap_ns[0] = sw_max64(l->gap_ns[0], gap);
	return since > SW_MS / 2;
}

uint32_t sw_loop_turn(struct sw_loop *l, uint64_t now_ns)
{
	bool had_gap = note_gap(l, now_ns);
	uint64_t now = sw_loop_now(l, now_ns);
	uint32_t n = rx_all(l, now, had_gap ? DRAIN_BURSTS : 1);

	if (now >= l->tick_at_ns)
		SW_TIMED(l->node->stats->ticks_tick,
			l->tick_at_ns = l->node->tick(l->node, now,
				sw_max64(l->gap_ns[0], l->gap_ns[1])));
	l->tx_at_ns = UINT64_MAX;
	for (uint32_t p = 0; p < l->n_ports; p++)
		n += tx(l, l->ports[p], p, now);
	/* What came or went may have set a timer, none shorter than this. */
	if (n)
		l->tick_at_ns = sw_min64(l->tick_at_ns, now + TICK_NS);
	return n;
}

uint64_t sw_loop_wait(const struct sw_loop *l, uint64_t now_ns, uint64_t max_ns)
{
	uint64_t now = sw_loop_now(l, now_ns);
	uint64_t at = sw_min64(l->tick_at_ns, l->tx_at_ns);

	return at <= now ? 0 : sw_min64(at - now, max_ns);
}
