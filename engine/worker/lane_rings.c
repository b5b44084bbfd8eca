/* lane_rings.c - a lane's side of its rings: takes what the others put.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/worker_int.h"

enum { BATCH = 32 }; /* entries taken from a ring in one turn */

/* --- another lane takes commands --- */

static void on_start(struct sw_worker *w)
{
	const struct sw_lane *lane = w->lanes;

	if (w->left_by_ns)
		return;
	w->epoch = lane->epoch;
	w->joined = lane->joined;
	w->size = lane->size;
	w->first = lane->first;
	w->started_ns = w->warned_ns = w->now_ns;
	for (uint32_t i = 0; i < w->n_links; i++)
		sw_link_start(w, &w->links[i]);
}

/* Perhaps of a tensor that waits for its memory (sw_tensors_copy). */
static void on_dead(struct sw_worker *w, uint32_t tensor, uint32_t round)
{
	struct sw_wtensor *t = &w->tensors[tensor];

	if (tensor < w->n_tensors)
		sw_tensor_kill(w, t, round, w->lanes->tensors[tensor].why);
	else
		t->dead_from = round;
}

/* The round that lane 0 began. */
static void on_round(struct sw_worker *w, const struct sw_lane_command *o)
{
	struct sw_wtensor *t = &w->tensors[o->tensor];

	if (sw_worker_end_of(w))
		return;
	t->is_open = true;
	t->op = o->op;
	t->step = o->step;
	t->root = o->root;
	t->asked = ~0ULL >> (64 - w->n_local);
	w->n_open++;
	sw_round_start(w, t);
}

static void on_command(struct sw_worker *w, const struct sw_lane_command *o)
{
	switch (o->kind) {
	case SW_LANE_START:
		on_start(w);
		break;
	case SW_LANE_DECLARE:
		w->n_wanted = o->n;
		break;
	case SW_LANE_ROUND:
		on_round(w, o);
		break;
	case SW_LANE_DEAD:
		on_dead(w, o->tensor, o->n);
		break;
	case SW_LANE_LEAVE:
		sw_worker_leave(w, w->lanes->why.err, w->lanes->why.text);
		break;
	}
}

static uint32_t take_tuning(struct sw_worker *w)
{
	struct sw_lane_tuning *k = &w->lanes->tuning;
	uint32_t n = atomic_load_explicit(&k->n_set, memory_order_acquire);

	if (n == w->lanes->n_taken)
		return 0;
	w->lanes->n_taken = n;
	(void)!sw_tuning_use(w,
		atomic_load_explicit(&k->policy, memory_order_relaxed),
		atomic_load_explicit(&k->part_bytes, memory_order_relaxed),
		atomic_load_explicit(&k->credit_bytes, memory_order_relaxed));
	return 1;
}

/* What is declared waits for its memory, turn after turn. */
static bool is_copied(struct sw_worker *w)
{
	return w->n_tensors < w->n_wanted &&
	       sw_tensors_copy(w, w->lanes->tensors);
}

static uint32_t take_commands(struct sw_worker *w)
{
	struct sw_lane_command list[BATCH];
	int n = sw_spsc_take(&w->lanes->commands_out, list, BATCH);
	uint32_t n_taken = take_tuning(w); /* also those set before a round */

	for (int i = 0; i < n; i++)
		on_command(w, &list[i]);
	n_taken += is_copied(w);
	return n_taken + (n > 0 ? (uint32_t)n : 0);
}

/* --- lane 0 takes reports --- */

static void on_report(struct sw_worker *w, struct sw_lane *lane,
	const struct sw_lane_report *report)
{
	switch (report->kind) {
	case SW_LANE_RUNNING:
		w->n_awaited--;
		sw_worker_check_running(w);
		break;
	case SW_LANE_DECLARED:
		w->n_declaring--;
		if (!sw_worker_end_of(w) && sw_tensors_are_admitted(w))
			sw_lane_admitted(w);
		break;
	case SW_LANE_DONE:
		sw_round_lane_done(w, report);
		break;
	case SW_LANE_KILLED:
		sw_tensor_kill(w, &w->tensors[report->tensor], report->round,
			lane->theirs[report->tensor].why);
		break;
	case SW_LANE_FAILED:
		sw_worker_fail(w, lane->fault.err, lane->fault.key, "%s",
			lane->fault.text);
		break;
	case SW_LANE_LEFT:
		w->n_staying--;
		break;
	}
}

static uint32_t take_reports(struct sw_worker *w, struct sw_lane *lane)
{
	struct sw_lane_report list[BATCH];
	int n = sw_spsc_take(&lane->reports_out, list, BATCH);

	for (int i = 0; i < n; i++)
		on_report(w, lane, &list[i]);
	if (atomic_load_explicit(&lane->has_line, memory_order_acquire)) {
		if (w->state < SW_WORKER_FAILED)
			w->events.state(w->events.ctx, w->state, 0, lane->line);
		atomic_store_explicit(
			&lane->has_line, false, memory_order_release);
	}
	return n > 0 ? (uint32_t)n : 0;
}

uint32_t sw_worker_take(struct sw_worker *w)
{
	uint32_t n = 0;

	if (w->lane_i)
		return take_commands(w);
	for (uint32_t i = 0; i < w->n_others; i++)
		n += take_reports(w, &w->lanes[i]);
	return n;
}
