/* trace_events.c - record the effects of frames as events.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "apps/cli/clock.h"
#include "apps/node/trace.h"
#include "apps/node/tracer.h"
#include "engine/wire/wire.h"

static void put(
	struct sw_tracer *t, const struct sw_trace_event *events, uint32_t n)
{
	int fits = sw_spsc_put(&t->to, events, n);

	if (fits != (int)n)
		sw_count(&t->n_untaken, n - (uint32_t)(fits > 0 ? fits : 0));
}

static uint16_t add_peer(struct sw_tracer *t, const struct sw_engine *engine,
	uint32_t slot, const struct sw_engine_peer *is)
{
	uint32_t n = atomic_load_explicit(&t->n_peers, memory_order_relaxed);
	struct sw_trace_peer *told = &t->told_peers[n];
	char address[SW_IP_PORT_TEXT];

	if (n == SW_TRACE_PEERS)
		return SW_TRACE_NO_PEER;
	t->peers[n] = (struct sw_tracer_peer){
		.engine = engine, .is = *is, .slot = slot};
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

/* Return whether a frame of @session belongs to the peer.  @to: its
 * destination; NULL: it was received. */
static bool is_of(const struct sw_tracer_peer *p,
	const struct sw_engine *engine, uint32_t session,
	const struct sw_path *to)
{
	if (p->engine != engine)
		return false;
	return to ? p->is.far_id == session && sw_path_is_same(&p->is.path, to)
		  : p->is.id == session;
}

/* Ask the engine for the peer of a frame's session. */
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

/* Note the name of a tensor of peer @p when its key first appears. */
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

/* Copy the fields of a frame's header into its event, and set the peer. */
static void say_frame(struct sw_tracer *t, const struct sw_header *h,
	uint16_t peer, struct sw_trace_event *e)
{
	e->peer = peer;
	e->key = h->key;
	e->round = h->round;
	e->chunk = h->chunk;
	e->step = h->step;
	if (h->flags & SW_FLAG_RETX)
		e->flags |= SW_TRACE_RETX;
	if (peer != SW_TRACE_NO_PEER)
		note_name(t, &t->peers[peer], h->key);
}

/* Counters that show the effect of frames. */
struct counts {
	uint64_t folded, bytes, done, again, held, held_bytes, old;
};

static struct counts count(const struct sw_stats *s)
{
	return (struct counts){s->push_folded, s->push_bytes, s->chunks_done,
		s->push_again, s->results, s->result_bytes, s->result_again};
}

/* The effect of a received frame. kind SW_TRACE_RX: no event. */
struct fate {
	uint8_t kind, flags;
	uint16_t bytes;
};

static bool is_data(const struct sw_header *h)
{
	return h->type == SW_PUSH || h->type == SW_WANT || h->type == SW_RESULT;
}

/* Return the effect of a frame that was handed on alone. */
static struct fate fate_of_one(const struct sw_header *h,
	const struct counts *was, const struct counts *is)
{
	if (!is_data(h))
		return (struct fate){.kind = SW_TRACE_RX};
	if (is->folded != was->folded)
		return (struct fate){SW_TRACE_FOLD,
			is->done != was->done ? SW_TRACE_COMPLETE : 0,
			(uint16_t)(is->bytes - was->bytes)};
	if (is->held != was->held)
		return (struct fate){SW_TRACE_HOLD, 0,
			(uint16_t)(is->held_bytes - was->held_bytes)};
	if (is->again != was->again || is->old != was->old)
		return (struct fate){.kind = SW_TRACE_AGAIN};
	return (struct fate){.kind = SW_TRACE_RX}; /* the engine dropped it */
}

/* Set the effects of new frames that were handed on together.  If the engine
 * dropped some, the reader finds them by their retransmissions.  The reader
 * also finds the frames that completed sums: no fold follows them. */
