/* lane.c - lanes of one worker tell each other of changes.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/lanes.h"

#include "engine/worker/faults.h"
#include "engine/worker/group.h"
#include "engine/worker/probe.h"
#include "engine/worker/round.h"
#include "engine/worker/stream.h"
#include "engine/worker/tensors.h"
#include "engine/worker/tuning.h"

_Static_assert((int)SW_TENSORS == (int)SW_FLAGS, "a flag for each tensor");

void sw_lane_init(struct sw_lane *lane, const struct sw_worker *zero)
{
	memset(lane, 0, sizeof(*lane));
	lane->zero = zero;
}

static bool is_empty(const struct sw_lane_news *news)
{
	return !atomic_load(&news->bits) && sw_flags_are_down(&news->tensors);
}

bool sw_lane_has_commands(const struct sw_lane *lane)
{
	return !is_empty(&lane->commands);
}

bool sw_lane_has_reports(const struct sw_lane *lane)
{
	return !is_empty(&lane->reports) || atomic_load(&lane->has_line);
}

enum { BATCH = 32 }; /* tensors that a turn takes from one side */

/* Take some tensors whose flags the other side has raised.  Take them before
 * the bits: bits that were set before a tensor's flag apply to that tensor. */
static uint32_t take_tensors(struct sw_lane_news *news, uint32_t list[BATCH])
{
	uint32_t n = 0;

	while (n < BATCH &&
		(list[n] = sw_flags_take(&news->tensors)) != SW_FLAGS)
		n++;
	return n;
}

static uint32_t take_bits(struct sw_lane_news *news)
{
	return atomic_load(&news->bits) ? atomic_exchange(&news->bits, 0) : 0;
}

/* --- another lane follows --- */

static void on_start(struct sw_worker *w)
{
	const struct sw_worker *zero = w->lanes->zero;

	if (w->left_by_ns)
		return;
	w->epoch = zero->epoch;
	w->joined = zero->joined;
	w->size = zero->size;
	w->first = zero->first;
	memcpy(w->firsts, zero->firsts, sizeof(w->firsts));
	w->started_ns = w->warned_ns = w->now_ns;
	w->is_unsettled = true; /* the links open */
}

uint32_t sw_lane_take_commands(struct sw_worker *w)
{
	struct sw_lane *lane = w->lanes;
	const struct sw_lane_tuning *k = &lane->tuning;
	uint32_t list[BATCH], n = take_tensors(&lane->commands, list);
	uint32_t bits = take_bits(&lane->commands), n_taken = n + (bits != 0);

	if (bits & SW_LANE_TUNING)
		(void)!sw_tuning_use(w, atomic_load(&k->policy),
			atomic_load(&k->part_bytes),
			atomic_load(&k->credit_bytes));
	if (bits & SW_LANE_START)
		on_start(w);
	if (bits & SW_LANE_SETTLE) {
		sw_worker_use_payload(w, lane->zero->payload_bytes);
		w->is_unsettled = true;
	}
	if (bits & SW_LANE_DECLARE)
		w->n_wanted = atomic_load(&lane->n_wanted);
	for (uint32_t i = 0; i < n; i++) /* new tensors are copied below */
		if (sw_bitmap_has(&w->added, list[i]))
			sw_tensor_follow(w, &w->tensors[list[i]]);
	/* The servers must get each END before LEAVE. A worker that is leaving
	 * sends no END, so follow all tensors first. */
	if (bits & SW_LANE_LEAVE && !sw_flags_are_down(&lane->commands.tensors))
		atomic_fetch_or(&lane->commands.bits, SW_LANE_LEAVE);
	else if (bits & SW_LANE_LEAVE)
		sw_worker_end(w, &lane->zero->fault);
	if (w->n_tensors < w->n_wanted)
		n_taken += sw_tensors_copy(w, lane->zero->tensors);
	return n_taken;
}

/* --- lane 0 takes reports --- */

static void on_reports(struct sw_worker *w, struct sw_lane *lane, uint32_t bits)
{
	if (bits & SW_LANE_JOINED) {
		w->carried = (uint32_t)sw_min64(w->carried, lane->carried);
		w->n_awaited--;
	}
	if (bits & SW_LANE_DECLARED)
		w->n_declaring--;
	w->is_unsettled |= bits & (SW_LANE_JOINED | SW_LANE_DECLARED);
	w->has_summed |= bits & SW_LANE_SUMMED;
	if (bits & SW_LANE_FAILED)
		sw_worker_fail_for(w, &lane->fault);
	if (bits & SW_LANE_LEFT)
		w->n_staying--;
	if (atomic_load(&lane->has_line)) {
		if (w->state < SW_WORKER_FAILED)
			w->events.state(w->events.ctx, w->state, 0, lane->line);
		atomic_store(&lane->has_line, false);
	}
}

static void on_tensor(struct sw_worker *w, struct sw_wtensor *t, uint32_t lane,
	const struct sw_wtensor *theirs)
{
	uint32_t from = atomic_load(&theirs->own_life.from);

	if (from && from != t->life->from)
		sw_tensor_kill(w, t, from, sw_wtensor_why(theirs));
	if (sw_worker_end_of(w) || !(t->busy_lanes >> lane & 1) ||
		atomic_load(&theirs->said_round) != t->round)
		return;
	t->busy_lanes &= (uint16_t) ~(1u << lane);
	t->weight = theirs->weight;
	t->is_edited |= theirs->is_edited;
	if (!t->busy_lanes && !t->n_missing)
		sw_round_end(w, t, 0);
}

/* Lane 0 waits until the other lanes have released an ended group.  The
 * coordinator decides about a death that another lane's server reports. */
static void on_stream(struct sw_worker *w, struct sw_wtensor *t, uint32_t lane,
	const struct sw_wtensor *theirs)
{
	struct sw_stream_lane *l = &t->stream->lanes[lane];

	if (atomic_load(&theirs->life->n_whys) && !t->life->from &&
		!t->life->is_closed)
		sw_stream_propose(w, t, sw_wtensor_why(theirs));
	if (atomic_load(&l->done) && !sw_worker_end_of(w))
		sw_colls_done(w, t, l);
	sw_life_release(w, sw_wtensor_slot(t));
}

uint32_t sw_lane_take_reports(struct sw_worker *w, uint32_t lane)
{
	struct sw_lane *l = &w->lanes[lane];
	uint32_t list[BATCH], n = take_tensors(&l->reports, list);
	uint32_t bits = take_bits(&l->reports);

	on_reports(w, l, bits);
	for (uint32_t i = 0; i < n; i++) {
		struct sw_wtensor *t = &w->tensors[list[i]];

		if (!sw_bitmap_has(&w->added, list[i]))
			continue; /* it is late: this lane has forgotten the
				     tensor */
		if (t->kind->is_group)
			on_stream(w, t, lane, &l->theirs[list[i]]);
		else
			on_tensor(w, t, lane, &l->theirs[list[i]]);
	}
	return n + (bits != 0);
}
