/* policy_bytescheduler.c - parts by priority under a credit (SOSP 2019).
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * ByteScheduler's algorithm 1.  A part costs nothing here but its bytes (no
 * message of its own, no call), so it is small.  The credit is what all servers
 * together may have on its way or unfolded; what has not left yet gives its own
 * back to an urgent tensor. */
#include "engine/sched/policy.h"

const struct sw_policy sw_policy_bytescheduler = {.name = "bytescheduler",
	.by_priority = true,
	.is_tunable = true,
	.takes_back = true,
	.part_bytes = 16 << 10,
	.credit_bytes = 4 << 20};
