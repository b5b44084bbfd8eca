/* shard_group.c - groups that their members close.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/base/error.h"
#include "engine/sums/rules.h"
#include "engine/sums/stream.h"

/* Its record stays: the key is not used again, and what comes late is of a dead
 * stream. */
static uint64_t free_window(struct sw_shard *sh, struct sw_stensor *t)
{
	uint64_t bytes = t->mem_bytes;

	sw_shard_kill(sh, t, 1, SW_EABORTED, "the group was closed");
	t->rules->keep(sh, t);
	sw_marks_drop(sh, t);
	sh->env->mem_put(sh->env->ctx, t->mem, bytes);
	t->mem = NULL;
	sh->mem_bytes -= bytes;
	return bytes;
}

uint32_t sw_shard_waits_for(const struct sw_stensor *t, uint32_t member)
{
	const struct sw_slot *slots = (const struct sw_slot *)t->records;

	for (uint32_t i = 0; t->mem && i < t->window; i++) {
		uint32_t j = t->base + i;
		const struct sw_slot *s = &slots[j & (t->window - 1)];

		if (s->chunk == j && s->got && !(s->got >> member & 1))
			return (uint32_t)__builtin_ctzll(s->got);
	}
	return SW_MAX_MEMBERS;
}

uint64_t sw_shard_close_stream(struct sw_shard *sh, struct sw_stensor *t,
	uint64_t members, uint64_t left)
{
	t->closed |= t->members & members;
	return t->mem && !(t->members & ~(t->closed | left))
		       ? free_window(sh, t)
		       : 0;
}
