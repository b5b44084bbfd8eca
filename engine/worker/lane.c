/* lane.c - the lcores of one worker: lane 0 orders, the others report.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/lane.h"

#include <assert.h>
#include <stdio.h>

#include "engine/worker/worker.h"

enum {
	BATCH = 32, /* entries taken from a ring in one turn */
	N_ONCE = 4, /* kinds of news besides DONE and KILLED; of orders there
		       are fewer */
};

/* A round of each tensor and, whatever servers say, two deaths (mismatch.c). */
_Static_assert(3 * (int)SW_TENSORS + N_ONCE <= SW_LANE_RING, "no ring is full");

void sw_lane_init(struct sw_lane *lane)
{
	memset(lane, 0, sizeof(*lane));
	for (uint32_t i = 0; i < 2; i++) {
		sw_spsc_init(i ? &lane->orders_out : &lane->orders_in,
			lane->orders, SW_LANE_RING,
			sizeof(struct sw_lane_order));
		sw_spsc_init(i ? &lane->news_in : &lane->news_out, lane->news,
			SW_LANE_RING, sizeof(struct sw_lane_news));
	}
}

/* --- what another lane says --- */

static void tell(struct sw_lane *lane, const struct sw_lane_news *news)
{
	int n = sw_spsc_put(&lane->news_in, news, 1);

	assert(n == 1);
	(void)n;
}

static void tell_failed(struct sw_lane *lane, const struct sw_fault *fault)
{
	lane->fault = *fault;
	tell(lane, &(struct sw_lane_news){.kind = SW_LANE_FAILED});
}

void sw_lane_refuse(struct sw_lane *lane, int err, const char *text)
{
	struct sw_fault fault = {.err = (int16_t)err, .key = SW_KEY_NONE};

	snprintf(fault.text, sizeof(fault.text), "%s", text);
	tell_failed(lane, &fault);
	tell(lane, &(struct sw_lane_news){.kind = SW_LANE_LEFT});
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
	tell(w->lanes, &(struct sw_lane_news){.kind = SW_LANE_RUNNING});
}

void sw_lane_say(struct sw_worker *w, int err, const char *text)
{
	if (!w->lane_i)
		w->events.state(w->events.ctx, w->state, err, text);
	else if (w->state == SW_WORKER_FAILED)
		tell_failed(w->lanes, &w->fault);
	else if (w->state == SW_WORKER_LEFT)
		tell(w->lanes, &(struct sw_lane_news){.kind = SW_LANE_LEFT});
	else if (*text)
		tell_line(w->lanes, text);
	else
		tell_running(w);
}

void sw_lane_admitted(struct sw_worker *w)
{
	if (w->lane_i) {
		tell(w->lanes,
			&(struct sw_lane_news){.kind = SW_LANE_DECLARED});
		return;
	}
	w->n_admitted = w->n_tensors;
	w->events.declared(w->events.ctx);
}

void sw_lane_done(struct sw_worker *w, const struct sw_wtensor *t)
{
	tell(w->lanes, &(struct sw_lane_news){.kind = SW_LANE_DONE,
			       .is_edited = t->is_edited,
			       .weight = t->weight,
			       .tensor = (uint32_t)(t - w->tensors)});
}

/* --- what lane 0 orders --- */

static void order(struct sw_lane *lane, const struct sw_lane_order *o)
{
	int n = sw_spsc_put(&lane->orders_in, o, 1);

	assert(n == 1);
	(void)n;
}

static uint32_t n_others(const struct sw_worker *w)
{
	return w->lane_i ? 0 : w->n_lanes - 1;
}

void sw_lanes_start(struct sw_worker *w)
{
	for (uint32_t i = 0; i < n_others(w); i++) {
		struct sw_lane *lane = &w->lanes[i];

		lane->epoch = w->epoch;
		lane->joined = w->joined;
		lane->size = w->size;
		lane->first = w->first;
		lane->tensors = w->tensors;
		order(lane, &(struct sw_lane_order){.kind = SW_LANE_START});
	}
}

static void order_dead(struct sw_worker *w, uint32_t tensor)
{
	for (uint32_t i = 0; i < n_others(w); i++)
		order(&w->lanes[i],
			&(struct sw_lane_order){.kind = SW_LANE_DEAD,
				.tensor = tensor,
				.n = w->tensors[tensor].dead_from});
}

void sw_lanes_declare(struct sw_worker *w)
{
	uint32_t known = w->n_lanes_know;

	w->n_lanes_declaring = n_others(w);
	w->n_lanes_know = w->n_tensors;
	for (uint32_t i = 0; i < n_others(w); i++)
		order(&w->lanes[i],
			&(struct sw_lane_order){
				.kind = SW_LANE_DECLARE, .n = w->n_tensors});
	for (; known < w->n_tensors; known++)
		if (w->tensors[known].dead_from)
			order_dead(w, known);
}

void sw_lane_dead(struct sw_worker *w, const struct sw_wtensor *t)
{
	uint32_t i = (uint32_t)(t - w->tensors);

	if (w->lane_i)
		tell(w->lanes, &(struct sw_lane_news){.kind = SW_LANE_KILLED,
				       .tensor = i,
				       .round = t->dead_from});
	else if (i < w->n_lanes_know)
		order_dead(w, i);
}

