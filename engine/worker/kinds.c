/* kinds.c - tensors and streams: a row of functions for each.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * They are called off the packet path, which tests t->stream itself. */
#include "engine/base/bits.h"
#include "engine/base/error.h"
#include "engine/worker/stream.h"

/* --- tensors --- */

static void tensor_declare(const struct sw_worker *w,
	const struct sw_wtensor *t, struct sw_declare_item *item)
{
	item->n_elems = t->decl.n_elems;
	item->first = t->first;
	item->dtype = (uint8_t)t->decl.dtype;
}

static int tensor_divide(
	const struct sw_worker *w, struct sw_wtensor *t, uint32_t first)
{
	if (first >= sw_place_line(&w->map))
		return SW_EPROTO;
	t->own = sw_place_init(&w->lane_map, first, t->n_chunks, w->lane_i);
	for (uint32_t i = 0; i < w->n_others; i++)
		if (sw_place_init(&w->lane_map, first, t->n_chunks, i + 1)
				.n_local)
			t->lanes |= 1u << i;
	return 0;
}

static struct sw_place tensor_place_at(const struct sw_worker *w,
	const struct sw_wtensor *t, const struct sw_link *l)
{
	return sw_place_init(&w->map, t->first, t->n_chunks, l->server_i);
}

static struct sw_query tensor_ask(
	const struct sw_wtensor *t, const struct sw_part *p, uint32_t local)
{
	return (struct sw_query){.key = t->key,
		.round = t->round,
		.chunk = sw_place_global(&p->place, local)};
}

static bool tensor_lacks_locals(
	const struct sw_worker *w, const struct sw_wtensor *t)
{
	return t->n_asked != w->n_local || t->lacks;
}

/* Return the local ranks that have not asked, or have not written all of their
 * buffer. */
static uint64_t tensor_lagging(const struct sw_worker *w,
	const struct sw_wtensor *t, uint32_t i, uint64_t which)
{
	uint32_t n = w->n_local - 64 * i;
	uint64_t out = ~t->asked[i] & (n < 64 ? (1ULL << n) - 1 : ~0ULL);

	for (uint64_t m = t->lacks ? t->asked[i] : 0; m; m &= m - 1)
		if (sw_grow_lacks(t, 64 * i + (uint32_t)__builtin_ctzll(m)))
			out |= m & -m;
	return out & which;
}

static void tensor_lane_done(
	struct sw_worker *w, struct sw_wtensor *t, uint32_t lane)
{
	const struct sw_wtensor *theirs = &w->lanes[lane].theirs[t->index];

	t->weight = theirs->weight;
	t->is_edited |= theirs->is_edited;
	if (--t->n_lanes == 0 && !t->n_missing)
		sw_round_end(w, t, 0);
}

static void tensor_lane_killed(struct sw_worker *w, struct sw_wtensor *t,
	uint32_t round, const struct sw_wtensor *theirs)
{
	sw_tensor_kill(w, t, round, sw_wtensor_why(theirs));
}

static void tensor_give_up(
	struct sw_worker *w, struct sw_wtensor *t, const struct sw_fault *why)
{
	char text[SW_TEXT_MAX];

	sw_worker_fail(w, why->err, t->key, "%s",
		sw_fault_text(why, false, t->name, text));
}

const struct sw_kind sw_tensor_kind = {.declare = tensor_declare,
	.divide = tensor_divide,
	.place_at = tensor_place_at,
	.ask = tensor_ask,
	.lacks_locals = tensor_lacks_locals,
	.lagging = tensor_lagging,
	.lane_done = tensor_lane_done,
	.lane_killed = tensor_lane_killed,
	.end_some = sw_round_end,
	.give_up = tensor_give_up};

/* --- streams --- */

static void stream_declare(const struct sw_worker *w,
	const struct sw_wtensor *t, struct sw_declare_item *item)
{
	const struct sw_stream *s = t->stream;

	item->stream.members = s->group.members;
	if (t->key == SW_KEY_NONE)
		item->stream.ranks_crc = s->group.crc;
	else
		item->stream.group = t->first;
	item->stream.window_log2 = sw_stream_is_here(w, s)
					   ? SW_WINDOW_MIN_LOG2
					   : t->decl.window_log2;
}

/* Each collective is divided by itself. */
static int stream_divide(
	const struct sw_worker *w, struct sw_wtensor *t, uint32_t first)
{
	return 0;
}

static struct sw_place stream_place_at(const struct sw_worker *w,
	const struct sw_wtensor *t, const struct sw_link *l)
{
	uint32_t log2 = t->decl.window_log2;

	return sw_place_row(l->peer.index << log2, 1u << log2);
}

static struct sw_query stream_ask(
	const struct sw_wtensor *t, const struct sw_part *p, uint32_t local)
{
	return (struct sw_query){
		.key = t->key, .round = t->stream->pieces[p->from + local].j};
}

static bool stream_lacks_locals(
	const struct sw_worker *w, const struct sw_wtensor *t)
{
	return t->stream->n_colls != t->stream->n_newest;
}

/* Return the local ranks that have submitted less than others. */
static uint64_t stream_lagging(const struct sw_worker *w,
	const struct sw_wtensor *t, uint32_t i, uint64_t which)
{
	const struct sw_stream *s = t->stream;
	uint64_t out = 0;

	for (which &= s->group.has_local[i]; which; which &= which - 1) {
		uint32_t local = 64 * i + (uint32_t)__builtin_ctzll(which);

		if (s->n_asked[local] != s->n_newest)
			out |= which & -which;
	}
	return out;
}

static void stream_lane_done(
	struct sw_worker *w, struct sw_wtensor *t, uint32_t lane)
{
	sw_colls_done(w, t, &t->stream->lanes[lane]);
}

static void stream_lane_killed(struct sw_worker *w, struct sw_wtensor *t,
	uint32_t round, const struct sw_wtensor *theirs)
{
	if (!t->life->from && !t->life->is_closed)
		sw_stream_propose(w, t, sw_wtensor_why(theirs));
}

static void stream_drop(struct sw_worker *w, struct sw_wtensor *t)
{
	struct sw_stream *s = t->stream;

	s->head = s->tail;
	for (uint32_t l = 0; l < w->n_links; l++)
		sw_stream_block(&w->links[l], &s->links[l], false);
}

static void stream_end_some(struct sw_worker *w, struct sw_wtensor *t, int err)
{
	if (t->n_missing)
		sw_round_drop(w, t);
	sw_coll_end(w, t, sw_stream_oldest(t->stream), err);
}

const struct sw_kind sw_stream_kind = {.declare = stream_declare,
	.divide = stream_divide,
	.place_at = stream_place_at,
	.ask = stream_ask,
	.lacks_locals = stream_lacks_locals,
	.lagging = stream_lagging,
	.lane_done = stream_lane_done,
	.lane_killed = stream_lane_killed,
	.drop = stream_drop,
	.end_some = stream_end_some,
	.give_up = sw_stream_propose};
