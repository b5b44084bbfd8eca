/* agent_lane.c - any agent lcore except the first: a lane of the worker.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Lcore 0 signals when a worker is open.  From then on the lanes exchange work
 * through engine/worker/lane.h.
 */
#include "apps/node/agent_lane.h"

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

/* Begin to drive the lane, once this lcore's clock has reached the time at
 * which the control thread opened the lane. */
static void open_lane(struct agent_lane *l, uint64_t now_ns)
{
	if (now_ns < sw_worker_view(&l->worker).now_ns)
		return;
	l->is_open = true;
	sw_poller_set(&l->shared->daemon.pollers[l->i],
		sw_daemon_endpoint(&l->shared->daemon, l->i),
		sw_worker_engine(&l->worker));
}

static void close_lane(struct agent_lane *l)
{
	struct agent_shared *shared = l->shared;

	if (!sw_daemon_release(&shared->daemon, l->i, &l->ending))
		return; /* the next turn asks again */
	sw_poller_set(&shared->daemon.pollers[l->i],
		sw_daemon_endpoint(&shared->daemon, l->i), NULL);
	l->is_open = false;
	atomic_store(&l->is_kept, false);
	atomic_store(&l->stage, AGENT_LANE_CLOSED);
}

/* After the worker's end, copy the lent memory: the clients own their tensors
 * again. */
static uint32_t copy_if_ended(struct agent_lane *l)
{
	if (atomic_load_explicit(&l->is_kept, memory_order_relaxed) ||
		!sw_worker_end_of(&l->worker))
		return 0;
	if (sw_agent_copy_lent(l->shared, l->i))
		atomic_store_explicit(&l->is_kept, true, memory_order_release);
	return 1;
}

static void note_freed(struct agent_lane *l)
{
	uint32_t n = atomic_load(&l->shared->n_freed);

	if (atomic_load(&l->n_freed) == n)
		return;
	if (!l->freeing.is_begun)
		l->n_marked = n;
	if (sw_daemon_release(&l->shared->daemon, l->i, &l->freeing))
		atomic_store(&l->n_freed, l->n_marked);
}

uint32_t sw_agent_lane_work(void *ctx, uint64_t now_ns)
{
	struct agent_lane *l = ctx;
	int stage = atomic_load_explicit(&l->stage, memory_order_acquire);
	uint32_t n;

	if (sw_agent_is_asked(l->shared, l->i))
		sw_agent_describe(
			l->shared, l->i, l->is_open ? &l->worker : NULL);
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
	note_freed(l);
	n = sw_worker_take(&l->worker);
	if (n)
		sw_loop_look(loop_of(l)); /* it may have set timers */
	return n + copy_if_ended(l);
}
