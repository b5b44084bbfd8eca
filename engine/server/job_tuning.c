/* job_tuning.c - the coordinator numbers tuning; STATUS says the newest.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "engine/base/error.h"
#include "engine/sched/sched.h"
#include "engine/server/job.h"
#include "engine/server/session.h"

/* Have all that are there received the last change?  Until then another is not
 * numbered: a member that asks without end costs a state per round trip. */
static bool all_know(const struct sw_job *job)
{
	for (uint32_t m = 0; m < job->n_members; m++) {
		const struct sw_session *s = job->members[m].session;

		if (s && s->status_seq != job->seq)
			return false;
	}
	return true;
}

static void number(struct sw_server *srv, struct sw_job *job,
	const struct sw_policy *policy, const struct sw_tune_ask *ask)
{
	job->tuning = (struct sw_job_tuning){.number = job->tuning.number + 1,
		.policy = policy,
		.part_bytes = ask->part_bytes,
		.credit_bytes = ask->credit_bytes};
	sw_count(&srv->stats.tuning_changes, 1);
	sw_log(srv->env->log, SW_LOG_INFO,
		"job %s: tuning %u: policy %s, partition %llu, credit %llu "
		"(0: the policy's)",
		job->name, job->tuning.number, policy->name,
		(unsigned long long)ask->part_bytes,
		(unsigned long long)ask->credit_bytes);
	sw_job_announce(srv, job);
}

void sw_job_tune(
	struct sw_server *srv, struct sw_session *s, const uint8_t *payload)
{
	struct sw_job *job = s->job;
	struct sw_member *m = &job->members[s->member];
	const struct sw_policy *policy;
	struct sw_tune_ask ask;
	const char *why;

	memcpy(&ask, payload, sizeof(ask));
	if (!job->is_coordinated || job->state != SW_JOB_RUNNING) {
		sw_count(&srv->stats.rx_state, 1);
		return;
	}
	policy = sw_policy_at(ask.policy);
	why = sw_sched_check(policy, ask.part_bytes, ask.credit_bytes);
	if (why) {
		sw_session_fail(srv, s, SW_EINVAL, SW_KEY_NONE,
			"rank %u asks for policy %u, partition %llu, credit "
			"%llu: %s",
			s->member, ask.policy,
			(unsigned long long)ask.part_bytes,
			(unsigned long long)ask.credit_bytes, why);
		return;
	}
	if (ask.request == m->request || !all_know(job))
		return; /* numbered before, or it will come again */
	m->request = ask.request;
	number(srv, job, policy, &ask);
}
