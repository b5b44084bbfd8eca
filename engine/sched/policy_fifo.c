/* policy_fifo.c - whole tensors in the order in which they become ready.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What frameworks do without a scheduler. */
#include "engine/sched/policy.h"

const struct sw_policy sw_policy_fifo = {.name = "fifo",
	.part_bytes = SW_PART_WHOLE,
	.credit_bytes = SW_CREDIT_NONE};
