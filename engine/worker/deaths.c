/* deaths.c - abort whatever depends on a rank that has died or left.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A local rank that left by closing ends only open rounds and collectives that
 * still need it.  A local rank that died ends everything that includes it, open
 * or not: the streams of its groups, and each tensor's rounds that it has not
 * begun, since these cannot complete.  If no group without the dead rank is
 * alive, the whole job ends for the same reason.
 *
 * For members, the coordinator makes that decision, and STATUS lists the
 * members that are gone.
 *
 * In an asynchronous job, a death ends only the workers that wait for the dead
 * member.  A server may have answered before the death, or learn of the death
 * later than we do, with a push of the dead member still in flight.  So a WAIT
 * counts only when all servers must know of the death.  A leaving member may
 * notice after dead_after and then sends LEAVE; a server that misses the LEAVE
 * gives up after another dead_after; a third allows for stopped clocks. */
#include "engine/worker/faults.h"

#include <string.h>

#include "engine/base/bits.h"
#include "engine/base/error.h"
#include "engine/worker/group.h"
#include "engine/worker/round.h"
#include "engine/worker/stream.h"

/* Kill the tensor from its open round on, or the stream's group. */
static void end(
	struct sw_worker *w, struct sw_wtensor *t, const struct sw_fault *why)
{
	sw_tensor_kill(w, t, t->round + !t->is_begun, why);
}

/* --- local ranks --- */

/* Return why local rank @local is missing.  The worker keeps the fault only of
 * the local rank that died last. */
static struct sw_fault why_gone(const struct sw_worker *w, uint32_t local)
{
	bool has_died = sw_bits_has(w->deaths.died, local);
	struct sw_fault f;

	if (has_died && local == w->deaths.local)
		return w->deaths.why;
	f = (struct sw_fault){.err = SW_EPEER,
		.kind = SW_FAULT_GONE,
		.key = SW_KEY_NONE,
		.one = {.rank = (uint16_t)(w->first + local),
			.op = has_died ? SW_HAS_DIED : SW_HAS_LEFT}};
	sw_fault_at(&f, w->node_name);
	return f;
}

/* End the tensor or group that waits for local rank @local.  If @t is a tensor
 * and the rank has left, fail the job. */
static void miss(struct sw_worker *w, struct sw_wtensor *t, uint32_t local)
{
	struct sw_fault why = why_gone(w, local);

	if (t->kind->is_group || sw_bits_has(w->deaths.died, local)) {
		end(w, t, &why);
		return;
	}
	why.key = t->key;
	sw_worker_fail_for(w, &why);
}

void sw_deaths_miss(struct sw_worker *w, struct sw_wtensor *t)
{
	uint32_t local = sw_wtensor_lags(w, t, w->deaths.gone);

	if (local < SW_LOCAL_RANKS)
		miss(w, t, local);
}

/* Return a dead local rank of the group, preferably the last; SW_LOCAL_RANKS if
 * it has none. */
static uint32_t find_dead(const struct sw_worker *w, const struct sw_wgroup *g)
{
	if (sw_wgroup_has_local(g, w->deaths.local))
		return w->deaths.local;
	for (uint32_t i = 0; i < SW_LOCAL_WORDS; i++) {
		uint64_t dead = w->deaths.died[i] & g->has_local[i];

		if (dead)
			return 64 * i + (uint32_t)__builtin_ctzll(dead);
	}
	return SW_LOCAL_RANKS;
}

/* Kill the tensor from the first round on that lacks a dead local rank: the
 * current round (the next if none has begun), or the round after it. */
static void tensor_die(struct sw_worker *w, struct sw_wtensor *t)
{
	uint32_t round = t->round + !t->is_begun;

	if (t->mode != SW_MODE_SYNC)
		return;
	if (sw_wtensor_lags(w, t, w->deaths.died) == SW_LOCAL_RANKS)
		round++;
	sw_tensor_kill(w, t, round, &w->deaths.why);
}

static void stream_die(struct sw_worker *w, struct sw_wtensor *t)
{
	uint32_t dead = find_dead(w, &t->stream->group);
	struct sw_fault why;

	if (dead == SW_LOCAL_RANKS || t->life->is_closed)
		return;
	why = why_gone(w, dead);
	sw_tensor_kill(w, t, 1, &why);
}