static void fates_of_some(const struct sw_header *h, uint32_t n,
	const struct counts *was, const struct counts *is, struct fate *out)
{
	uint32_t n_data = 0;
	uint64_t folded = is->folded - was->folded;
	uint64_t held = is->held - was->held, done = is->done - was->done;
	uint8_t flags = 0;

	for (uint32_t i = 0; i < n; i++)
		n_data += is_data(&h[i]);
	if (folded + held != n_data)
		flags = SW_TRACE_UNSURE;
	if (done)
		flags |= done == n_data ? SW_TRACE_COMPLETE : SW_TRACE_MAYBE;
	for (uint32_t i = 0; i < n; i++) {
		out[i] = (struct fate){.kind = SW_TRACE_RX};
		if (is_data(&h[i]) && (folded || held))
			out[i] = (struct fate){h[i].type == SW_PUSH
						       ? SW_TRACE_FOLD
						       : SW_TRACE_HOLD,
				flags, h[i].payload_len};
	}
}

/* A received burst. */
struct burst {
	struct sw_header h[SW_RX_BURST];
	struct fate fates[SW_RX_BURST];
	uint16_t peers[SW_RX_BURST]; /* peers of data frames */
	struct sw_trace_event out[SW_RX_BURST + 1];
};

/* Return whether a frame is certainly no duplicate and has at most one chunk.
 * Notes its packet number. */
static bool is_new(
	struct sw_tracer *t, const struct sw_header *h, uint16_t peer)
{
	uint32_t *last;

	if (h->type == SW_WANT || h->flags & SW_FLAG_RETX ||
		h->class >= SW_N_CLASSES || peer == SW_TRACE_NO_PEER)
		return false;
	last = &t->peers[peer].last_psn[h->class];
	if ((int32_t)(h->psn_low - *last) <= 0)
		return false;
	*last = h->psn_low;
	return true;
}

/* Read the headers of the next frames to hand on together: only new frames, or
 * a single frame that may be a duplicate. */
static uint32_t next_some(struct sw_tap *tap, const struct sw_rx_frame *f,
	uint32_t n, struct sw_header *h, uint16_t *peers)
{
	for (uint32_t i = 0; i < n; i++) {
		memcpy(&h[i], f[i].data, SW_HEAD_BYTES);
		if (!is_data(&h[i]))
			continue;
		peers[i] = sw_trace_find_peer(
			tap->tracer, tap->inner, h[i].session, NULL);
		if (!is_new(tap->tracer, &h[i], peers[i]))
			return i ? i : 1;
	}
	return n;
}

/* Note a burst of @n_frames frames after their @n events in @out. */
static void note_burst(struct sw_tracer *t, enum sw_trace_kind kind,
	uint32_t n_frames, struct sw_trace_event *out, uint32_t n,
	uint64_t from_ns, uint64_t to_ns)
{
	out[n] = (struct sw_trace_event){.t_ns = to_ns,
		.ns = (uint32_t)(to_ns - from_ns),
		.chunk = n_frames,
		.peer = SW_TRACE_NO_PEER,
		.kind = (uint8_t)kind};
	put(t, out, n + 1);
}

/* Note the data frames of a received burst.  They share its time equally. */
static void note_received(struct sw_tracer *t, struct burst *b, uint32_t n,
	uint64_t from_ns, uint64_t to_ns)
{
	uint64_t ns = (to_ns - from_ns) / n;
	uint32_t n_out = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct sw_trace_event *e = &b->out[n_out];

		if (b->fates[i].kind == SW_TRACE_RX)
			continue;
		n_out++;
		e->t_ns = from_ns + (i + 1) * ns;
		e->ns = (uint32_t)ns;
		e->kind = b->fates[i].kind;
		e->flags = b->fates[i].flags;
		e->bytes = b->fates[i].bytes;
		say_frame(t, &b->h[i], b->peers[i], e);
	}
	note_burst(t, SW_TRACE_RX, n, b->out, n_out, from_ns, to_ns);
}

