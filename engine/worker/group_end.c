/* group_end.c - abort, close, release and free groups.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * An abort kills the group's streams, as if members had called them differently
 * (faults.c), and so does a close with work open.  The collectives of an ended
 * group end between turns, when no frame borrows a buffer.
 *
 * A group is closed when all local ranks have closed it, none of its streams is
 * open, and all servers have admitted its streams.  Each lane forgets the group
 * when its servers have acknowledged CLOSE.  Lane 0 forgets it last, and tells
 * the coordinator then.  The coordinator may give the indices of the group's
 * keys to other streams, and a lane or a server that still had the old keys
 * could not take the new ones.  The control thread frees the streams' memory.
 * Late frames under the old keys are acknowledged and ignored. */
#include "engine/worker/group.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/worker/faults.h"
#include "engine/worker/lanes.h"
#include "engine/worker/round.h"
#include "engine/worker/stall.h"
#include "engine/worker/stream.h"
#include "engine/worker/todo.h"

enum {
	USES_BURST = 16, /* streams looked at in one call */
	LOOK_MAX = 16,   /* closed groups that a turn looks at */
};

/* --- an ended group --- */

/* Return how far another lane has released the group. */
static enum sw_life_step step_of(
	const struct sw_worker *w, uint32_t lane, const struct sw_wtensor *slot)
{
	return atomic_load(&w->lanes[lane].theirs[slot->index].own_life.step);
}

void sw_life_release(struct sw_worker *w, const struct sw_wtensor *slot)
{
	const struct sw_life *g = &slot->own_life;

	if (!g->from || g->step || sw_bitmap_has(&w->ended, slot->index))
		return;
	for (uint32_t i = 0; i < w->n_others; i++)
		if (step_of(w, i, slot) < SW_LIFE_RELEASED)
			return;
	sw_bitmap_add(&w->dying, slot->index);
}

/* Stop borrowing the buffers of an ended group for good: no push of the group
 * leaves after its end.  Returns false if the next turn must continue. */
static bool release(struct sw_worker *w, struct sw_wtensor *slot)
{
	const struct sw_wtensor *u = NULL;

	while (w->events.keep && (u = sw_wtensor_next(slot, u)))
		if (!w->events.keep(w->events.ctx, u->key))
			return false;
	atomic_store(&slot->own_life.step, SW_LIFE_RELEASED);
	if (w->lane_i)
		sw_lane_tell(w, slot);
	return true;
}

/* End one open collective of an ended group, after release has succeeded. */
static uint32_t end_dead(struct sw_worker *w, struct sw_wtensor *slot)
{
	struct sw_wtensor *u = NULL;

	if (!slot->own_life.step && !release(w, slot))
		return SW_SWEEP_BURST;
	while ((u = sw_wtensor_next(slot, u)))
		if (u->is_open)
			return sw_round_end_some(
				w, u, sw_wtensor_why(slot)->err);
	sw_bitmap_remove(&w->dying, slot->index);
	return 1;
}

uint32_t sw_dead_work(struct sw_worker *w)
{
	return sw_sweep(w, &w->dying, end_dead);
}

/* --- a closed group --- */

void sw_life_closed(struct sw_worker *w, struct sw_wtensor *slot)
{
	slot->own_life.is_closed = true;
	sw_life_retire(w, slot);
	sw_bitmap_add(&w->closing, slot->index);
	for (uint32_t i = 0; i < w->n_links; i++)
		if (w->links[i].server_i)
			sw_link_close(&w->links[i], slot);
}

/* Close the group for this member if all local ranks have closed it or are
 * gone, and nothing is open.  Tell the servers and the other lanes. */
static void check_left(struct sw_worker *w, struct sw_wtensor *t)
{
	const struct sw_wtensor *u = NULL;
	struct sw_life *g = t->life;

	if (g->is_closed || sw_worker_end_of(w) ||
		w->deaths.step == SW_DEATHS_JUDGED)
		return;
	for (uint32_t i = 0; i < SW_LOCAL_WORDS; i++)
		if (t->stream->group.has_local[i] & ~g->closed[i] &
			~w->deaths.gone[i])
			return;
	/* A stream may still be open, or be declared, or lack a dead rank. */
	while ((u = sw_wtensor_next(t, u)))
		if ((u->is_open && !g->from) || u->number >= w->n_admitted ||
			sw_bitmap_has(&w->lacking, u->index))
			return;
	sw_life_closed(w, sw_wtensor_slot(t));
	sw_lane_tell(w, sw_wtensor_slot(t));
}

