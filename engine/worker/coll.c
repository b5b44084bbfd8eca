/* coll.c - collectives as local ranks submit them.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/stream.h"

#include "engine/base/error.h"
#include "engine/worker/faults.h"
#include "engine/worker/group.h"
#include "engine/worker/lanes.h"
#include "engine/worker/piece.h"
#include "engine/worker/todo.h"
#include "sum/sum.h"

/* The most bytes of a buffer, and between two of its parts. */
#define BYTES_MAX (64ULL << 30)

enum { TURN_BYTES = 128 << 10 }; /* budget of a local stream in a turn */

/* Return 16 bits of CRC over count and root, which each push carries: the
 * header itself has room only for the root's member. */
static uint16_t tag_of(const struct sw_worker_coll *ask)
{
	uint64_t what[2] = {ask->whole ? ask->whole : ask->n_elems,
		sw_coll_has_root(ask->kind) ? ask->root : 0};
	uint32_t crc = sw_crc32c(0, what, sizeof(what));

	return (uint16_t)(crc ^ crc >> 16);
}

static uint32_t n_parts(const struct sw_wgroup *g, enum sw_coll_kind kind)
{
	return sw_coll_is_by_part(kind) ? g->n : 1;
}

static void shape(const struct sw_worker *w, const struct sw_stream *s,
	const struct sw_worker_coll *ask, struct sw_coll *c)
{
	uint32_t elem = sw_dtype_bytes(ask->dtype);

	*c = (struct sw_coll){.ask = *ask,
		.locals = c->locals,
		.is_open = true,
		.number = ask->call ? ask->call : s->n_newest + 1,
		.turn = s->n_newest,
		.chunk_bytes = w->params.payload / elem * elem,
		.part_bytes = ask->n_elems * elem,
		.root = sw_coll_has_root(ask->kind)
				? sw_wgroup_find(&s->group, ask->root)
				: 0,
		.tag = tag_of(ask),
		.opened_ns = w->now_ns};
	c->n_per_part = (uint32_t)((c->part_bytes - 1) / c->chunk_bytes + 1);
	c->n_chunks = c->n_left = c->n_per_part * n_parts(&s->group, ask->kind);
}

/* Return the bytes from the first of @n parts to the end of the last part. */
static uint64_t extent(const struct sw_worker_coll *ask, uint32_t n)
{
	uint64_t part = ask->n_elems * sw_dtype_bytes(ask->dtype);

	return (ask->stride ? ask->stride : part) * (n - 1) + part;
}

/* Do the buffers hold all bytes that this local rank gives and gets in this
 * group?  A wrong answer would let a process read and write beyond them. */
static bool fits(const struct sw_worker *w, const struct sw_wgroup *g,
	const struct sw_worker_coll *ask)
{
	bool is_root = w->first + ask->local == ask->root;
	uint64_t from = extent(ask, ask->kind == SW_REDUCE_SCATTER ? g->n : 1);
	uint64_t to = extent(ask, ask->kind == SW_ALL_GATHER ? g->n : 1);

	return ask->stride <= BYTES_MAX &&
	       (ask->from_bytes >= from ||
		       (ask->kind == SW_BCAST && !is_root)) &&
	       (ask->to_bytes >= to || (ask->kind == SW_REDUCE && !is_root));
}

static bool is_valid(const struct sw_worker *w, const struct sw_wgroup *g,
	const struct sw_worker_coll *ask)
{
	uint32_t elem = sw_dtype_bytes(ask->dtype);

	return sw_coll_has(w->env->sum, ask->kind, ask->op, ask->dtype) &&
	       ask->local < w->n_local && sw_wgroup_has_local(g, ask->local) &&
	       ask->n_elems &&
	       ask->n_elems <= BYTES_MAX / elem / n_parts(g, ask->kind) &&
	       (!sw_coll_has_root(ask->kind) ||
		       sw_wgroup_find(g, ask->root) < g->n) &&
	       fits(w, g, ask);
}

/* --- local ranks --- */

static bool differs(
	const struct sw_worker_coll *a, const struct sw_worker_coll *b)
{
	return sw_coll_op(a->kind, a->op) != sw_coll_op(b->kind, b->op) ||
	       a->dtype != b->dtype || a->n_elems != b->n_elems ||
	       a->whole != b->whole || a->call != b->call ||
	       (sw_coll_has_root(a->kind) && a->root != b->root);
}

