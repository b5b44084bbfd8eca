/* trace_events.c - record what frames did, as events.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "apps/cli/clock.h"
#include "apps/node/trace.h"
#include "apps/node/tracer.h"
#include "engine/wire/wire.h"

static void put(struct sw_tracer *t, const struct sw_trace_event *e)
{
	if (!sw_spsc_put(&t->to, e, 1))
		sw_count(&t->n_untaken, 1);
}

static uint16_t add_peer(struct sw_tracer *t, const struct sw_engine *engine,
	uint32_t slot, const struct sw_engine_peer *is)
{
	uint32_t n = atomic_load_explicit(&t->n_peers, memory_order_relaxed);
	struct sw_trace_peer *told = &t->told_peers[n];
	char address[SW_IP_PORT_TEXT];

	if (n == SW_TRACE_PEERS)
		return SW_TRACE_NO_PEER;
	t->peers[n] = (struct sw_tracer_peer){engine, *is, slot};
	*told = (struct sw_trace_peer){.epoch = is->epoch,
		.seed = is->seed,
		.member = is->member,
		.is_worker = engine == t->taps[1].inner};
	memcpy(told->job, is->job, sizeof(told->job));
	strcpy(told->address,
		sw_ip_port_text(is->path.ip, is->path.udp, address));
	atomic_store_explicit(&t->n_peers, n + 1, memory_order_release);
	return (uint16_t)n;
}

/* Does a frame under @session, from @from_peer or to it, belong to the peer? */
static bool is_of(const struct sw_tracer_peer *p,
	const struct sw_engine *engine, uint32_t session,
	const struct sw_path *to)
{
	if (p->engine != engine)
		return false;
	return to ? p->is.far_id == session && sw_path_is_same(&p->is.path, to)
		  : p->is.id == session;
}

/* Ask the engine for the session of a frame. */
static uint16_t ask_peer(struct sw_tracer *t, const struct sw_engine *engine,
	uint32_t session, const struct sw_path *to)
{
	uint32_t i = to ? 0 : session >> 16;
	uint32_t end = to ? SW_MAX_SESSIONS : i + 1;
	struct sw_tracer_peer p = {.engine = engine};

	for (; i < end; i++)
		if (engine->peer(engine, i, &p.is) &&
			is_of(&p, engine, session, to))
			return add_peer(t, engine, i, &p.is);
	return SW_TRACE_NO_PEER;
}

uint16_t sw_trace_find_peer(struct sw_tracer *t, const struct sw_engine *engine,
	uint32_t session, const struct sw_path *to)
{
	uint32_t n = atomic_load_explicit(&t->n_peers, memory_order_relaxed);

	if (t->last_peer < n &&
		is_of(&t->peers[t->last_peer], engine, session, to))
		return t->last_peer;
	for (uint32_t i = 0; i < n; i++)
		if (is_of(&t->peers[i], engine, session, to))
			return t->last_peer = (uint16_t)i;
	return t->last_peer = ask_peer(t, engine, session, to);
}

/* Note the name of a tensor of peer @p, when its key is first seen. */
static void note_name(
	struct sw_tracer *t, const struct sw_tracer_peer *p, uint32_t key)
{
	uint32_t n = atomic_load_explicit(&t->n_names, memory_order_relaxed);
	uint32_t at =
		(key ^ (uint32_t)p->is.epoch) * 2654435761u % SW_TRACE_PLACES;
	struct sw_engine_tensor is;
	struct sw_trace_name *name;

	for (; t->places[at]; at = (at + 1) % SW_TRACE_PLACES) {
		name = &t->names[t->places[at] - 1];
		if (name->key == key && name->epoch == p->is.epoch)
			return;
	}
	if (n == SW_TRACE_NAMES ||
		!p->engine->tensor(p->engine, p->slot, key, &is))
		return;
	name = &t->names[n];
	*name = (struct sw_trace_name){
		.epoch = p->is.epoch, .key = key, .is_stream = is.is_stream};
	memcpy(name->name, is.name, strnlen(is.name, SW_NAME_MAX - 1));
	t->places[at] = (uint16_t)(n + 1);
	atomic_store_explicit(&t->n_names, n + 1, memory_order_release);
}

static void note_frame(struct sw_tracer *t, const struct sw_engine *engine,
	const struct sw_header *h, const struct sw_path *to,
	struct sw_trace_event *e)
{
	e->peer = sw_trace_find_peer(t, engine, h->session, to);
	e->key = h->key;
	e->round = h->round;
	e->chunk = h->chunk;
	e->step = h->step;
	if (h->flags & SW_FLAG_RETX)
		e->flags |= SW_TRACE_RETX;
	if (e->peer != SW_TRACE_NO_PEER)
		note_name(t, &t->peers[e->peer], h->key);
	put(t, e);
}

/* Counters that tell what a frame did. */
struct counts {
	uint64_t folded, bytes, done, again, held, held_bytes, old;
};