static uint32_t look_at(struct sw_worker *w, struct sw_wtensor *t)
{
	sw_bitmap_remove(&w->lacking, t->index);
	if (w->deaths.step == SW_DEATHS_JUDGED) {
		w->deaths.is_needed |=
			t->kind->is_group && !t->life->from &&
			!t->life->is_closed &&
			find_dead(w, &t->stream->group) == SW_LOCAL_RANKS;
		return 1;
	}
	if (w->deaths.step && t->kind->is_group)
		stream_die(w, t);
	else if (w->deaths.step)
		tensor_die(w, t);
	sw_deaths_check_local(w, t);
	if (t->kind->check_left)
		t->kind->check_left(w, t);
	return 1 + w->n_local / 64;
}

static void look_at_all(struct sw_worker *w, enum sw_deaths_step step)
{
	w->deaths.step = step;
	sw_bitmap_add_all(&w->lacking, &w->added);
}

uint32_t sw_deaths_work(struct sw_worker *w)
{
	uint32_t n = sw_sweep(w, &w->lacking, look_at);

	if (!w->deaths.step || !sw_bitmap_is_empty(&w->lacking) ||
		sw_worker_end_of(w))
		return n;
	/* All tensors are checked: go to the next step. */
	if (w->deaths.step == SW_DEATHS_ENDED)
		w->deaths.step = SW_DEATHS_NOBODY;
	else if (w->deaths.is_needed)
		look_at_all(w, SW_DEATHS_ENDED);
	else
		sw_worker_fail_for(w, &w->deaths.why);
	return n + 1;
}

void sw_worker_local_left(struct sw_worker *w, uint32_t local)
{
	w->deaths.n_gone++;
	sw_bits_add(w->deaths.gone, local);
	sw_bitmap_add_all(&w->lacking, &w->added);
	sw_deaths_work(w);
}

void sw_worker_local_died(
	struct sw_worker *w, uint32_t local, const struct sw_fault *why)
{
	sw_bits_add(w->deaths.died, local);
	w->deaths.local = local;
	w->deaths.why = *why;
	w->deaths.is_needed = false;
	look_at_all(w, SW_DEATHS_JUDGED);
	sw_worker_local_left(w, local);
}

/* --- members --- */

void sw_deaths_tick(struct sw_worker *w)
{
	if (w->deaths.past != w->deaths.left &&
		w->now_ns >= w->deaths.past_at_ns)
		sw_set_word(&w->deaths.past, w->deaths.left);
}

/* Fail the worker if a WAIT names a member that left.  A server that knew the
 * member reports the loss itself.  A server that never knew the member cannot,
 * and no push arrives there that would end the wait. */
void sw_deaths_on_wait(struct sw_worker *w, const struct sw_link *l,
	const struct sw_wtensor *t, uint64_t awaited)
{
	const struct sw_worker *zero = w->lane_i ? w->lanes->zero : w;
	uint64_t who = awaited & sw_word(&zero->deaths.past);

	if (who)
		sw_worker_fail(w, SW_EPEER, t->key,
			"server %.64s waits for rank %u, which has left; "
			"tensor %.40s cannot complete",
			l->name, w->firsts[__builtin_ctzll(who)], t->name);
}

void sw_deaths_learn(struct sw_worker *w, const struct sw_status *st)
{
	uint64_t gone = (~0ULL >> (64 - w->n_members)) & ~st->joined &
			~(1ULL << w->member);

	if (w->params.mode == SW_MODE_ASYNC) {
		if (gone != w->deaths.left)
			w->deaths.past_at_ns = w->now_ns + SW_LEAVE_FOR_NS +
					       3 * w->params.dead_after;
		w->deaths.left = gone;
		return;
	}
	if (gone & ~w->deaths.members)
		w->deaths.learned_ns = w->now_ns;
	w->deaths.members = gone;
	w->deaths.member = st->member % SW_MAX_MEMBERS;
	w->deaths.last = st->why;
}

void sw_deaths_check_members(
	struct sw_worker *w, struct sw_wtensor *t, uint64_t awaited)
{
	const struct sw_wgroup *g = sw_group_of(t);
	uint64_t who = w->deaths.members & (g ? g->members : awaited);
	struct sw_fault gone = {.err = SW_EPEER, .kind = SW_FAULT_GONE};

	if (!who)
		return;
	/* The worker keeps the fault only of the member that died last. */
	gone.one.rank = w->firsts[__builtin_ctzll(who)];
	sw_fault_received(w, t, &gone);
	end(w, t, who >> w->deaths.member & 1 ? &w->deaths.last : &gone);
}