/* Kill the stream, because a local rank's call differs from that of the first
 * local rank. */
static int kill_differs(struct sw_worker *w, struct sw_wtensor *t,
	const struct sw_coll *c, const struct sw_worker_coll *ask)
{
	struct sw_fault why = {.err = SW_EMISMATCH,
		.kind = SW_FAULT_CALLED,
		.one = sw_call_of(w, ask),
		.other = sw_call_of(w, &c->ask)};

	if (!ask->call && !c->ask.call)
		why.one.number = why.other.number = c->number;
	sw_tensor_kill(w, t, 1, &why);
	return SW_EMISMATCH;
}

/* Kill the stream: another local rank, which has closed it, will never submit
 * this collective. */
static int kill_closed(struct sw_worker *w, struct sw_wtensor *t,
	const struct sw_worker_coll *ask)
{
	struct sw_fault why = {.err = SW_EABORTED,
		.kind = SW_FAULT_CLOSED,
		.one = sw_call_of(w, ask)};
	uint32_t who = 0;

	while (!sw_bits_has(t->life->closed, who))
		who++;
	why.other.rank = (uint16_t)(w->first + who);
	sw_tensor_kill(w, t, 1, &why);
	return SW_EABORTED;
}

/* Open the next collective when the first local rank submits it. */
static void open_coll(struct sw_worker *w, struct sw_wtensor *t,
	struct sw_coll *c, const struct sw_worker_coll *ask)
{
	struct sw_stream *s = t->stream;

	shape(w, s, ask, c);
	s->n_newest++;
	s->n_open++;
	w->n_open++;
	if (!t->is_open) { /* none of its chunks is in a set */
		t->progress_ns = w->now_ns;
		sw_todo_set_class(w, t);
	}
	sw_wtensor_set_open(t, true);
}

/* Divide the chunks among the lanes, and let the other lanes begin. */
static void divide(struct sw_worker *w, struct sw_wtensor *t, struct sw_coll *c)
{
	uint32_t lanes = 0;

	if (w->n_lanes > 1)
		c->n_left = sw_coll_divide(w, t->stream, c, &lanes);
	t->n_missing += c->n_left;
	if (w->lane_i || !lanes)
		return;
	c->n_left += (uint32_t)__builtin_popcount(lanes);
	for (uint32_t m = lanes; m; m &= m - 1)
		atomic_fetch_or(&t->stream->lanes[__builtin_ctz(m)].begun,
			1ULL << c->turn % SW_COLLS);
	sw_lanes_tell(w, t, lanes);
}

/* Start a collective that all local ranks of the group have submitted. */
static void start(struct sw_worker *w, struct sw_wtensor *t, struct sw_coll *c)
{
	struct sw_stream *s = t->stream;

	c->first = s->first;
	s->first = (s->first + (c->n_chunks + SW_COLL_STRIPE - 1) /
				       SW_COLL_STRIPE * SW_STRIPE_CHUNKS) %
		   sw_place_line(&w->map);
	s->n_colls++;
	t->is_begun = true;
	if (sw_stream_is_here(w, s))
		sw_bitmap_add(&w->here, t->index);
	else
		divide(w, t, c);
	sw_stream_enter(w, t);
}

static int ask_for(struct sw_worker *w, struct sw_wtensor *t,
	const struct sw_worker_coll *ask)
{
	struct sw_stream *s = t->stream;
	uint32_t n = s->n_asked[ask->local];
	struct sw_coll *c = &s->colls[n % SW_COLLS];

	if (n == s->n_newest) {
		if (c->is_open)
			return SW_EAGAIN;
		open_coll(w, t, c, ask);
	}
	if (differs(&c->ask, ask))
		return kill_differs(w, t, c, ask);
	if (ask->op == SW_PREMUL_SUM) /* the factor of other ranks is 1 */
		c->ask.op = SW_PREMUL_SUM;
	s->n_asked[ask->local]++;
	c->n_asked++;
	c->locals[ask->local] = (struct sw_coll_local){.from = ask->from,
		.to = ask->to,
		.stride = ask->stride ? ask->stride : c->part_bytes,
		.scale = ask->op == SW_PREMUL_SUM ? ask->scale : 1,
		.cookie = ask->cookie};
	if (c->n_asked == s->group.n_here)
		start(w, t, c);
	sw_deaths_check_local(w, t);
	return 0;
}