uint32_t sw_lanes_begin(struct sw_worker *w, const struct sw_wtensor *t)
{
	struct sw_lane_order o = {.kind = SW_LANE_ROUND,
		.op = t->op,
		.step = t->step,
		.root = t->root,
		.tensor = (uint32_t)(t - w->tensors)};
	uint32_t n = 0;

	for (uint32_t i = 0; i < n_others(w); i++) {
		if (!(t->lanes >> (i + 1) & 1))
			continue;
		order(&w->lanes[i], &o);
		n++;
	}
	return n;
}

void sw_lanes_set_knobs(
	struct sw_worker *w, uint64_t part_bytes, uint64_t credit_bytes)
{
	for (uint32_t i = 0; i < n_others(w); i++) {
		struct sw_lane_knobs *k = &w->lanes[i].knobs;

		atomic_store_explicit(
			&k->policy, w->sched.policy, memory_order_relaxed);
		atomic_store_explicit(
			&k->part_bytes, part_bytes, memory_order_relaxed);
		atomic_store_explicit(
			&k->credit_bytes, credit_bytes, memory_order_relaxed);
		atomic_fetch_add_explicit(&k->n_set, 1, memory_order_release);
	}
}

void sw_lanes_leave(struct sw_worker *w)
{
	for (uint32_t i = 0; i < n_others(w); i++) {
		w->lanes[i].why = w->fault;
		order(&w->lanes[i],
			&(struct sw_lane_order){.kind = SW_LANE_LEAVE});
	}
}

/* --- another lane hears orders --- */

static void on_start(struct sw_worker *w)
{
	const struct sw_lane *lane = w->lanes;

	if (w->left_by_ns)
		return;
	w->epoch = lane->epoch;
	w->joined = lane->joined;
	w->size = lane->size;
	w->first = lane->first;
	w->started_ns = w->told_ns = w->now_ns;
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

static void on_order(struct sw_worker *w, const struct sw_lane_order *o)
{
	switch (o->kind) {
	case SW_LANE_START:
		on_start(w);
		break;
	case SW_LANE_DECLARE:
		w->n_wanted = o->n;
		break;
	case SW_LANE_ROUND:
		sw_tensors_begin(w, o);
		break;
	case SW_LANE_DEAD:
		on_dead(w, o->tensor, o->n);
		break;
	case SW_LANE_LEAVE:
		sw_worker_leave(w, w->lanes->why.err, w->lanes->why.text);
		break;
	}
}

static uint32_t hear_knobs(struct sw_worker *w)
{
	struct sw_lane_knobs *k = &w->lanes->knobs;
	uint32_t n = atomic_load_explicit(&k->n_set, memory_order_acquire);

	if (n == w->lanes->n_heard)
		return 0;
	w->lanes->n_heard = n;
	(void)!sw_knobs_use(w,
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

static uint32_t hear_orders(struct sw_worker *w)
{
	struct sw_lane_order list[BATCH];
	int n = sw_spsc_take(&w->lanes->orders_out, list, BATCH);
	uint32_t n_heard = hear_knobs(w); /* also those set before a round */

	for (int i = 0; i < n; i++)
		on_order(w, &list[i]);
	n_heard += is_copied(w);
	return n_heard + (n > 0 ? (uint32_t)n : 0);
}

/* --- lane 0 hears news --- */

static void on_news(struct sw_worker *w, struct sw_lane *lane,
	const struct sw_lane_news *news)
{
	switch (news->kind) {
	case SW_LANE_RUNNING:
		w->n_lanes_running++;
		sw_link_check_running(w);
		break;
	case SW_LANE_DECLARED:
		w->n_lanes_declaring--;
		if (!sw_worker_end_of(w) && sw_tensors_are_admitted(w))
			sw_lane_admitted(w);
		break;
	case SW_LANE_DONE:
		sw_tensors_lane_done(w, news);
		break;
	case SW_LANE_KILLED:
		sw_tensor_kill(w, &w->tensors[news->tensor], news->round,
			lane->theirs[news->tensor].why);
		break;
	case SW_LANE_FAILED:
		sw_worker_fail(w, lane->fault.err, lane->fault.key, "%s",
			lane->fault.text);
		break;
	case SW_LANE_LEFT:
		w->n_lanes_left++;
		break;
	}
}

static uint32_t hear_news(struct sw_worker *w, struct sw_lane *lane)
{
	struct sw_lane_news list[BATCH];
	int n = sw_spsc_take(&lane->news_out, list, BATCH);

	for (int i = 0; i < n; i++)
		on_news(w, lane, &list[i]);
	if (atomic_load_explicit(&lane->has_line, memory_order_acquire)) {
		if (w->state < SW_WORKER_FAILED)
			w->events.state(w->events.ctx, w->state, 0, lane->line);
		atomic_store_explicit(
			&lane->has_line, false, memory_order_release);
	}
	return n > 0 ? (uint32_t)n : 0;
}

uint32_t sw_worker_hear(struct sw_worker *w)
{
	uint32_t n = 0;

	if (w->lane_i)
		return hear_orders(w);
	for (uint32_t i = 0; i < n_others(w); i++)
		n += hear_news(w, &w->lanes[i]);
	return n;
}