static void tap_rx(struct sw_engine *engine, uint64_t now_ns, uint32_t port_i,
	const struct sw_rx_frame *frames, uint32_t n)
{
	struct sw_tap *tap = (struct sw_tap *)engine;
	struct burst b;
	uint64_t from_ns = sw_now_ns();
	struct counts was = count(tap->inner->stats), is;

	for (uint32_t i = 0, some; i < n; i += some) {
		some = next_some(tap, &frames[i], n - i, &b.h[i], &b.peers[i]);
		tap->inner->rx(tap->inner, now_ns, port_i, &frames[i], some);
		is = count(tap->inner->stats);
		if (some == 1)
			b.fates[i] = fate_of_one(&b.h[i], &was, &is);
		else
			fates_of_some(&b.h[i], some, &was, &is, &b.fates[i]);
		was = is;
	}
	note_received(tap->tracer, &b, n, from_ns, sw_now_ns());
}

static uint32_t tap_tx(struct sw_engine *engine, uint64_t now_ns,
	uint32_t port_i, struct sw_tx_frame *out, uint32_t max)
{
	struct sw_tap *tap = (struct sw_tap *)engine;
	struct sw_tracer *t = tap->tracer;
	struct sw_trace_event events[SW_TX_BURST + 1];
	uint64_t from_ns = sw_now_ns(), to_ns, ns;
	uint32_t n, n_events = 0;
	struct sw_header h;

	tap->inner->holds_data = engine->holds_data;
	n = tap->inner->tx(tap->inner, now_ns, port_i, out, max);
	if (!n)
		return 0;
	to_ns = sw_now_ns();
	ns = (to_ns - from_ns) / n; /* the burst was built as a whole */
	for (uint32_t i = 0; i < n; i++) {
		struct sw_trace_event *e = &events[n_events];

		memcpy(&h, out[i].head, SW_HEAD_BYTES);
		if (!is_data(&h))
			continue;
		n_events++;
		*e = (struct sw_trace_event){.t_ns = from_ns + (i + 1) * ns,
			.ns = (uint32_t)ns,
			.bytes = (uint16_t)out[i].payload_len,
			.kind = h.type == SW_RESULT ? SW_TRACE_RESULT
						    : SW_TRACE_PUSH};
		say_frame(t, &h,
			sw_trace_find_peer(
				t, tap->inner, h.session, &out[i].to),
			e);
	}
	note_burst(t, SW_TRACE_TX, n, events, n_events, from_ns, to_ns);
	return n;
}

void sw_trace_events_tap(struct sw_engine *tap)
{
	tap->rx = tap_rx;
	tap->tx = tap_tx;
}

/* Find a session of the worker: calls belong to the job of that session. */
static uint16_t own_peer(struct sw_tracer *t)
{
	const struct sw_engine *worker = t->taps[1].inner;
	uint32_t n = atomic_load_explicit(&t->n_peers, memory_order_relaxed);
	struct sw_engine_peer is;

	for (uint32_t i = 0; i < n; i++)
		if (t->peers[i].engine == worker)
			return (uint16_t)i;
	for (uint32_t i = 0; i < SW_MAX_SESSIONS; i++)
		if (worker->peer(worker, i, &is))
			return add_peer(t, worker, i, &is);
	return SW_TRACE_NO_PEER;
}

/* Note the tensor's name of a call.  If ranks of one machine sum among
 * themselves, no frame names the tensor. */
static void name_call(struct sw_tracer *t, uint32_t key)
{
	uint16_t peer = t->taps[1].inner ? own_peer(t) : SW_TRACE_NO_PEER;

	if (peer != SW_TRACE_NO_PEER)
		note_name(t, &t->peers[peer], key);
}

void sw_trace_call(struct sw_tracer *t, const struct sw_trace_call *call)
{
	struct sw_trace_event e;

	if (t->ask.kind != SW_TRACE_ASK_EVENTS)
		return;
	e = (struct sw_trace_event){.t_ns = sw_now_ns(),
		.key = call->key,
		.round = call->number,
		.chunk = call->cookie,
		.peer = (uint16_t)call->local,
		.kind = call->is_done ? SW_TRACE_DONE : SW_TRACE_CALL,
		.flags = call->has_failed ? SW_TRACE_ERROR : 0};
	name_call(t, call->key);
	put(t, &e, 1);
}
