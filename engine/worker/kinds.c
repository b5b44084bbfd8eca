/* kinds.c - tensors and streams: a row of functions for each.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * They are called off the packet path, which tests t->stream itself. */
#include "engine/worker/wtensor.h"

#include "engine/base/bits.h"
#include "engine/base/error.h"
#include "engine/worker/deaths.h"
#include "engine/worker/faults.h"
#include "engine/worker/group.h"
#include "engine/worker/lanes.h"
#include "engine/worker/round.h"
#include "engine/worker/stream.h"

/* --- tensors --- */

static void tensor_declare(const struct sw_worker *w,
	const struct sw_wtensor *t, struct sw_declare_item *item)
{
	item->n_elems = t->decl.n_elems;
	item->first = t->first;
	item->dtype = (uint8_t)t->decl.dtype;
}

static bool tensor_lacks_locals(
	const struct sw_worker *w, const struct sw_wtensor *t)
{
	return t->n_asked != w->n_local || t->lacks;
}

static bool tensor_lacks(
	const struct sw_worker *w, const struct sw_wtensor *t, uint32_t local)
{
	return !w->lane_i && /* lane 0 has begun the round */
	       (!sw_bits_has(t->asked, local) || sw_grow_lacks(t, local));
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

/* Begin the round that lane 0 has begun, or go on with it: more of a growing
 * tensor may be written.  A round that begins reads the newest length itself.
 */
static void tensor_follow(struct sw_worker *w, struct sw_wtensor *t,
	const struct sw_wtensor *zero)
{
	if (atomic_load(&zero->said.round) == t->round) {
		sw_round_extend(w, t);
		return;
	}
	sw_round_open(w, t, zero->op, zero->step, zero->root);
	t->n_asked = w->n_local;
	sw_round_start(w, t);
}

static void tensor_lane_said(struct sw_worker *w, struct sw_wtensor *t,
	uint32_t lane, const struct sw_wtensor *theirs)
{
	uint32_t dead_from = atomic_load(&theirs->said.dead_from);

	if (dead_from && dead_from != t->life->from)
		sw_tensor_kill(w, t, dead_from, sw_wtensor_why(theirs));
	if (sw_worker_end_of(w) || !(t->busy_lanes >> lane & 1) ||
		atomic_load(&theirs->said.round) != t->round)
		return;
	t->busy_lanes &= (uint16_t) ~(1u << lane);
	t->weight = theirs->weight;
	t->is_edited |= theirs->is_edited;
	if (!t->busy_lanes && !t->n_missing)
		sw_round_end(w, t, 0);
}

static bool tensor_is_known(const struct sw_link *l, const struct sw_wtensor *t)
{
	return t->key != SW_KEY_NONE && t->number < l->n_declared &&
	       t->parts[l->peer.index].place.n_local;
}

/* End the open round when the other lanes have dropped it as well. */
static void tensor_killed(struct sw_worker *w, struct sw_wtensor *t)
{
	sw_lane_dead(w, t);
	if (!t->is_open || !sw_wtensor_is_dead(t, t->round + !t->is_begun))
		return;
	sw_round_drop(w, t);
	if (!t->busy_lanes)
		sw_round_end(w, t, sw_wtensor_why(t)->err);
	sw_sched_run(&w->sched);
}

static void tensor_on_end(struct sw_worker *w, struct sw_link *l,
	struct sw_wtensor *t, uint32_t round, const struct sw_fault *why)
{
	sw_tensor_kill(w, t, round, why);
	if (t->own_life.from == round)
		sw_bitmap_remove(&l->ends, t->index); /* the server knows */
}

const struct sw_kind sw_tensor_kind = {.declare = tensor_declare,
	.lacks_locals = tensor_lacks_locals,
	.lagging = tensor_lagging,
	.lacks = tensor_lacks,
	.follow = tensor_follow,
	.lane_said = tensor_lane_said,
	.is_known = tensor_is_known,
	.killed = tensor_killed,
	.on_end = tensor_on_end};

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

static bool stream_lacks_locals(
	const struct sw_worker *w, const struct sw_wtensor *t)
{
	return t->stream->n_colls != t->stream->n_newest;
}

static bool stream_lacks(
	const struct sw_worker *w, const struct sw_wtensor *t, uint32_t local)
{
	const struct sw_stream *s = t->stream;

	return !w->lane_i && sw_wgroup_has_local(&s->group, local) &&
	       s->n_asked[local] != s->n_newest;
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

static void stream_follow(struct sw_worker *w, struct sw_wtensor *t,
	const struct sw_wtensor *zero)
{
	_Atomic uint64_t *begun = &sw_stream_lane(w, t->index)->begun;

	if (!t->life->from && atomic_load(begun))
		sw_colls_take(w, t, zero->stream, atomic_exchange(begun, 0));
}

/* Lane 0 waits until the other lanes have released an ended group.  The
 * coordinator decides about a death that another lane's server reports. */
static void stream_lane_said(struct sw_worker *w, struct sw_wtensor *t,
	uint32_t lane, const struct sw_wtensor *theirs)
{
	struct sw_stream_lane *l = &t->stream->lanes[lane];

	if (atomic_load(&theirs->life->n_whys) && !t->life->from &&
		!t->life->is_closed)
		sw_stream_propose(w, t, sw_wtensor_why(theirs));
	if (atomic_load(&l->done) && !sw_worker_end_of(w))
		sw_colls_done(w, t, l);
	if (!(t->life->busy_lanes >> lane & 1) ||
		!atomic_load(&theirs->said.is_released))
		return;
	t->life->busy_lanes &= (uint16_t) ~(1u << lane);
	if (!t->life->busy_lanes)
		sw_dead_released(w, t);
}

/* The coordinator has named the group, also if it has refused the streams. */
static bool stream_is_known(const struct sw_link *l, const struct sw_wtensor *t)
{
	const struct sw_wtensor *u = NULL;

	if (!l->server_i)
		return t->life->key != SW_KEY_NONE;
	while ((u = sw_wtensor_next(t, u)))
		if (tensor_is_known(l, u))
			return true;
	return false;
}

/* Open collectives end in the next turns, when all lanes have released the
 * group. */
static void stream_killed(struct sw_worker *w, struct sw_wtensor *t)
{
	struct sw_wtensor *u = NULL;

	t->life->busy_lanes = w->lane_i ? 1 : sw_lanes_all(w);
	if (w->lane_i || !t->life->busy_lanes)
		sw_dead_released(w, t);
	if (!w->lane_i) /* another lane's server says it through lane 0 */
		sw_lane_dead(w, sw_wtensor_slot(t));
	while ((u = sw_wtensor_next(t, u)))
		if (u->is_open)
			sw_round_drop(w, u);
	sw_sched_run(&w->sched);
}

/* The coordinator's END counts; another server's is proposed to it. */
static void stream_on_end(struct sw_worker *w, struct sw_link *l,
	struct sw_wtensor *t, uint32_t round, const struct sw_fault *why)
{
	if (l->server_i) {
		sw_stream_propose(w, t, why);
		return;
	}
	sw_tensor_kill(w, t, round, why);
	sw_bitmap_remove(&l->ends, sw_wtensor_slot(t)->index);
}

const struct sw_kind sw_stream_kind = {.is_group = true,
	.declare = stream_declare,
	.lacks_locals = stream_lacks_locals,
	.lagging = stream_lagging,
	.lacks = stream_lacks,
	.follow = stream_follow,
	.lane_said = stream_lane_said,
	.check_left = sw_life_check_left,
	.is_known = stream_is_known,
	.killed = stream_killed,
	.on_end = stream_on_end};
