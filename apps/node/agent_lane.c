/* agent_lane.c - the agent's lcores but the first: lanes of its worker.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Lcore 0 says when there is a worker; what the lanes say to each other then
 * goes through engine/worker/lane.h.
 */
#include <stdio.h>
#include <stdlib.h>

#include "apps/node/agent.h"
#include "engine/base/error.h"

int sw_agent_open_lanes(struct agent_shared *shared)
{
	uint32_t n = shared->daemon.conf.agent.lcores - 1;

	if (!n)
		return 0;
	shared->others = calloc(n, sizeof(*shared->others));
	shared->lanes = aligned_alloc(64, n * sizeof(*shared->lanes));
	if (!shared->others || !shared->lanes)
		return SW_ENOMEM;
	shared->n_others = n;
	for (uint32_t i = 0; i < n; i++) {
		shared->others[i].shared = shared;
		shared->others[i].i = i + 1;
	}
	return 0;
}

/* --- lcore 0 --- */

void sw_agent_start_lanes(struct agent_shared *shared)
{
	for (uint32_t i = 0; i < shared->n_others; i++)
		atomic_store(&shared->others[i].stage, AGENT_LANE_OPEN);
}

bool sw_agent_end_lanes(struct agent_core *core)
{
	struct agent_shared *shared = core->shared;
	bool all = true;

	for (uint32_t i = 0; i < shared->n_others; i++) {
		int open = AGENT_LANE_OPEN;

		atomic_compare_exchange_strong(
			&shared->others[i].stage, &open, AGENT_LANE_CLOSING);
		if (atomic_load(&shared->others[i].stage) == AGENT_LANE_CLOSED)
			sw_handoff_release(&shared->daemon.handoff, i + 1);
		else
			all = false;
	}
	return all && sw_daemon_release(&shared->daemon, 0, &core->leaving);
}

bool sw_agent_are_kept(const struct agent_shared *shared)
{
	for (uint32_t i = 0; i < shared->n_others; i++)
		if (atomic_load(&shared->others[i].stage) == AGENT_LANE_OPEN &&
			!atomic_load_explicit(&shared->others[i].is_kept,
				memory_order_acquire))
			return false;
	return true; /* what is closing was kept before */
}

/* --- the other lcores --- */

static struct sw_loop *loop_of(const struct agent_lane *l)
{
	return &l->shared->daemon.pollers[l->i].loop;
}

static void nothing_declared(void *ctx)
{
	(void)ctx;
}

static bool keep(void *ctx, uint32_t key)
{
	struct agent_lane *l = ctx;

	return sw_agent_keep_stream(l->shared, l->i, key);
}

struct sw_worker_events sw_agent_lane_events(struct agent_lane *l)
{
	return (struct sw_worker_events){
		.declared = nothing_declared, .keep = keep, .ctx = l};
}

/* When this lcore's time has come to that at which it was opened. */
static void open_lane(struct agent_lane *l, uint64_t now_ns)
{
	if (now_ns < sw_worker_view(&l->worker).now_ns)
		return;
	l->is_open = true;
	sw_loop_set(loop_of(l), sw_daemon_endpoint(&l->shared->daemon, l->i),
		sw_worker_engine(&l->worker));
}

static void close_lane(struct agent_lane *l)
{
	struct agent_shared *shared = l->shared;

	if (!sw_daemon_release(&shared->daemon, l->i, &l->ending))
		return; /* ask again */
	sw_loop_set(
		loop_of(l), sw_daemon_endpoint(&shared->daemon, l->i), NULL);
	l->is_open = false;
	atomic_store(&l->is_kept, false);
	atomic_store(&l->stage, AGENT_LANE_CLOSED);
}

/* Its worker has ended: the tensors are the clients'. */
static uint32_t copy_if_ended(struct agent_lane *l)
{
	if (atomic_load_explicit(&l->is_kept, memory_order_relaxed) ||
		!sw_worker_end_of(&l->worker))
		return 0;
	if (sw_agent_copy_lent(l->shared, l->i))
		atomic_store_explicit(&l->is_kept, true, memory_order_release);
	return 1;
}

uint32_t sw_agent_lane_work(void *ctx, uint64_t now_ns)
{
	struct agent_lane *l = ctx;
	int stage = atomic_load_explicit(&l->stage, memory_order_acquire);
	uint32_t n;

	if (stage == AGENT_LANE_CLOSING) {
		close_lane(l);
		return 1;
	}
	if (stage == AGENT_LANE_CLOSED)
		return 0;
	if (!l->is_open)
		open_lane(l, now_ns);
	if (!l->is_open)
		return 0;
	sw_agent_lane_free(l);
	n = sw_worker_take(&l->worker);
	if (n)
		sw_loop_look(loop_of(l)); /* timers may have been set */
	return n + copy_if_ended(l);
}

bool sw_agent_has_mail(const void *ctx, uint32_t from, uint32_t to)
{
	const struct agent *a = ctx;
	const struct agent_shared *shared = &a->shared;
	const struct agent_lane *l;

	if (from == to)
		return !from && !sw_spsc_is_empty(&a->core.commands);
	if ((from && to) || (from | to) > shared->n_others)
		return false;
	l = &shared->others[(from | to) - 1];
	switch (atomic_load_explicit(&l->stage, memory_order_acquire)) {
	case AGENT_LANE_OPEN:
		return from ? sw_lane_has_reports(&shared->lanes[l->i - 1])
			    : sw_lane_has_commands(&shared->lanes[l->i - 1]) ||
				       atomic_load(&l->n_freed) !=
					       atomic_load(&shared->n_freed);
	case AGENT_LANE_CLOSING:
		return !from;
	default:
		return false;
	}
}

void sw_agent_put_lanes(const struct agent *a,
	void (*put)(void *out, const char *name, uint64_t value), void *out)
{
	char name[32];

	put(out, "lanes", a->shared.n_others + 1);
	for (uint32_t i = 0; i <= a->shared.n_others; i++) {
		const struct agent_lane *l =
			i ? &a->shared.others[i - 1] : NULL;
		const struct sw_worker *w = l ? &l->worker : &a->core.worker;

		snprintf(name, sizeof(name), "lane%u.push_bytes", i);
		put(out, name, sw_word(&sw_worker_stats(w)->push_bytes));
	}
}
