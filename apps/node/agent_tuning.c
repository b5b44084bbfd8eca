/* agent_tuning.c - what processes change in a running job, groups they end.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "apps/node/agent.h"
#include "engine/base/error.h"

enum { RATE_MIN = 1000000 };
#define RATE_MAX UINT64_C(10000000000000)

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

/* One of the two; the other stays. */
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

static int set(struct agent_core *core, const struct sw_edge_tune *t, char *why,
	size_t size)
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

void sw_agent_tune(struct agent_core *core, const struct agent_command *o)
{
	struct agent_report report = {.kind = AGENT_TUNED, .local = o->local};

	report.err = set(core, &o->tune, report.text, sizeof(report.text));
	core->are_tuning_shown = false;
	if (report.err && !report.text[0])
		snprintf(report.text, sizeof(report.text), "%s",
			sw_error_text(report.err));
	sw_agent_show_tuning(core);
	sw_agent_tell(core, &report);
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

/* What is open of the group ends, maybe later than this is answered. */
void sw_agent_end_group(struct agent_core *core, const struct agent_command *o)
{
	struct agent_report report = {.kind = AGENT_TUNED, .local = o->local};
	const struct sw_edge_end *m = &o->end;

	if (m->what == SW_EDGE_CLOSE_GROUP)
		sw_worker_close_group(&core->worker, m->stream, o->local);
	else
		sw_worker_abort(&core->worker, m->stream, o->local, m->why,
			m->what == SW_EDGE_TIME_OUT);
	sw_agent_tell(core, &report);
}