/* Is this lane done with the group, do its servers, except the coordinator,
 * know that it is closed, and have other lanes forgotten it? */
static bool is_through(const struct sw_worker *w, const struct sw_wtensor *slot)
{
	const struct sw_life *g = &slot->own_life;
	const struct sw_wtensor *u = NULL;

	if ((g->from && !g->step) || sw_bitmap_has(&w->dying, slot->index))
		return false;
	while ((u = sw_wtensor_next(slot, u)))
		if (u->is_open)
			return false;
	for (uint32_t i = 0; i < w->n_links; i++)
		if (w->links[i].server_i &&
			!sw_link_knows_closed(&w->links[i], slot))
			return false;
	for (uint32_t i = 0; i < w->n_others; i++)
		if (step_of(w, i, slot) < SW_LIFE_FORGOTTEN)
			return false;
	return true;
}

static void forget_stream(struct sw_worker *w, struct sw_wtensor *t)
{
	uint32_t i = t->index;

	if (t->key != SW_KEY_NONE) {
		/* lane 0 dropped the key when it told the coordinator */
		if (w->lane_i)
			w->by_key[sw_key_index(t->key)] = SW_KEY_NONE;
		sw_todo_forget(w, t);
	}
	sw_bitmap_remove(&w->lacking, i);
	sw_bitmap_remove(&w->here, i);
	sw_bitmap_remove(&w->added, i);
	if (w->look.worst == i)
		w->look.worst = SW_TENSORS;
}

static void forget_group(struct sw_worker *w, struct sw_wtensor *slot)
{
	struct sw_wtensor *u = slot->own_life.streams, *next;

	sw_bitmap_remove(&w->closing, slot->index);
	w->n_dead -= slot->own_life.from != 0;
	if (slot->own_life.key != SW_KEY_NONE &&
		w->by_group[sw_key_index(slot->own_life.key)] == slot->index)
		w->by_group[sw_key_index(slot->own_life.key)] = SW_KEY_NONE;
	for (; u; u = next) {
		next = u->stream->next;
		forget_stream(w, u);
		if (!w->lane_i && w->events.gone)
			w->events.gone(w->events.ctx, u->id);
	}
	if (w->lane_i)
		atomic_store(&slot->own_life.step, SW_LIFE_FORGOTTEN);
}

/* Forget a closed group if nothing needs it.  Returns whether it did.  A member
 * that leaves the job need not tell the coordinator last. */
static bool work_on(struct sw_worker *w, struct sw_wtensor *slot)
{
	struct sw_link *l = &w->links[0];
	bool is_leaving = w->left_by_ns && !w->lane_i;

	if (!is_leaving && !is_through(w, slot))
		return false;
	if (!w->lane_i)
		sw_link_close(l, slot);
	if (is_leaving && !sw_bitmap_has(&l->closes, slot->index)) {
		sw_bitmap_remove(&w->closing, slot->index);
		sw_peer_wake(&l->peer, 0); /* LEAVE may wait for this */
		return true;
	}
	if (is_leaving || (!w->lane_i && !sw_link_knows_closed(l, slot)))
		return false;
	forget_group(w, slot);
	return true;
}

uint32_t sw_stream_gone_work(struct sw_worker *w)
{
	uint32_t n = 0;

	if (sw_bitmap_is_empty(&w->closing)) {
		w->close_turn = 0;
		return 0;
	}
	for (uint32_t looks = 0; looks < LOOK_MAX; looks++) {
		uint32_t i = sw_bitmap_next(&w->closing, w->close_turn);

		w->close_turn = i == SW_BITMAP_NONE ? 0 : i + 1;
		if (i == SW_BITMAP_NONE)
			break;
		n += work_on(w, &w->tensors[i]);
	}
	if (n)
		sw_todo_renumber(w);
	return n;
}

/* --- calls of local ranks --- */

static bool is_in(const void *p, const void *base, uint64_t bytes)
{
	return (uintptr_t)p - (uintptr_t)base < bytes;
}

/* Does an open collective of a local rank use this memory? */
static bool uses(const struct sw_wtensor *t, uint32_t local, const void *base,
	uint64_t bytes)
{
	const struct sw_stream *s = t->stream;

	for (uint32_t i = 0; i < SW_COLLS; i++) {
		const struct sw_coll *c = &s->colls[i];

		if (c->is_open && sw_coll_has_asked(s, c, local) &&
			(is_in(c->locals[local].from, base, bytes) ||
				is_in(c->locals[local].to, base, bytes)))
			return true;
	}
	return false;
}

