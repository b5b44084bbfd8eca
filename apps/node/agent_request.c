/* agent_request.c - lcore 0 does what a process asks for: tune, end, free.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory of sw_alloc is freed in steps.  No collective may use it.  Frames that
 * were retransmitted from it may still be inside this process, so each lcore
 * sees that none of its ports refers to anything sent before.  Then the control
 * thread unmaps the memory.
 */
#include "apps/node/agent_request.h"

#include <stdio.h>

#include "apps/node/agent_lane.h"
#include "engine/base/error.h"

enum { RATE_MIN = 1000000 };
#define RATE_MAX UINT64_C(10000000000000)

/* --- tuning --- */

static int set_rate(
	struct agent_core *core, uint64_t bit_s, char *why, size_t size)
{
	if (bit_s && (bit_s < RATE_MIN || bit_s > RATE_MAX)) {
		snprintf(why, size,
			"rate %llu: 1 Mb/s to 10 Tb/s, given in bits per "
			"second (10 Gb/s is 10000000000)",
			(unsigned long long)bit_s);
		return SW_EINVAL;
	}
	core->tuning.rate_bit_s = bit_s;
	sw_daemon_set_rate(&core->shared->daemon, bit_s);
	return 0;
}

/* Set the partition or the credit, and keep the other. */
static int set_own(struct agent_core *core, bool is_part, uint64_t bytes,
	char *why, size_t size)
{
	const struct sw_job_tuning now = sw_worker_tuning(&core->worker);
	const char *fault = sw_sched_check(
		now.policy, is_part ? bytes : 0, is_part ? 0 : bytes);

	if (fault) {
		snprintf(why, size, "%s %llu: %s",
			is_part ? "partition" : "credit",
			(unsigned long long)bytes, fault);
		return SW_EINVAL;
	}
	return sw_worker_set_tuning(&core->worker,
		is_part ? bytes : now.part_bytes,
		is_part ? now.credit_bytes : bytes);
}

static int set_all(struct agent_core *core, const struct sw_edge_tune *t,
	char *why, size_t size)
{
	const struct sw_policy *policy = sw_policy_find(t->policy);
	const char *fault = sw_sched_check(policy, t->value[0], t->value[1]);

	if (fault) {
		snprintf(why, size,
			"policy %s, partition %llu, credit %llu: %s", t->policy,
			(unsigned long long)t->value[0],
			(unsigned long long)t->value[1], fault);
		return SW_EINVAL;
	}
	return sw_worker_tune(&core->worker, policy, t->value[0], t->value[1]);
}

static int set_tuning(struct agent_core *core, const struct sw_edge_tune *t,
	char *why, size_t size)
{
	switch (t->what) {
	case SW_EDGE_PARTITION:
	case SW_EDGE_CREDIT:
		return set_own(core, t->what == SW_EDGE_PARTITION, t->value[0],
			why, size);
	case SW_EDGE_RATE:
		return set_rate(core, t->value[0], why, size);
	default:
		return set_all(core, t, why, size);
	}
}

void sw_agent_show_tuning(struct agent_core *core)
{
	struct sw_host_tuning *k = &core->tuning;
	struct sw_job_tuning now;

	if (!core->has_worker ||
		(core->are_tuning_shown &&
			k->round == sw_worker_view(&core->worker).round))
		return; /* the job's change with a round */
	core->are_tuning_shown = true;
	now = sw_worker_tuning(&core->worker);
	*k = (struct sw_host_tuning){.partition_bytes = now.part_bytes,
		.credit_bytes = now.credit_bytes,
		.rate_bit_s = k->rate_bit_s,
		.number = now.number,
		.round = sw_worker_view(&core->worker).round,
		.policy = now.policy->name};
	atomic_store(&core->shared->partition_bytes, k->partition_bytes);
	atomic_store(&core->shared->credit_bytes, k->credit_bytes);
	atomic_store(&core->shared->tuning_number, k->number);
	for (uint32_t i = 0; i < sw_agent_n_local(core->shared); i++)
		if (core->clients[i])
			sw_host_show_tuning(core->clients[i], k);
}

