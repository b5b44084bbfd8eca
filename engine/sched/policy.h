/* policy.h - in which order, in which parts, with how much on its way.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A policy is data: a number here and a row in policy.c.
 */
#ifndef SW_ENGINE_SCHED_POLICY_H
#define SW_ENGINE_SCHED_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#define SW_PART_WHOLE UINT64_MAX /* a tensor is one part */

/* What a person may set. */
#define SW_PART_MIN   UINT64_C(1024)
#define SW_PART_MAX   (UINT64_C(1) << 36)
#define SW_CREDIT_MIN UINT64_C(1024)
#define SW_CREDIT_TOP (UINT64_C(1) << 40)

struct sw_policy {
	const char *name;
	bool by_priority;    /* else in order of readiness */
	bool is_tunable;     /* the numbers below are defaults, else fixed */
	bool takes_back;     /* for what is more urgent, sched.h */
	uint64_t part_bytes; /* of one part */
	/* Parts start while more than 0 of so many bytes are left: 1 is
	 * stop-and-wait. */
	uint64_t credit_bytes;
};

/* Their numbers go over the wire. */
enum sw_policy_id {
	SW_POLICY_BYTESCHEDULER,
	SW_POLICY_P3,
	SW_POLICY_FIFO,
	SW_N_POLICIES
};

extern const struct sw_policy sw_policies[SW_N_POLICIES];

/* sw_policy_at - the policy with that number; NULL: there is none. */
const struct sw_policy *sw_policy_at(uint32_t id);

/* sw_policy_find - the policy of that name; NULL: there is none. */
const struct sw_policy *sw_policy_find(const char *name);

/* sw_policy_id - the number of one of sw_policies. */
uint32_t sw_policy_id(const struct sw_policy *policy);

/* The tuning of a running job.  Any member asks the coordinator for another one
 * (TUNE), which numbers them and says the newest to all (STATUS) until they
 * have acknowledged it.  A member's scheduler goes over when it receives it.
 * Nothing on the wire depends on it: partition and credit are the sender's
 * alone, and a PUSH says whether its result goes in order of readiness.  So
 * members may differ for as long as STATUS is on its way. */
struct sw_job_tuning {
	uint32_t number; /* 0: those of the JOINs */
	const struct sw_policy *policy;
	uint64_t part_bytes, credit_bytes; /* 0: the policy's */
};

#endif