bool sw_worker_uses(const struct sw_worker *w, uint32_t local, const void *base,
	uint64_t bytes, uint32_t *at)
{
	for (uint32_t n = 0; n < USES_BURST; n++) {
		uint32_t i = sw_bitmap_next(&w->open, *at);
		const struct sw_wtensor *t;

		if (i == SW_BITMAP_NONE) {
			*at = SW_TENSORS;
			return false;
		}
		*at = i + 1;
		t = &w->tensors[i];
		if (t->kind->is_group && uses(t, local, base, bytes))
			return true;
	}
	return false;
}

/* Look up stream @id if the job runs and @local is in its group: a process may
 * declare streams of groups that it is not in. */
static struct sw_wtensor *stream_at(
	struct sw_worker *w, uint32_t id, uint32_t local)
{
	struct sw_wtensor *t = sw_worker_end_of(w) ? NULL : sw_stream_at(w, id);

	return t && sw_wgroup_has_local(&t->stream->group, local) ? t : NULL;
}

void sw_worker_abort(struct sw_worker *w, uint32_t stream, uint32_t local,
	int err, const char *why)
{
	struct sw_wtensor *t = stream_at(w, stream, local);
	struct sw_fault f = sw_fault_said(err, why);
	char who[SW_MISSING_TEXT];
	uint32_t most, used;

	if (!t)
		return;
	if (err != SW_EEXPIRED) {
		sw_tensor_kill(w, t, 1, &f);
		return;
	}
	/* If there is too little room, cut the list of ranks first, then the
	 * reason. */
	most = sizeof(f.text) - sizeof("; missing: ");
	used = (uint32_t)strnlen(why, most);
	sw_missing_text(w, t, true,
		(uint32_t)sw_max64(SW_MISSING_LEAST,
			sw_min64(most - used + 1, sizeof(who))),
		who);
	snprintf(f.text, sizeof(f.text), "%.*s; missing: %s",
		(int)(most - strlen(who)), why, who);
	sw_stream_propose(w, t, &f);
}

void sw_worker_close_group(struct sw_worker *w, uint32_t stream, uint32_t local)
{
	const struct sw_fault why = {.err = SW_EABORTED,
		.kind = SW_FAULT_UNDONE,
		.one.rank = (uint16_t)(w->first + local)};
	struct sw_wtensor *t = stream_at(w, stream, local), *u = NULL;

	if (!t)
		return;
	while ((u = sw_wtensor_next(t, u)))
		if (u->is_open)
			sw_tensor_kill(w, t, 1, &why);
	if (!sw_bits_has(t->life->closed, local)) {
		sw_bits_add(t->life->closed, local);
		t->life->n_closed++;
	}
	check_left(w, t);
}

/* --- a stream's functions (struct sw_kind) --- */

/* Return the local ranks that have not submitted the newest collective. */
static uint64_t lagging(const struct sw_worker *w, const struct sw_wtensor *t,
	uint32_t i, uint64_t which)
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

static void follow(struct sw_worker *w, struct sw_wtensor *t,
	const struct sw_wtensor *zero)
{
	_Atomic uint64_t *begun = &sw_stream_lane(w, t->index)->begun;

	if (!t->life->from && atomic_load(begun))
		sw_colls_take(w, t, zero->stream, atomic_exchange(begun, 0));
}

/* Does the server know the group?  The coordinator does if it has named the
 * group, even if it has refused the streams. */
static bool is_known(const struct sw_link *l, const struct sw_wtensor *t)
{
	const struct sw_wtensor *u = NULL;

	if (!l->server_i)
		return t->life->key != SW_KEY_NONE;
	while ((u = sw_wtensor_next(t, u)))
		if (sw_link_knows(l, u))
			return true;
	return false;
}

/* Handle the end of a group.  Its open collectives end in the next turns; in
 * lane 0, after all other lanes have released the group. */
static void killed(struct sw_worker *w, struct sw_wtensor *t)
{
	struct sw_wtensor *u = NULL;

	if (!w->lane_i) /* another lane's servers report through lane 0 */
		sw_lane_tell(w, t);
	while ((u = sw_wtensor_next(t, u)))
		if (u->is_open)
			sw_round_drop(w, u);
	sw_life_release(w, t);
	sw_sched_run(&w->sched);
	if (w->lane_i)
		return;
	sw_group_failed(w, sw_wtensor_why(t)->err);
	check_left(w, t);
}

const struct sw_kind sw_stream_kind = {.is_group = true,
	.lagging = lagging,
	.follow = follow,
	.check_left = check_left,
	.is_known = is_known,
	.killed = killed};
