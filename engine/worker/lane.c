/* lane.c - send commands and reports between the lcores of one worker.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/stream.h"

#include <assert.h>
#include <stdio.h>

enum {
	/* Kinds of reports without a tensor; there are fewer such commands. */
	N_ONCE = 4,
};

/* Entries per tensor: a round, and three deaths whatever servers say
 * (tensor_end.c); for a stream its collectives, its death, and its close or its
 * release. */
_Static_assert(4 * (int)SW_TENSORS + N_ONCE <= SW_LANE_RING, "no ring is full");

_Static_assert((int)SW_TENSORS == (int)SW_FLAGS, "a flag for each tensor");

static void open_ring(struct sw_spsc *in, struct sw_spsc *out, void *ring)
{
	sw_spsc_init(in, ring, SW_LANE_RING, sizeof(struct sw_lane_message));
	sw_spsc_init(out, ring, SW_LANE_RING, sizeof(struct sw_lane_message));
}

void sw_lane_init(struct sw_lane *lane, const struct sw_worker *zero)
{
	memset(lane, 0, sizeof(*lane));
	lane->zero = zero;
	open_ring(&lane->commands_in, &lane->commands_out, lane->commands);
	open_ring(&lane->reports_in, &lane->reports_out, lane->reports);
}

bool sw_lane_has_commands(const struct sw_lane *lane)
{
	return !sw_spsc_is_drained(&lane->commands_in) ||
	       !sw_flags_are_down(&lane->grown);
}

bool sw_lane_has_reports(const struct sw_lane *lane)
{
	return !sw_spsc_is_drained(&lane->reports_in) ||
	       atomic_load(&lane->has_line) || atomic_load(&lane->has_summed);
}

static void put(struct sw_spsc *ring, struct sw_lane_message m)
{
	int n = sw_spsc_put(ring, &m, 1);

	assert(n == 1);
	(void)n;
}

/* --- another lane reports --- */

static void report(struct sw_lane *lane, enum sw_lane_kind kind)
{
	put(&lane->reports_in, (struct sw_lane_message){.kind = kind});
}

static void report_failed(struct sw_lane *lane, const struct sw_fault *fault)
{
	lane->fault = *fault;
	report(lane, SW_LANE_FAILED);
}

/* Pass a line to lane 0.  Drops it while the last one waits: all lines are
 * repeated. */
static void tell_line(struct sw_lane *lane, const char *text)
{
	if (atomic_load(&lane->has_line))
		return;
	snprintf(lane->line, sizeof(lane->line), "%s", text);
	atomic_store(&lane->has_line, true);
}

void sw_lane_say(struct sw_worker *w, int err, const char *text)
{
	if (!w->lane_i) {
		w->events.state(w->events.ctx, w->state, err, text);
	} else if (w->state == SW_WORKER_FAILED) {
		report_failed(w->lanes, &w->fault);
	} else if (w->state == SW_WORKER_LEFT) {
		report(w->lanes, SW_LANE_LEFT);
	} else if (*text) {
		tell_line(w->lanes, text);
	} else {
		w->lanes->theirs = w->tensors;
		report(w->lanes, SW_LANE_RUNNING);
	}
}

void sw_lane_admitted(struct sw_worker *w)
{
	if (w->lane_i) {
		report(w->lanes, SW_LANE_DECLARED);
		return;
	}
	for (; w->n_admitted != w->n_tensors; w->n_admitted++) {
		const struct sw_wtensor *t =
			sw_wtensor_numbered(w, w->n_admitted);

		/* its group may wait for this to be closed */
		if (t->life->n_closed || w->deaths.n_gone)
			sw_bitmap_add(&w->lacking, t->index);
	}
	w->events.declared(w->events.ctx);
}

static struct sw_lane_message about(
	enum sw_lane_kind kind, const struct sw_wtensor *t)
{
	return (struct sw_lane_message){
		.kind = kind, .tensor = t->index, .n = t->life->from};
}

void sw_lane_report(
	struct sw_worker *w, enum sw_lane_kind kind, const struct sw_wtensor *t)
{
	put(&w->lanes->reports_in, about(kind, t));
}

/* Add @at to a set; only the first one in an empty set needs an entry in the
 * ring.  Returns whether it is the first. */
static bool is_first(_Atomic uint64_t *set, uint32_t at)
{
	return !atomic_fetch_or(set, 1ULL << at);
}

/* Return the collective's place in lane 0's colls. */
static uint32_t place_of(const struct sw_coll *c)
{
	return c->turn % SW_COLLS;
}

void sw_lane_coll_done(struct sw_worker *w, const struct sw_wtensor *t,
	const struct sw_coll *c)
{
	struct sw_stream_lane *l = sw_stream_lane(w, t->index);

	l->weights[place_of(c)] = c->weight;
	l->are_edited[place_of(c)] = c->is_edited;
	if (is_first(&l->done, place_of(c)))
		sw_lane_report(w, SW_LANE_DONE, t);
}

/* --- lane 0 commands --- */

static void command(struct sw_worker *w, struct sw_lane_message m)
{
	for (uint32_t i = 0; i < w->n_others; i++)
		put(&w->lanes[i].commands_in, m);
}

void sw_lanes_command(struct sw_worker *w, enum sw_lane_kind kind)
{
	command(w, (struct sw_lane_message){.kind = kind});
}

void sw_lanes_declare(struct sw_worker *w)
{
	w->n_declaring = w->n_others;
	command(w, (struct sw_lane_message){
			   .kind = SW_LANE_DECLARE, .n = w->n_tensors});
}

void sw_lane_dead(struct sw_worker *w, const struct sw_wtensor *t)
{
	if (w->lane_i)
		sw_lane_report(w, SW_LANE_KILLED, t);
	else
		command(w, about(SW_LANE_DEAD, t));
}

void sw_lane_closed(struct sw_worker *w, const struct sw_wtensor *t)
{
	command(w, about(SW_LANE_CLOSED, t));
}

uint32_t sw_lanes_begin(struct sw_worker *w, const struct sw_wtensor *t)
{
	for (uint32_t i = 0; i < w->n_others; i++)
		if (t->lanes >> i & 1)
			put(&w->lanes[i].commands_in, about(SW_LANE_ROUND, t));
	return (uint32_t)__builtin_popcount(t->lanes);
}

void sw_lanes_grown(struct sw_worker *w, const struct sw_wtensor *t)
{
	for (uint32_t i = 0; i < w->n_others; i++)
		if (t->lanes >> i & 1)
			sw_flags_raise(&w->lanes[i].grown, t->index);
}

uint32_t sw_lanes_begin_coll(struct sw_worker *w, const struct sw_wtensor *t,
	const struct sw_coll *c, uint32_t lanes)
{
	for (uint32_t i = 0; i < w->n_others; i++)
		if (lanes >> (i + 1) & 1 &&
			is_first(&t->stream->lanes[i].begun, place_of(c)))
			put(&w->lanes[i].commands_in, about(SW_LANE_COLLS, t));
	return (uint32_t)__builtin_popcount(lanes);
}

void sw_lanes_set_tuning(
	struct sw_worker *w, uint64_t part_bytes, uint64_t credit_bytes)
{
	for (uint32_t i = 0; i < w->n_others; i++) {
		struct sw_lane_tuning *k = &w->lanes[i].tuning;

		atomic_store(&k->policy, sw_sched_policy(&w->sched));
		atomic_store(&k->part_bytes, part_bytes);
		atomic_store(&k->credit_bytes, credit_bytes);
		atomic_fetch_add(&k->n_set, 1);
	}
}
