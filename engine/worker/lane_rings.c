/* lane_rings.c - take commands and reports from a lane's rings.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/stream.h"

enum { BATCH = 32 }; /* entries taken from a ring in one turn */

/* --- another lane takes commands --- */

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
	for (uint32_t i = 0; i < w->n_links; i++)
		sw_link_start(w, &w->links[i]);
}

/* End a tensor or group as lane 0 says.  Nothing of it may be declared here
 * yet; whatever is later has ended. */
static void on_dead(struct sw_worker *w, uint32_t tensor, uint32_t round)
{
	sw_tensor_kill(w, &w->tensors[tensor], round,
		sw_wtensor_why(&w->lanes->zero->tensors[tensor]));
}

/* Begin the round that lane 0 has begun. */
static void on_round(struct sw_worker *w, const struct sw_lane_message *m)
{
	struct sw_wtensor *t = &w->tensors[m->tensor];
	const struct sw_wtensor *zero = &w->lanes->zero->tensors[m->tensor];

	if (sw_worker_end_of(w))
		return;
	sw_round_open(w, t, zero->op, zero->step, zero->root);
	t->n_asked = w->n_local;
	sw_round_start(w, t);
}

static void on_colls(struct sw_worker *w, const struct sw_lane_message *m)
{
	struct sw_wtensor *t = &w->tensors[m->tensor];
	uint64_t begun =
		atomic_exchange(&sw_stream_lane(w, m->tensor)->begun, 0);

	if (!sw_worker_end_of(w) && !t->life->from)
		sw_colls_take(
			w, t, w->lanes->zero->tensors[m->tensor].stream, begun);
}

static void on_command(struct sw_worker *w, const struct sw_lane_message *m)
{
	const struct sw_fault *why = &w->lanes->zero->fault;

	switch (m->kind) {
	case SW_LANE_START:
		on_start(w);
		break;
	case SW_LANE_DECLARE:
		w->n_wanted = m->n;
		break;
	case SW_LANE_ROUND:
		on_round(w, m);
		break;
	case SW_LANE_COLLS:
		on_colls(w, m);
		break;
	case SW_LANE_DEAD:
		on_dead(w, m->tensor, m->n);
		break;
	case SW_LANE_CLOSED:
		sw_life_closed(w, &w->tensors[m->tensor]);
		break;
	case SW_LANE_LEAVE:
		sw_worker_leave(w, why->err, why->text);
		break;
	}
}

static uint32_t take_tuning(struct sw_worker *w)
{
	struct sw_lane_tuning *k = &w->lanes->tuning;
	uint32_t n = atomic_load(&k->n_set);

	if (n == w->lanes->n_taken)
		return 0;
	w->lanes->n_taken = n;
	(void)!sw_tuning_use(w, atomic_load(&k->policy),
		atomic_load(&k->part_bytes), atomic_load(&k->credit_bytes));
	return 1;
}

/* Extend rounds of growing tensors.  A round that begins here later reads the
 * newest length itself. */
static uint32_t take_grown(struct sw_worker *w)
{
	uint32_t n = 0, i;

	while (n < BATCH && (i = sw_flags_take(&w->lanes->grown)) != SW_FLAGS) {
		if (sw_bitmap_has(&w->added, i))
			sw_round_extend(w, &w->tensors[i]);
		n++;
	}
	return n;
}

static uint32_t take_commands(struct sw_worker *w)
{
	struct sw_lane_message list[BATCH];
	int n = sw_spsc_take(&w->lanes->commands_out, list, BATCH);
	/* Settings made before a round apply to it. */
	uint32_t n_taken = take_tuning(w);

	for (int i = 0; i < n; i++, n_taken++)
		on_command(w, &list[i]);
	n_taken += take_grown(w);
	if (w->n_tensors < w->n_wanted)
		n_taken += sw_tensors_copy(w, w->lanes->zero->tensors);
	return n_taken;
}

/* --- lane 0 takes reports --- */

static void on_kept(struct sw_worker *w, struct sw_wtensor *t)
{
	if (--t->life->n_lanes == 0)
		sw_dead_released(w, t);
}

static void on_report(struct sw_worker *w, struct sw_lane *lane,
	const struct sw_lane_message *m)
{
	struct sw_wtensor *t = &w->tensors[m->tensor];

	switch (m->kind) {
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
		if (!sw_worker_end_of(w))
			t->kind->lane_done(w, t, (uint32_t)(lane - w->lanes));
		break;
	case SW_LANE_KILLED:
		t->kind->lane_killed(w, t, m->n, &lane->theirs[m->tensor]);
		break;
	case SW_LANE_KEPT:
		on_kept(w, t);
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
	struct sw_lane_message list[BATCH];
	int n = sw_spsc_take(&lane->reports_out, list, BATCH);

	for (int i = 0; i < n; i++)
		on_report(w, lane, &list[i]);
	if (atomic_load(&lane->has_line)) {
		if (w->state < SW_WORKER_FAILED)
			w->events.state(w->events.ctx, w->state, 0, lane->line);
		atomic_store(&lane->has_line, false);
	}
	return n > 0 ? (uint32_t)n : 0;
}

uint32_t sw_worker_take(struct sw_worker *w)
{
	uint32_t n = w->left_by_ns ? sw_rounds_end(w) : sw_dead_work(w);

	if (w->lane_i)
		return n + take_commands(w) + sw_stream_gone_work(w);
	n += sw_deaths_work(w);
	if (w->here && !w->left_by_ns)
		n += sw_stream_local_work(w);
	for (uint32_t i = 0; i < w->n_others; i++)
		n += take_reports(w, &w->lanes[i]);
	n += sw_granules_tell(w);
	return n + sw_stream_gone_work(w);
}
