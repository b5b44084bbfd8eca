/* shard_group.c - groups that their members close.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/base/error.h"
#include "engine/sums/rules.h"

/* Its record stays: the key is not used again, and what comes late is of a dead
 * stream. */
static uint64_t free_window(struct sw_shard *sh, struct sw_stensor *t)
{
	uint64_t bytes = t->mem_bytes;

	sw_shard_kill(sh, t, 1, SW_EABORTED, "the group was closed");
	sw_marks_drop(sh, t);
	sh->env->mem_put(sh->env->ctx, t->mem, bytes);
	t->mem = NULL;
	sh->mem_bytes -= bytes;
	return bytes;
}

uint64_t sw_shard_close_stream(
	struct sw_shard *sh, struct sw_stensor *t, uint64_t members)
{
	t->closed |= t->members & members;
	return t->mem && t->closed == t->members ? free_window(sh, t) : 0;
}
