/* kinds.c - tensors and streams: a row of functions for each.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * They are called off the packet path, which tests t->stream itself. */
#include "engine/worker/wtensor.h"

#include "engine/base/bits.h"
#include "engine/base/error.h"
#include "engine/worker/faults.h"
#include "engine/worker/group.h"
#include "engine/worker/lanes.h"
#include "engine/worker/round.h"
#include "engine/worker/stream.h"

/* --- tensors --- */

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
	if (atomic_load(&zero->said_round) == t->round) {
		sw_round_extend(w, t);
		return;
	}
	sw_round_open(w, t, zero->op, zero->step, zero->root);
	t->n_asked = w->n_local;
	sw_round_start(w, t);
}

static bool tensor_is_known(const struct sw_link *l, const struct sw_wtensor *t)
{
	return t->key != SW_KEY_NONE && t->number < l->n_declared &&
	       t->parts[l->peer.index].place.n_local;
}

/* End the open round when the other lanes have dropped it as well. */
static void tensor_killed(struct sw_worker *w, struct sw_wtensor *t)
{
	sw_lane_tell(w, t);
	if (!t->is_open || !sw_wtensor_is_dead(t, t->round + !t->is_begun))
		return;
	sw_round_drop(w, t);
	if (!t->busy_lanes)
		sw_round_end(w, t, sw_wtensor_why(t)->err);
	sw_sched_run(&w->sched);
}

const struct sw_kind sw_tensor_kind = {.lagging = tensor_lagging,
	.follow = tensor_follow,
	.is_known = tensor_is_known,
	.killed = tensor_killed};

/* --- streams --- */

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

/* Open collectives end in the next turns: in lane 0 when all other lanes have
 * released the group. */
static void stream_killed(struct sw_worker *w, struct sw_wtensor *t)
{
	struct sw_wtensor *u = NULL;

	if (!w->lane_i) /* another lane's server says it through lane 0 */
		sw_lane_tell(w, t);
	while ((u = sw_wtensor_next(t, u)))
		if (u->is_open)
			sw_round_drop(w, u);
	sw_life_release(w, t);
	sw_sched_run(&w->sched);
	if (!w->lane_i)
		sw_life_check_left(w, t);
}

const struct sw_kind sw_stream_kind = {.is_group = true,
	.lagging = stream_lagging,
	.follow = stream_follow,
	.check_left = sw_life_check_left,
	.is_known = stream_is_known,
	.killed = stream_killed};