int sw_worker_coll(struct sw_worker *w, const struct sw_worker_coll *ask)
{
	struct sw_wtensor *t;

	if (sw_worker_end_of(w))
		return sw_worker_end_of(w);
	t = sw_stream_at(w, ask->stream);
	if (!t)
		return SW_EINVAL;
	if (t->life->from)
		return sw_wtensor_why(t)->err;
	if (!is_valid(w, &t->stream->group, ask))
		return SW_EINVAL;
	if (sw_bits_has(t->life->closed, ask->local))
		return SW_ECLOSED;
	if (t->life->n_closed)
		return kill_closed(w, t, ask);
	if (t->number >= w->n_admitted)
		return SW_EAGAIN;
	return ask_for(w, t, ask);
}

/* --- groups whose ranks are all local ---
 *
 * They need no server.  Each turn does some chunks of one stream, so that a
 * large collective does not keep the lcore from its frames. */

static void do_chunk(struct sw_worker *w, const struct sw_stream *s,
	struct sw_coll *c, uint32_t chunk)
{
	const struct sw_piece p = sw_piece_of(w, s, c, chunk);
	const uint8_t *bytes;

	if (sw_coll_is_sum(c->ask.kind)) {
		w->made_at = w->made[0];
		c->weight = sw_piece_give(w, s, &p, &bytes);
		sw_piece_take(s, &p, bytes);
	} else {
		c->weight = 1;
		sw_piece_copy_own(s, &p);
	}
}

static bool has_chunks(const struct sw_wtensor *t)
{
	return t->is_open && !t->life->from &&
	       t->stream->here_coll != t->stream->n_colls;
}

uint32_t sw_stream_local_work(struct sw_worker *w)
{
	uint32_t i, n = 1;
	struct sw_wtensor *t;
	struct sw_stream *s;

	if (sw_bitmap_is_empty(&w->here))
		return 0;
	i = sw_bitmap_turn(&w->here, &w->here_turn);
	t = &w->tensors[i];
	s = t->stream;
	t->progress_ns = w->now_ns;
	for (; has_chunks(t) && n * w->params.payload < TURN_BYTES; n++) {
		struct sw_coll *c = &s->colls[s->here_coll % SW_COLLS];

		do_chunk(w, s, c, s->here_at++);
		if (--c->n_left)
			continue;
		s->here_coll++;
		s->here_at = 0;
		sw_coll_end(w, t, c, 0);
	}
	if (!has_chunks(t))
		sw_bitmap_remove(&w->here, i);
	return n;
}

/* --- lanes --- */

/* Return the earliest of the collectives @begun, all of which are among the
 * last SW_COLLS. */
static uint32_t earliest(const struct sw_stream *zero, uint64_t begun)
{
	uint32_t first = (uint32_t)__builtin_ctzll(begun);

	for (; begun; begun &= begun - 1) {
		uint32_t at = (uint32_t)__builtin_ctzll(begun);

		if ((int32_t)(zero->colls[at].turn - zero->colls[first].turn) <
			0)
			first = at;
	}
	return first;
}

static void take_one(
	struct sw_worker *w, struct sw_wtensor *t, const struct sw_coll *zero)
{
	struct sw_coll *c = &t->stream->colls[t->stream->n_colls % SW_COLLS];

	open_coll(w, t, c, &zero->ask);
	c->locals = zero->locals;
	c->number = zero->number;
	c->turn = zero->turn;
	c->first = zero->first;
	t->stream->n_colls++;
	t->is_begun = true;
	divide(w, t, c);
}

void sw_colls_take(struct sw_worker *w, struct sw_wtensor *t,
	const struct sw_stream *zero, uint64_t begun)
{
	while (begun) {
		uint32_t at = earliest(zero, begun);

		take_one(w, t, &zero->colls[at]);
		begun &= ~(1ULL << at);
	}
	sw_stream_enter(w, t);
}

void sw_colls_done(
	struct sw_worker *w, struct sw_wtensor *t, struct sw_stream_lane *lane)
{
	uint64_t done = atomic_exchange(&lane->done, 0);

	t->progress_ns = w->now_ns;
	for (; done && !t->life->from; done &= done - 1) {
		uint32_t at = (uint32_t)__builtin_ctzll(done);
		struct sw_coll *c = &t->stream->colls[at];

		if (lane->weights[at])
			c->weight = lane->weights[at];
		c->is_edited |= lane->are_edited[at];
		if (--c->n_left == 0)
			sw_coll_end(w, t, c, 0);
	}
}
