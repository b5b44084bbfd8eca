/* lane.c - the lcores of one worker: what they say to each other.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/lane.h"

#include <assert.h>
#include <stdio.h>

#include "engine/worker/worker_int.h"

enum {
	N_ONCE = 4, /* kinds of reports besides DONE and KILLED; of commands
		       there are fewer */
};

/* A round of each tensor and, whatever servers say, two deaths (mismatch.c). */
_Static_assert(3 * (int)SW_TENSORS + N_ONCE <= SW_LANE_RING, "no ring is full");

void sw_lane_init(struct sw_lane *lane)
{
	memset(lane, 0, sizeof(*lane));
	for (uint32_t i = 0; i < 2; i++) {
		sw_spsc_init(i ? &lane->commands_out : &lane->commands_in,
			lane->commands, SW_LANE_RING,
			sizeof(struct sw_lane_command));
		sw_spsc_init(i ? &lane->reports_in : &lane->reports_out,
			lane->reports, SW_LANE_RING,
			sizeof(struct sw_lane_report));
	}
}

/* --- what another lane says --- */

static void tell(struct sw_lane *lane, const struct sw_lane_report *report)
{
	int n = sw_spsc_put(&lane->reports_in, report, 1);

	assert(n == 1);
	(void)n;
}

static void tell_failed(struct sw_lane *lane, const struct sw_fault *fault)
{
	lane->fault = *fault;
	tell(lane, &(struct sw_lane_report){.kind = SW_LANE_FAILED});
}

void sw_lane_refuse(struct sw_lane *lane, int err, const char *text)
{
	struct sw_fault fault = {.err = (int16_t)err, .key = SW_KEY_NONE};

	snprintf(fault.text, sizeof(fault.text), "%s", text);
	tell_failed(lane, &fault);
	tell(lane, &(struct sw_lane_report){.kind = SW_LANE_LEFT});
}

/* A line that comes while the last one waits is dropped: it will be repeated,
 * as all of them are. */
static void tell_line(struct sw_lane *lane, const char *text)
{
	if (atomic_load_explicit(&lane->has_line, memory_order_acquire))
		return;
	snprintf(lane->line, sizeof(lane->line), "%s", text);
	atomic_store_explicit(&lane->has_line, true, memory_order_release);
}

static void tell_running(struct sw_worker *w)
{
	w->lanes->theirs = w->tensors;
	tell(w->lanes, &(struct sw_lane_report){.kind = SW_LANE_RUNNING});
}

void sw_lane_say(struct sw_worker *w, int err, const char *text)
{
	if (!w->lane_i)
		w->events.state(w->events.ctx, w->state, err, text);
	else if (w->state == SW_WORKER_FAILED)
		tell_failed(w->lanes, &w->fault);
	else if (w->state == SW_WORKER_LEFT)
		tell(w->lanes, &(struct sw_lane_report){.kind = SW_LANE_LEFT});
	else if (*text)
		tell_line(w->lanes, text);
	else
		tell_running(w);
}

void sw_lane_admitted(struct sw_worker *w)
{
	if (w->lane_i) {
		tell(w->lanes,
			&(struct sw_lane_report){.kind = SW_LANE_DECLARED});
		return;
	}
	w->n_admitted = w->n_tensors;
	w->events.declared(w->events.ctx);
}

void sw_lane_done(struct sw_worker *w, const struct sw_wtensor *t)
{
	tell(w->lanes, &(struct sw_lane_report){.kind = SW_LANE_DONE,
			       .is_edited = t->is_edited,
			       .weight = t->weight,
			       .tensor = (uint32_t)(t - w->tensors)});
}

/* --- lane 0's commands --- */

static void order(struct sw_lane *lane, const struct sw_lane_command *o)
{
	int n = sw_spsc_put(&lane->commands_in, o, 1);

	assert(n == 1);
	(void)n;
}

void sw_lanes_start(struct sw_worker *w)
{
	for (uint32_t i = 0; i < w->n_others; i++) {
		struct sw_lane *lane = &w->lanes[i];

		lane->epoch = w->epoch;
		lane->joined = w->joined;
		lane->size = w->size;
		lane->first = w->first;
		lane->tensors = w->tensors;
		order(lane, &(struct sw_lane_command){.kind = SW_LANE_START});
	}
}

static void command_dead(struct sw_worker *w, uint32_t tensor)
{
	for (uint32_t i = 0; i < w->n_others; i++)
		order(&w->lanes[i],
			&(struct sw_lane_command){.kind = SW_LANE_DEAD,
				.tensor = tensor,
				.n = w->tensors[tensor].dead_from});
}

void sw_lanes_declare(struct sw_worker *w)
{
	uint32_t known = w->n_lanes_know;

	w->n_declaring = w->n_others;
	w->n_lanes_know = w->n_tensors;
	for (uint32_t i = 0; i < w->n_others; i++)
		order(&w->lanes[i],
			&(struct sw_lane_command){
				.kind = SW_LANE_DECLARE, .n = w->n_tensors});
	for (; known < w->n_tensors; known++)
		if (w->tensors[known].dead_from)
			command_dead(w, known);
}

void sw_lane_dead(struct sw_worker *w, const struct sw_wtensor *t)
{
	uint32_t i = (uint32_t)(t - w->tensors);

	if (w->lane_i)
		tell(w->lanes, &(struct sw_lane_report){.kind = SW_LANE_KILLED,
				       .tensor = i,
				       .round = t->dead_from});
	else if (i < w->n_lanes_know)
		command_dead(w, i);
}

uint32_t sw_lanes_begin(struct sw_worker *w, const struct sw_wtensor *t)
{
	struct sw_lane_command o = {.kind = SW_LANE_ROUND,
		.op = t->op,
		.step = t->step,
		.root = t->root,
		.tensor = (uint32_t)(t - w->tensors)};
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->n_others; i++) {
		if (!(t->lanes >> (i + 1) & 1))
			continue;
		order(&w->lanes[i], &o);
		n++;
	}
	return n;
}

void sw_lanes_set_tuning(
	struct sw_worker *w, uint64_t part_bytes, uint64_t credit_bytes)
{
	for (uint32_t i = 0; i < w->n_others; i++) {
		struct sw_lane_tuning *k = &w->lanes[i].tuning;

		atomic_store_explicit(&k->policy, sw_sched_policy(&w->sched),
			memory_order_relaxed);
		atomic_store_explicit(
			&k->part_bytes, part_bytes, memory_order_relaxed);
		atomic_store_explicit(
			&k->credit_bytes, credit_bytes, memory_order_relaxed);
		atomic_fetch_add_explicit(&k->n_set, 1, memory_order_release);
	}
}

void sw_lanes_leave(struct sw_worker *w)
{
	for (uint32_t i = 0; i < w->n_others; i++) {
		w->lanes[i].why = w->fault;
		order(&w->lanes[i],
			&(struct sw_lane_command){.kind = SW_LANE_LEAVE});
	}
}
