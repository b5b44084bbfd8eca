/* agent_lane.c - the agent's lcores but the first: lanes of its worker.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Lcore 0 says when there is a worker; what the lanes say to each other then
 * goes through engine/worker/lane.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "apps/node/agent.h"
#include "engine/base/bytes.h"
#include "engine/base/error.h"

int sw_agent_open_lanes(struct agent *a)
{
	uint32_t n = a->daemon.conf.agent.lcores - 1;

	if (!n)
		return 0;
	a->others = calloc(n, sizeof(*a->others));
	a->lanes = aligned_alloc(64, n * sizeof(*a->lanes));
	if (!a->others || !a->lanes)
		return SW_ENOMEM;
	a->n_others = n;
	for (uint32_t i = 0; i < n; i++) {
		a->others[i].agent = a;
		a->others[i].i = i + 1;
	}
	return 0;
}

/* --- memory of the lanes' tensors, which no port refers to --- */

void sw_agent_lane_env(struct agent *a, uint32_t i, struct sw_env *env)
{
	*env = a->daemon.env;
	sw_reserve_env(&a->daemon.lane_reserves[i], env);
}

void sw_agent_lane_turn(struct agent *a, uint32_t i)
{
	sw_reserve_turn(&a->daemon.lane_reserves[i]);
	sw_reserve_pass(&a->daemon.lane_reserves[i]);
}

bool sw_agent_make_memory(struct agent *a)
{
	bool has_worked = false;

	for (uint32_t i = 0; i <= a->n_others; i++)
		has_worked |= sw_reserve_work(&a->daemon.lane_reserves[i]);
	return has_worked;
}

/* --- lcore 0 --- */

void sw_agent_start_lanes(struct agent *a)
{
	for (uint32_t i = 0; i < a->n_others; i++) {
		sw_lane_init(&a->lanes[i]);
		atomic_store(&a->others[i].stage, AGENT_LANE_OPEN);
	}
}

bool sw_agent_end_lanes(struct agent *a)
{
	bool all = true;

	for (uint32_t i = 0; i < a->n_others; i++) {
		int open = AGENT_LANE_OPEN;

		atomic_compare_exchange_strong(
			&a->others[i].stage, &open, AGENT_LANE_CLOSING);
		if (atomic_load(&a->others[i].stage) == AGENT_LANE_CLOSED)
			sw_handoff_release(&a->daemon.handoff, i + 1);
		else
			all = false;
	}
	return all && sw_daemon_release(&a->daemon, 0);
}

void sw_agent_copy_lent(struct agent *a, uint32_t lcore)
{
	if (!a->is_serving)
		return;
	sw_loopback_copy_lent(&a->daemon.loopbacks[lcore]);
	if (lcore < a->serve.n_cores)
		sw_server_copy_lent(a->serve.cores[lcore].engine);
}

bool sw_agent_are_kept(const struct agent *a)
{
	for (uint32_t i = 0; i < a->n_others; i++)
		if (atomic_load(&a->others[i].stage) == AGENT_LANE_OPEN &&
			!atomic_load_explicit(
				&a->others[i].is_kept, memory_order_acquire))
			return false;
	return true; /* what is closing was kept before */
}

/* --- the other lcores --- */

static struct sw_loop *loop_of(const struct agent_lane *l)
{
	return &l->agent->daemon.pollers[l->i].loop;
}

static void nothing_declared(void *ctx)
{
	(void)ctx;
}

static void open_lane(struct agent_lane *l, uint64_t now_ns)
{
	struct agent *a = l->agent;
	struct sw_worker_server servers[SW_CONF_ENDPOINTS_MAX];
	char names[SW_CONF_ENDPOINTS_MAX][SW_CONF_NAME_BYTES + 4];
	struct sw_worker_events none = {.declared = nothing_declared};
	struct sw_worker_job job;
	int err;

	sw_agent_job(a, &job, servers, names);
	job.lane_i = (uint8_t)l->i;
	sw_agent_lane_env(a, l->i, &l->env);
	err = sw_worker_open(&l->worker, &a->daemon.params, &l->env, &none,
		&job, sw_handoff_ports(&a->daemon.handoff, l->i),
		a->daemon.n_ports, now_ns);
	l->is_open = !err;
	if (err)
		sw_lane_refuse(&a->lanes[l->i - 1], err,
			"the agent has no memory for all of its lcores");
	else
		sw_loop_set(loop_of(l), sw_daemon_endpoint(&a->daemon, l->i),
			sw_worker_node(&l->worker));
}

static void close_lane(struct agent_lane *l)
{
	struct agent *a = l->agent;

	if (l->is_open) {
		if (!sw_daemon_release(&a->daemon, l->i))
			return; /* ask again */
		sw_loop_set(
			loop_of(l), sw_daemon_endpoint(&a->daemon, l->i), NULL);
		sw_worker_close(&l->worker);
		l->is_open = false;
	}
	l->was_opened = false;
	atomic_store(&l->is_kept, false);
	atomic_store(&l->stage, AGENT_LANE_CLOSED);
}

/* Its worker has ended, or there is none: the tensors are the clients'. */
static void copy_if_ended(struct agent_lane *l)
{
	if (atomic_load_explicit(&l->is_kept, memory_order_relaxed) ||
		(l->is_open && !sw_worker_end_of(&l->worker)))
		return;
	sw_agent_copy_lent(l->agent, l->i);
	atomic_store_explicit(&l->is_kept, true, memory_order_release);
}

uint32_t sw_agent_lane_work(void *ctx, uint64_t now_ns)
{
	struct agent_lane *l = ctx;
	int stage = atomic_load_explicit(&l->stage, memory_order_acquire);
	uint32_t n;

	sw_agent_lane_turn(l->agent, l->i);
	if (stage == AGENT_LANE_CLOSING) {
		close_lane(l);
		return 1;
	}
	if (stage == AGENT_LANE_CLOSED)
		return 0;
	if (!l->was_opened) {
		l->was_opened = true;
		open_lane(l, now_ns);
	}
	sw_agent_pace(l->agent, loop_of(l), &l->paced_bit_s);
	n = l->is_open ? sw_worker_take(&l->worker) : 0;
	if (n)
		sw_loop_look(loop_of(l)); /* timers may have been set */
	copy_if_ended(l);
	return n;
}

/* A round may begin at any time, but not without a worker. */
void sw_agent_lane_rest(
	void *ctx, const int *fds, uint32_t n_fds, uint64_t max_ns)
{
	const struct agent_lane *l = ctx;
	uint64_t most = l->agent->daemon.conf.lcore.sleep_ns;
	bool is_idle = atomic_load(&l->stage) == AGENT_LANE_CLOSED;
	uint64_t ns = is_idle ? max_ns : sw_min64(max_ns, most);
	struct timespec t = {
		.tv_sec = (time_t)(ns / SW_S), .tv_nsec = (long)(ns % SW_S)};

	nanosleep(&t, NULL);
}

void sw_agent_put_lanes(const struct agent *a,
	void (*put)(void *out, const char *name, uint64_t value), void *out)
{
	char name[32];

	put(out, "lanes", a->n_others + 1);
	for (uint32_t i = 0; i <= a->n_others; i++) {
		const struct agent_lane *l = i ? &a->others[i - 1] : NULL;
		const struct sw_worker *w = l ? &l->worker : &a->core.worker;

		snprintf(name, sizeof(name), "lane%u.push_bytes", i);
		put(out, name, sw_word(&sw_worker_stats(w)->push_bytes));
	}
}
