/* lane.c - lanes of one worker tell each other of changes.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/stream.h"

#include <stdio.h>

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

/* --- another lane reports --- */

void sw_lane_report(struct sw_worker *w, uint32_t bits)
{
	atomic_fetch_or(&w->lanes->reports.bits, bits);
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
		w->lanes->fault = w->fault;
		sw_lane_report(w, SW_LANE_FAILED);
	} else if (w->state == SW_WORKER_LEFT) {
		sw_lane_report(w, SW_LANE_LEFT);
	} else {
		tell_line(w->lanes, text);
	}
}

void sw_lane_joined(struct sw_worker *w)
{
	w->lanes->theirs = w->tensors;
	w->lanes->carried =
		w->payload_bytes ? w->payload_bytes : sw_worker_carries(w);
	sw_lane_report(w, SW_LANE_JOINED);
}

void sw_lane_admitted(struct sw_worker *w)
{
	if (w->lane_i) {
		sw_lane_report(w, SW_LANE_DECLARED);
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

/* --- any lane says something of a tensor --- */

void sw_lane_tell(struct sw_worker *w, const struct sw_wtensor *t)
{
	if (w->lane_i)
		sw_flags_raise(&w->lanes->reports.tensors, t->index);
	else
		sw_lanes_tell(w, t, sw_lanes_all(w));
}

void sw_lane_dead(struct sw_worker *w, struct sw_wtensor *slot)
{
	atomic_store(&slot->said.dead_from, slot->own_life.from);
	sw_lane_tell(w, slot);
}

void sw_lane_coll_done(struct sw_worker *w, const struct sw_wtensor *t,
	const struct sw_coll *c)
{
	struct sw_stream_lane *l = sw_stream_lane(w, t->index);
	uint32_t at = c->turn % SW_COLLS;

	l->weights[at] = c->weight;
	l->are_edited[at] = c->is_edited;
	atomic_fetch_or(&l->done, 1ULL << at);
	sw_lane_tell(w, t);
}

/* --- lane 0 commands --- */

void sw_lanes_command(struct sw_worker *w, uint32_t bits)
{
	for (uint32_t i = 0; i < w->n_others; i++)
		atomic_fetch_or(&w->lanes[i].commands.bits, bits);
}

void sw_lanes_settle(struct sw_worker *w)
{
	sw_lanes_command(w, SW_LANE_SETTLE);
}

void sw_lanes_declare(struct sw_worker *w)
{
	w->n_declaring = w->n_others;
	for (uint32_t i = 0; i < w->n_others; i++)
		atomic_store(&w->lanes[i].n_wanted, w->n_tensors);
	sw_lanes_command(w, SW_LANE_DECLARE);
}

void sw_lanes_tell(
	struct sw_worker *w, const struct sw_wtensor *t, uint32_t lanes)
{
	for (; lanes; lanes &= lanes - 1)
		sw_flags_raise(&w->lanes[__builtin_ctz(lanes)].commands.tensors,
			t->index);
}

void sw_lanes_begin_coll(struct sw_worker *w, const struct sw_wtensor *t,
	const struct sw_coll *c, uint32_t lanes)
{
	for (uint32_t m = lanes; m; m &= m - 1)
		atomic_fetch_or(&t->stream->lanes[__builtin_ctz(m)].begun,
			1ULL << c->turn % SW_COLLS);
	sw_lanes_tell(w, t, lanes);
}

void sw_lanes_set_tuning(
	struct sw_worker *w, uint64_t part_bytes, uint64_t credit_bytes)
{
	for (uint32_t i = 0; i < w->n_others; i++) {
		struct sw_lane_tuning *k = &w->lanes[i].tuning;

		atomic_store(&k->policy, sw_sched_policy(&w->sched));
		atomic_store(&k->part_bytes, part_bytes);
		atomic_store(&k->credit_bytes, credit_bytes);
	}
	sw_lanes_command(w, SW_LANE_TUNING);
}