void sw_agent_tune(struct agent_core *core, const struct agent_command *o)
{
	struct agent_report report = {.kind = AGENT_TUNED, .local = o->local};

	report.err =
		set_tuning(core, &o->tune, report.text, sizeof(report.text));
	core->are_tuning_shown = false;
	if (report.err && !report.text[0])
		snprintf(report.text, sizeof(report.text), "%s",
			sw_error_text(report.err));
	sw_agent_show_tuning(core);
	sw_agent_tell(core, &report);
}

/* --- the end of a group --- */

/* Close or abort a group.  Its open collectives may end after the answer. */
void sw_agent_end_group(struct agent_core *core, const struct agent_command *o)
{
	struct agent_report report = {.kind = AGENT_TUNED, .local = o->local};
	const struct sw_edge_end *m = &o->end;

	if (m->what == SW_EDGE_CLOSE_GROUP)
		sw_worker_close_group(&core->worker, m->stream, o->local);
	else
		sw_worker_abort(
			&core->worker, m->stream, o->local, m->err, m->why);
	sw_agent_tell(core, &report);
}

/* --- memory --- */

void sw_agent_free(struct agent_core *core, const struct agent_command *o)
{
	struct sw_host_client *client = core->clients[o->local];

	core->freed.local = o->local;
	core->freed.item = o->n;
	core->freed.at = 0;
	if (!client || !sw_host_forget(client, o->n, &core->freed.base,
			       &core->freed.bytes))
		return;
	if (core->freed.base)
		core->freed.client = client;
	else /* no port refers to a stream */
		sw_agent_tell(core, &(struct agent_report){.kind = AGENT_TUNED,
					    .local = o->local});
}

void sw_agent_find_use(struct agent_core *core)
{
	struct sw_host_client *client = core->freed.client;
	uint32_t local = core->freed.local;

	if (sw_worker_uses(&core->worker, local, core->freed.base,
		    core->freed.bytes, &core->freed.at))
		sw_host_evict(client,
			"freed memory of an open collective, number",
			core->freed.item);
	else if (core->freed.at < SW_TENSORS)
		return;
	else {
		core->n_freeing += !core->is_freeing[local];
		core->is_freeing[local] = true;
		core->freed_at[local] =
			atomic_fetch_add(&core->shared->n_freed, 1) + 1;
	}
	core->freed.client = NULL;
}

static bool are_lanes_done(struct agent_shared *shared)
{
	for (uint32_t i = 0; i < shared->n_others; i++) {
		struct agent_lane *l = &shared->others[i];

		if (atomic_load(&l->stage) == AGENT_LANE_OPEN &&
			atomic_load(&l->n_freed) !=
				atomic_load(&shared->n_freed))
			return false;
	}
	return true;
}

void sw_agent_work_free(struct agent_core *core)
{
	struct agent_shared *shared = core->shared;

	if (!core->n_freeing ||
		(!core->freeing.is_begun && !are_lanes_done(shared)))
		return;
	if (!core->freeing.is_begun) {
		core->n_marked = atomic_load(&shared->n_freed);
		/* Frames that the lanes have handed over come before the mark
		 * of lcore 0. */
		for (uint32_t i = 0; i < shared->n_others; i++)
			sw_handoff_release(&shared->daemon.handoff, i + 1);
	}
	if (!sw_daemon_release(&shared->daemon, 0, &core->freeing))
		return;
	for (uint32_t i = 0; i < sw_agent_n_local(shared); i++) {
		if (!core->is_freeing[i] ||
			(int32_t)(core->freed_at[i] - core->n_marked) > 0)
			continue;
		core->is_freeing[i] = false;
		core->n_freeing--;
		sw_agent_tell(core, &(struct agent_report){
					    .kind = AGENT_TUNED, .local = i});
	}
}
