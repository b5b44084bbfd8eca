/* policy_p3.c - P3 (Jayarajan et al., MLSys 2019): slices, stop and wait.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Slices of 40,000 parameters of 4 bytes by priority, the next one when the
 * one before has been folded. */
#include "engine/sched/policy.h"

const struct sw_policy sw_policy_p3 = {.name = "p3",
	.by_priority = true,
	.part_bytes = 160000,
	.credit_bytes = 1};
