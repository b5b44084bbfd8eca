/* tuning.c - set a worker's tuning: its own, and the job's.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/tuning.h"

#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/worker/faults.h"
#include "engine/worker/lanes.h"

/* Divide the credit among the lanes if the policy is tunable.  An invalid
 * credit stays as it is: the scheduler refuses it. */
uint64_t sw_tuning_credit(const struct sw_worker *w,
	const struct sw_policy *policy, uint64_t credit_bytes)
{
	uint64_t whole = credit_bytes ? credit_bytes : policy->credit_bytes;

	if (!policy->is_tunable || sw_sched_check(policy, 0, credit_bytes))
		return credit_bytes;
	return sw_max64(whole / w->n_lanes, SW_CREDIT_MIN);
}

static void tell_lanes(
	struct sw_worker *w, uint64_t part_bytes, uint64_t credit_bytes)
{
	for (uint32_t i = 0; i < w->n_others; i++) {
		struct sw_lane_tuning *k = &w->lanes[i].tuning;

		atomic_store(&k->policy, sw_sched_policy(&w->sched));
		atomic_store(&k->part_bytes, part_bytes);
		atomic_store(&k->credit_bytes, credit_bytes);
	}
	sw_lanes_command(w, SW_LANE_TUNING);
}

int sw_tuning_use(struct sw_worker *w, const struct sw_policy *policy,
	uint64_t part_bytes, uint64_t credit_bytes)
{
	int err = sw_sched_set(&w->sched, policy, part_bytes,
		sw_tuning_credit(w, policy, credit_bytes));

	if (err)
		return err;
	tell_lanes(w, part_bytes, credit_bytes);
	sw_sched_run(&w->sched); /* there may be more credit */
	return 0;
}

struct sw_job_tuning sw_worker_tuning(const struct sw_worker *w)
{
	struct sw_job_tuning k = sw_sched_tuning(&w->sched);

	k.number = w->tuning.number;
	k.credit_bytes *= k.policy->is_tunable ? w->n_lanes : 1;
	return k;
}

int sw_worker_set_tuning(
	struct sw_worker *w, uint64_t part_bytes, uint64_t credit_bytes)
{
	return sw_tuning_use(
		w, sw_sched_policy(&w->sched), part_bytes, credit_bytes);
}

int sw_worker_tune(struct sw_worker *w, const struct sw_policy *policy,
	uint64_t part_bytes, uint64_t credit_bytes)
{
	struct sw_worker_tuning *k = &w->tuning;

	if (sw_worker_end_of(w))
		return sw_worker_end_of(w);
	if (w->state != SW_WORKER_RUNNING)
		return SW_EAGAIN;
	if (sw_sched_check(policy, part_bytes, credit_bytes))
		return SW_EINVAL;
	k->wanted = (struct sw_job_tuning){.policy = policy,
		.part_bytes = part_bytes,
		.credit_bytes = credit_bytes};
	sw_link_owe(&w->links[0], SW_OWE_TUNE);
	return 0;
}

uint32_t sw_tuning_build(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h)
{
	const struct sw_job_tuning *k = &w->tuning.wanted;
	struct sw_tune_ask ask = {.policy = (uint8_t)sw_policy_id(k->policy),
		.part_bytes = k->part_bytes,
		.credit_bytes = k->credit_bytes};

	memcpy(w->payload, &ask, sizeof(ask));
	return sizeof(ask);
}

void sw_tuning_received(struct sw_worker *w, const struct sw_status *st)
{
	const struct sw_policy *policy = sw_policy_at(st->policy);
	struct sw_worker_tuning *k = &w->tuning;

	if (st->number <= k->number)
		return;
	if (sw_sched_check(policy, st->part_bytes, st->credit_bytes)) {
		sw_worker_fail(w, SW_EPROTO, SW_KEY_NONE,
			"the coordinator said tuning %u: policy %u, partition "
			"%llu, credit %llu, which is invalid",
			st->number, st->policy,
			(unsigned long long)st->part_bytes,
			(unsigned long long)st->credit_bytes);
		return;
	}
	k->number = st->number;
	sw_count(&w->stats.tuning_changes, 1);
	(void)!sw_tuning_use(w, policy, st->part_bytes, st->credit_bytes);
}
