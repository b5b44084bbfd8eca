/* idle.c - choose what a polling lcore does while nothing arrives.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/node/idle.h"

#include <sched.h>
#include <sys/resource.h>

#include "apps/cli/clock.h"
#include "engine/base/bytes.h"

enum {
	REST_NS = 10000000, /* longest sleep with nothing outstanding */
	/* longest sleep with work outstanding: frames end it */
	WAIT_NS = 1000000,
	/* with work outstanding, yield this many times longer */
	YIELD_SPINS = 20,
	/* a long yield marks the core shared for this many times its length */
	SHARED_TIMES = 16,
};

enum sw_idle_way sw_idle_choose(const struct sw_idle *i,
	const struct sw_idle_look *l, uint64_t *most_ns)
{
	bool can_wake = l->can_wake && i->sleep_ns;
	bool is_shared = can_wake && sw_idle_is_shared(i, l->now_ns);
	bool may_miss = l->is_busy || l->is_serving;
	uint64_t yields_ns = (l->is_busy ? YIELD_SPINS : 1) * i->spin_ns;

	*most_ns = l->is_busy ? WAIT_NS : REST_NS;
	if (is_shared && l->is_busy && l->has_computing)
		return SW_IDLE_NAP;
	if (!is_shared && l->idle_ns < yields_ns)
		return SW_IDLE_YIELD;
	if (can_wake)
		return SW_IDLE_REST;
	if (may_miss)
		*most_ns = sw_min64(l->idle_ns / 8, i->sleep_ns);
	return l->is_busy ? SW_IDLE_SLEEP : SW_IDLE_REST;
}

void sw_idle_note(
	struct sw_idle *i, uint64_t from_ns, uint64_t to_ns, bool has_switched)
{
	if (has_switched)
		i->shared_until_ns = to_ns + SHARED_TIMES * (to_ns - from_ns);
}

void sw_idle_yield(struct sw_idle *i, uint64_t now_ns)
{
	struct rusage use;
	uint64_t then_ns;

	sched_yield();
	then_ns = sw_now_ns();
	if (then_ns - now_ns <= i->spin_ns)
		return;
	getrusage(RUSAGE_THREAD, &use);
	sw_idle_note(i, now_ns, then_ns, use.ru_nivcsw != i->n_switches);
	i->n_switches = use.ru_nivcsw;
}
