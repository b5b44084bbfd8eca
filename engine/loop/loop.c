/* loop.c - one turn of an lcore: receive, fire timers, send.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/loop/loop.h"

#include "engine/base/bytes.h"
#include "engine/base/params.h"
#include "engine/base/ticks.h"

enum {
	DRAIN_TURNS = 64, /* after a gap; no port holds more bursts */
	TICK_NS = 50000,  /* the shortest timer: sw_params.ack_delay */
	STOP_PART = 5,    /* divisor of stop_gap_ns for a longer gap */
};

void sw_loop_init(struct sw_loop *l, struct sw_port *const *ports,
	uint32_t n_ports, uint64_t stop_gap_ns, uint64_t now_ns)
{
	*l = (struct sw_loop){.ports = ports,
		.n_ports = n_ports,
		.stop_gap_ns = stop_gap_ns,
		.last_ns = now_ns,
		.gap_from_ns = now_ns,
		.tx_at_ns = UINT64_MAX};
	for (uint32_t i = 0; i < n_ports; i++)
		sw_loop_set_rate(l, i, ports[i]->rate_bit_s);
}

void sw_loop_set_rate(struct sw_loop *l, uint32_t port_i, uint64_t rate_bit_s)
{
	const struct sw_port *port = l->ports[port_i];

	sw_pace_init(&l->pace[port_i], rate_bit_s, port->link_bit_s,
		port->max_payload);
}

void sw_loop_set(struct sw_loop *l, uint32_t endpoint, struct sw_engine *engine)
{
	l->engines[endpoint] = engine;
	if (endpoint >= l->n_engines)
		l->n_engines = endpoint + 1;
	while (l->n_engines && !l->engines[l->n_engines - 1])
		l->n_engines--;
	l->tick_at_ns = 0;
}

/* Hand each run of frames for one engine to it. */
static void give_frames(struct sw_loop *l, uint64_t now_ns, uint32_t port_i,
	struct sw_rx_frame *frames, uint32_t n)
{
	struct sw_rx_frame *last = frames + n;

	for (struct sw_rx_frame *f = frames, *end = f; f != last; f = end) {
		uint32_t to = f->endpoint;
		struct sw_engine *engine =
			to < l->n_engines ? l->engines[to] : NULL;

		for (; end != last && end->endpoint == to; end++)
			end->from.port_i = (uint16_t)port_i;
		n = (uint32_t)(end - f);
		if (engine)
			SW_TIMED(engine->stats->ticks_engine_rx,
				engine->rx(engine, now_ns, port_i, f, n));
		else
			sw_count(&l->stats.rx_endpoint, n);
	}
}

static uint32_t rx(struct sw_loop *l, struct sw_port *port, uint32_t port_i,
	uint64_t now_ns)
{
	struct sw_rx_frame frames[SW_RX_BURST];
	uint32_t n;

	SW_TIMED(l->stats.ticks_port_rx,
		n = port->ops->rx(port, frames, SW_RX_BURST));
	if (n) {
		give_frames(l, now_ns, port_i, frames, n);
		port->ops->rx_release(port);
	}
	return n;
}

/* Send @n frames of engine @endpoint. */
static void send_all(struct sw_loop *l, uint32_t port_i, uint32_t endpoint,
	struct sw_tx_frame *frames, uint32_t n, uint64_t now_ns)
{
	struct sw_port *port = l->ports[port_i];
	struct sw_pace *pace = &l->pace[port_i];

	if (!l->engines[endpoint]->is_relay)
		for (uint32_t i = 0; i < n; i++)
			frames[i].endpoint = (uint16_t)endpoint;
	if (sw_pace_is_set(pace))
		for (uint32_t i = 0; i < n; i++)
			sw_pace_charge(pace, frames[i].payload_len, now_ns);
	SW_TIMED(l->stats.ticks_port_tx, port->ops->tx(port, frames, n));
}

/* Send at most @room frames of engine @endpoint.  If the engine had its turn
 * for data, it goes last next time. */
static uint32_t tx_engine(struct sw_loop *l, uint32_t port_i, uint32_t endpoint,
	uint32_t room, uint64_t now_ns)
{
	struct sw_engine *engine = l->engines[endpoint];
	struct sw_pace *pace = &l->pace[port_i];
	struct sw_tx_frame frames[SW_TX_BURST];
	uint32_t sum = 0, n;

	while (engine && sum < room) {
		uint32_t max =
			room - sum < SW_TX_BURST ? room - sum : SW_TX_BURST;

		engine->holds_data = !sw_pace_may(pace, now_ns);
		max = sw_pace_frames(pace, now_ns, max);
		SW_TIMED(engine->stats->ticks_engine_tx,
			n = engine->tx(engine, now_ns, port_i, frames, max));
		if (!n)
			break;
		send_all(l, port_i, endpoint, frames, n, now_ns);
		if (!engine->holds_data)
			l->first[port_i] = endpoint + 1; /* tx wraps */
		sum += n;
	}
	return sum;
}

