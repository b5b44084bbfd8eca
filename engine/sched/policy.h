/* policy.h - order, size of parts and credit of a scheduling policy.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A policy is data: a number in this file and a row in policy.c. */
#ifndef SW_ENGINE_SCHED_POLICY_H
#define SW_ENGINE_SCHED_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#define SW_PART_WHOLE UINT64_MAX /* whole tensor in one part */

/* Limits of user settings. */
#define SW_PART_MIN   UINT64_C(1024)
#define SW_PART_MAX   (UINT64_C(1) << 36)
#define SW_CREDIT_MIN UINT64_C(1024)
#define SW_CREDIT_TOP (UINT64_C(1) << 40)

struct sw_policy {
	const char *name;
	bool by_priority;    /* order by priority; else by readiness */
	bool is_tunable;     /* the numbers below are defaults; else fixed */
	bool takes_back;     /* take parts back for urgent tasks (sched.h) */
	uint64_t part_bytes; /* bytes of one part */
	/* A part may start while any credit is left; a credit of 1 is
	 * stop-and-wait. */
	uint64_t credit_bytes;
};

/* Numbers of policies, also on the wire. */
enum sw_policy_id {
	SW_POLICY_BYTESCHEDULER,
	SW_POLICY_P3,
	SW_POLICY_FIFO,
	SW_N_POLICIES
};

extern const struct sw_policy sw_policies[SW_N_POLICIES];

/* sw_policy_at - return the policy with number @id, or NULL. */
const struct sw_policy *sw_policy_at(uint32_t id);

/* sw_policy_find - return the policy called @name, or NULL. */
const struct sw_policy *sw_policy_find(const char *name);

/* sw_policy_id - return the number of one of sw_policies. */
uint32_t sw_policy_id(const struct sw_policy *policy);

/* Tuning of a running job.  Any member may send TUNE to the coordinator.  The
 * coordinator numbers the tunings and sends the newest to all members (STATUS)
 * until they acknowledge it.  A member switches when it receives the STATUS.
 * Members may differ meanwhile, because a tuning affects only the sender. */
struct sw_job_tuning {
	uint32_t number; /* 0: the tuning of the JOINs */
	const struct sw_policy *policy;
	uint64_t part_bytes, credit_bytes; /* 0: the policy's */
};

#endif
