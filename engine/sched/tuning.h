/* tuning.h - policy, partition and credit of a running job.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Any member asks the coordinator for other tuning (TUNE), which numbers them
 * and says the newest to all (STATUS) until they have acknowledged it.  A
 * member's scheduler goes over when it receives it.  Nothing on the wire
 * depends on them: partition and credit are the sender's alone, and a PUSH says
 * whether its result goes in order of readiness.  So members may differ for as
 * long as STATUS is on its way.
 */
#ifndef SW_TUNING_H
#define SW_TUNING_H

#include <stdint.h>

#include "engine/sched/policy.h"

struct sw_job_tuning {
	uint32_t number; /* 0: those of the JOINs */
	const struct sw_policy *policy;
	uint64_t part_bytes, credit_bytes; /* 0: the policy's */
};

#endif