static struct counts count(const struct sw_stats *s)
{
	return (struct counts){s->push_folded, s->push_bytes, s->chunks_done,
		s->push_again, s->results, s->result_bytes, s->result_again};
}

/* Note a received data frame by what it has changed. */
static void note_received(struct sw_tap *tap, const struct sw_header *h,
	const struct counts *was, uint64_t from_ns, uint64_t to_ns)
{
	struct counts is = count(tap->inner->stats);
	struct sw_trace_event e = {.t_ns = to_ns,
		.ns = (uint32_t)(to_ns - from_ns),
		.kind = SW_TRACE_AGAIN};

	if (is.folded != was->folded) {
		e.kind = SW_TRACE_FOLD;
		e.bytes = (uint16_t)(is.bytes - was->bytes);
		e.flags = is.done != was->done ? SW_TRACE_COMPLETE : 0;
	} else if (is.held != was->held) {
		e.kind = SW_TRACE_HOLD;
		e.bytes = (uint16_t)(is.held_bytes - was->held_bytes);
	} else if (is.again == was->again && is.old == was->old) {
		return; /* dropped: a counter says why */
	}
	note_frame(tap->tracer, tap->inner, h, NULL, &e);
}

static void note_burst(struct sw_tracer *t, enum sw_trace_kind kind, uint32_t n,
	uint64_t from_ns, uint64_t to_ns)
{
	put(t, &(struct sw_trace_event){.t_ns = to_ns,
		       .ns = (uint32_t)(to_ns - from_ns),
		       .chunk = n,
		       .peer = SW_TRACE_NO_PEER,
		       .kind = (uint8_t)kind});
}

static void tap_rx(struct sw_engine *engine, uint64_t now_ns, uint32_t port_i,
	const struct sw_rx_frame *frames, uint32_t n)
{
	struct sw_tap *tap = (struct sw_tap *)engine;
	uint64_t begin_ns = sw_now_ns(), from_ns = begin_ns;
	struct sw_header h;

	for (uint32_t i = 0; i < n; i++) {
		struct counts was = count(tap->inner->stats);
		uint64_t to_ns;

		memcpy(&h, frames[i].data, SW_HEAD_BYTES);
		tap->inner->rx(tap->inner, now_ns, port_i, &frames[i], 1);
		to_ns = sw_now_ns();
		if (h.type == SW_PUSH || h.type == SW_WANT ||
			h.type == SW_RESULT)
			note_received(tap, &h, &was, from_ns, to_ns);
		from_ns = to_ns;
	}
	note_burst(tap->tracer, SW_TRACE_RX, n, begin_ns, from_ns);
}

/* Note the data frames of a burst.  It was built as a whole, so each has a part
 * of its time. */
static void note_sent(struct sw_tap *tap, const struct sw_tx_frame *out,
	uint32_t n, uint64_t from_ns, uint64_t ns)
{
	struct sw_header h;

	for (uint32_t i = 0; i < n; i++) {
		struct sw_trace_event e = {.t_ns = from_ns + ns * (i + 1) / n,
			.bytes = (uint16_t)out[i].payload_len};

		memcpy(&h, out[i].head, SW_HEAD_BYTES);
		e.ns = (uint32_t)(e.t_ns - (from_ns + ns * i / n));
		e.kind = h.type == SW_RESULT ? SW_TRACE_RESULT : SW_TRACE_PUSH;
		if (h.type == SW_RESULT || h.type == SW_PUSH ||
			h.type == SW_WANT)
			note_frame(tap->tracer, tap->inner, &h, &out[i].to, &e);
	}
}

static uint32_t tap_tx(struct sw_engine *engine, uint64_t now_ns,
	uint32_t port_i, struct sw_tx_frame *out, uint32_t max)
{
	struct sw_tap *tap = (struct sw_tap *)engine;
	uint64_t from_ns = sw_now_ns(), to_ns;
	uint32_t n;

	tap->inner->holds_data = engine->holds_data;
	n = tap->inner->tx(tap->inner, now_ns, port_i, out, max);
	if (!n)
		return 0;
	to_ns = sw_now_ns();
	note_sent(tap, out, n, from_ns, to_ns - from_ns);
	note_burst(tap->tracer, SW_TRACE_TX, n, from_ns, to_ns);
	return n;
}

void sw_trace_events_tap(struct sw_engine *tap)
{
	tap->rx = tap_rx;
	tap->tx = tap_tx;
}

void sw_trace_call(struct sw_tracer *t, const struct sw_trace_call *call)
{
	if (t->ask.kind != SW_TRACE_ASK_EVENTS)
		return;
	put(t, &(struct sw_trace_event){.t_ns = sw_now_ns(),
		       .key = call->key,
		       .round = call->number,
		       .chunk = call->cookie,
		       .peer = (uint16_t)call->local,
		       .kind = call->is_done ? SW_TRACE_DONE : SW_TRACE_CALL,
		       .flags = call->has_failed ? SW_TRACE_ERROR : 0});
}
