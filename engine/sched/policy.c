/* policy.c - the scheduling policies, a row each.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/sched/policy.h"

#include <stddef.h>
#include <string.h>

const struct sw_policy sw_policies[SW_N_POLICIES] = {
	/* Parts by priority under a credit (ByteScheduler, SOSP 2019, algorithm
	 * 1).  A part costs only its bytes here (no message, no call), so parts
	 * are small.  The credit bounds the bytes in flight to all servers or
	 * not folded yet; chunks not sent yet return their credit to an urgent
	 * tensor. */
	[SW_POLICY_BYTESCHEDULER] = {.name = "bytescheduler",
		.by_priority = true,
		.is_tunable = true,
		.takes_back = true,
		.part_bytes = 16 << 10,
		.credit_bytes = 4 << 20},
	/* Slices of 40,000 parameters of 4 bytes by priority; a slice starts
	 * when the previous one has been folded (Jayarajan et al., MLSys 2019).
	 */
	[SW_POLICY_P3] = {.name = "p3",
		.by_priority = true,
		.part_bytes = 160000,
		.credit_bytes = 1},
	/* Tensor after tensor as they become ready, as frameworks do without a
	 * scheduler.  The credit exceeds the grants of servers. */
	[SW_POLICY_FIFO] = {.name = "fifo",
		.part_bytes = 1 << 20,
		.credit_bytes = 16 << 20},
};

const struct sw_policy *sw_policy_at(uint32_t id)
{
	return id < SW_N_POLICIES ? &sw_policies[id] : NULL;
}

const struct sw_policy *sw_policy_find(const char *name)
{
	for (uint32_t i = 0; i < SW_N_POLICIES; i++)
		if (!strcmp(sw_policies[i].name, name))
			return &sw_policies[i];
	return NULL;
}

uint32_t sw_policy_id(const struct sw_policy *policy)
{
	return (uint32_t)(policy - sw_policies);
}
