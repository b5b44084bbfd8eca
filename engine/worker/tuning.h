/* tuning.h - the tuning of this lane and of the job.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_WORKER_TUNING_H
#define SW_ENGINE_WORKER_TUNING_H

#include "engine/worker/worker.h"

/* sw_tuning_use - set this lane's scheduler, and tell the other lanes.  Errors:
 * SW_EINVAL (sw_sched_check says why). */
int sw_tuning_use(struct sw_worker *w, const struct sw_policy *policy,
	uint64_t part_bytes, uint64_t credit_bytes);
/* sw_tuning_credit - return this lane's part of the job's credit; 0: the
 * policy's. */
uint64_t sw_tuning_credit(const struct sw_worker *w,
	const struct sw_policy *policy, uint64_t credit_bytes);
/* sw_tuning_build - build the TUNE that asks for w->tuning.wanted. */
uint32_t sw_tuning_build(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h);
/* sw_tuning_received - apply the job's tuning in STATUS, if it is newer than
 * the worker's. */
void sw_tuning_received(struct sw_worker *w, const struct sw_status *st);

#endif
