/* job_knobs.c - the coordinator numbers knobs and says from which round on.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/sched/sched.h"
#include "engine/server/server.h"

/* Have all that are there heard of the last change? */
static bool all_know(const struct sw_server *srv, const struct sw_job *job)
{
	for (uint32_t m = 0; m < job->n_members; m++) {
		uint16_t i = job->members[m].session_i;

		if (i != SW_NO_SESSION &&
			srv->sessions[i]->status_seq != job->seq)
			return false;
	}
	return true;
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
	if (ask.request == m->request || job->next.policy ||
		!all_know(srv, job))
		return; /* known, or it will come again */
	m->request = ask.request;
	job->next = (struct sw_knobs){.number = job->knobs.number + 1,
		.policy = policy,
		.part_bytes = ask.part_bytes,
		.credit_bytes = ask.credit_bytes};
	job->promised = 0;
	job->limit = job->knobs.from;
	sw_job_announce(srv, job);
}

static void commit(struct sw_server *srv, struct sw_job *job)
{
	job->next.from = job->limit + 1;
	job->knobs = job->next;
	job->next.policy = NULL;
	sw_count(&srv->stats.knob_changes, 1);
	sw_log(srv->env->log, SW_LOG_INFO,
		"job %s: knobs %u from round %u on: policy %s, partition %llu, "
		"credit %llu (0: the policy's)",
		job->name, job->knobs.number, job->knobs.from,
		job->knobs.policy->name,
		(unsigned long long)job->knobs.part_bytes,
		(unsigned long long)job->knobs.credit_bytes);
	sw_job_announce(srv, job);
}

bool sw_job_is_answered(const struct sw_session *s)
{
	const struct sw_job *job = s->job;

	return s->status_seq == job->seq &&
	       (!job->next.policy || job->promised >> s->member & 1);
}

void sw_job_commit_if_all(struct sw_server *srv, struct sw_job *job)
{
	if (!job->next.policy || job->state != SW_JOB_RUNNING)
		return;
	for (uint32_t m = 0; m < job->n_members; m++)
		if (job->members[m].session_i != SW_NO_SESSION &&
			!(job->promised >> m & 1))
			return;
	commit(srv, job);
}

void sw_job_promise(struct sw_server *srv, struct sw_session *s,
	uint32_t number, uint32_t limit)
{
	struct sw_job *job = s->job;

	if (!job->next.policy || number != job->next.number ||
		job->promised >> s->member & 1)
		return;
	if (limit > SW_KNOBS_ROUND_MAX) {
		sw_session_fail(srv, s, SW_EPROTO, SW_KEY_NONE,
			"rank %u promises to stop at round %u, which cannot be",
			s->member, limit);
		return;
	}
	job->promised |= 1ULL << s->member;
	job->limit = (uint32_t)sw_max64(job->limit, limit);
	sw_job_commit_if_all(srv, job);
}
