/* agent_parts.c - the agent as a whole: its threads' parts, who has mail.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/node/agent.h"

#include <stdio.h>
#include <stdlib.h>

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

void sw_agent_init_parts(struct agent *a)
{
	struct agent_part *parts = a->shared.parts;

	parts[0] = (struct agent_part){
		.worker = &a->core.worker, .events = sw_agent_events(&a->core)};
	for (uint32_t i = 0; i < a->shared.n_others; i++)
		parts[i + 1] = (struct agent_part){
			.worker = &a->shared.others[i].worker,
			.events = sw_agent_lane_events(&a->shared.others[i])};
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