/* Let engines take turns in going first: the first engine may take all the
 * room.  Rotating by turns of the loop would be unfair: pacing and the port
 * free room at regular intervals, often the same number of turns apart. */
static uint32_t tx(struct sw_loop *l, struct sw_port *port, uint32_t port_i,
	uint64_t now_ns)
{
	uint32_t room = port->ops->tx_room(port), n = 0;
	uint32_t e = l->first[port_i] < l->n_engines ? l->first[port_i] : 0;
	struct sw_pace *pace = &l->pace[port_i];
	bool is_held;

	for (uint32_t i = 0; i < l->n_engines; i++) {
		n += tx_engine(l, port_i, e, room - n, now_ns);
		e = e + 1 < l->n_engines ? e + 1 : 0;
	}
	if (n < room) { /* no engine has more frames, or pacing holds data */
		is_held = !sw_pace_may(pace, now_ns);
		sw_pace_note(pace, is_held);
		if (is_held)
			l->tx_at_ns = sw_min64(l->tx_at_ns, sw_pace_at(pace));
	}
	/* Flush even without a new frame: frames may wait inside the port. */
	SW_TIMED(l->stats.ticks_port_tx, port->ops->tx_flush(port));
	return n;
}

static uint64_t tick(struct sw_loop *l, uint64_t now_ns)
{
	uint64_t gap = sw_max64(l->gap_ns[0], l->gap_ns[1]);
	uint64_t at = UINT64_MAX;

	sw_set_word(&l->stats.poll_gap_max_us,
		sw_max64(l->stats.poll_gap_max_us, gap / 1000));
	for (uint32_t e = 0; e < l->n_engines; e++)
		if (l->engines[e])
			at = sw_min64(at, l->engines[e]->tick(
						  l->engines[e], now_ns, gap));
	return at;
}

/* Note the gap since the last turn.  Returns whether the gap was long enough
 * for frames to be waiting, which must be handled before any timer fires. */
static bool note_gap(struct sw_loop *l, uint64_t now_ns)
{
	uint64_t since = now_ns - l->last_ns;
	uint64_t gap = since - sw_min64(since, l->rest_ns);

	l->last_ns = now_ns;
	l->rest_ns = 0;
	if (gap >= l->stop_gap_ns) {
		l->skipped_ns += gap - l->stop_gap_ns / STOP_PART;
		sw_count(&l->stats.poll_gaps, 1);
	}
	if (now_ns - l->gap_from_ns >= SW_S) {
		l->gap_from_ns = now_ns;
		l->gap_ns[1] = l->gap_ns[0];
		l->gap_ns[0] = 0;
	}
	l->gap_ns[0] = sw_max64(l->gap_ns[0], gap);
	return since > SW_MS / 2;
}

/* Run the engines' timers that are due. */
static void tick_all(struct sw_loop *l, uint64_t now)
{
	SW_TIMED(l->stats.ticks_tick, l->tick_at_ns = tick(l, now));
	l->tick_at_ns = sw_look_again(l->tick_at_ns, now, l->n_engines);
	l->is_tick_early = false;
}

uint32_t sw_loop_turn(struct sw_loop *l, uint64_t now_ns)
{
	bool had_gap = note_gap(l, now_ns);
	uint64_t now = sw_loop_now(l, now_ns);
	uint32_t n = 0;

	for (uint32_t p = 0; p < l->n_ports; p++)
		n += rx(l, l->ports[p], p, now);
	if (had_gap && !l->n_drain)
		l->n_drain = DRAIN_TURNS;
	l->n_drain = n && l->n_drain ? l->n_drain - 1 : 0;
	if (!l->n_drain && now >= l->tick_at_ns)
		tick_all(l, now);
	l->tx_at_ns = UINT64_MAX;
	for (uint32_t p = 0; p < l->n_ports; p++)
		n += tx(l, l->ports[p], p, now);
	/* Received and sent frames may have set timers, none of them shorter
	 * than TICK_NS. */
	if (n && l->tick_at_ns > now + TICK_NS) {
		l->tick_at_ns = now + TICK_NS;
		l->is_tick_early = true;
	}
	return n;
}

bool sw_loop_foresee(struct sw_loop *l, uint64_t now_ns)
{
	if (!l->is_tick_early || l->n_drain)
		return false;
	tick_all(l, sw_loop_now(l, now_ns));
	return true;
}

uint64_t sw_loop_wait(const struct sw_loop *l, uint64_t now_ns, uint64_t max_ns)
{
	uint64_t now = sw_loop_now(l, now_ns);
	uint64_t at = sw_min64(l->tick_at_ns, l->tx_at_ns);

	return at <= now ? 0 : sw_min64(at - now, max_ns);
}

bool sw_loop_is_busy(const struct sw_loop *l)
{
	for (uint32_t e = 0; e < l->n_engines; e++)
		if (l->engines[e] && l->engines[e]->is_busy(l->engines[e]))
			return true;
	return false;
}
