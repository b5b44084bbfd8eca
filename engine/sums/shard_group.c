/* shard_group.c - groups that their members close.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/base/error.h"
#include "engine/sums/rules.h"
#include "engine/sums/stream.h"

static uint64_t free_window(struct sw_shard *sh, struct sw_stensor *t)
{
	uint64_t bytes = t->mem_bytes;

	/* nothing of it is open any more */
	sw_shard_kill(sh, t, 1, SW_EABORTED, "");
	for (uint32_t i = 0; t->mem && i < t->window && sh->n_lent; i++)
		t->rules->keep(sh, t, i);
	sw_marks_drop(sh, t);
	if (t->mem)
		sh->env->mem_put(sh->env->ctx, t->mem, bytes);
	sh->mem_bytes -= bytes;
	sw_shard_forget(sh, t);
	return bytes;
}

/* Number @i from base on, if somebody has pushed it. */
static const struct sw_slot *open_slot(const struct sw_stensor *t, uint32_t i)
{
	const struct sw_slot *slots = (const struct sw_slot *)t->records;
	uint32_t j = t->base + i;
	const struct sw_slot *s = &slots[j & (t->window - 1)];

	return s->chunk == j && s->got ? s : NULL;
}

uint32_t sw_shard_waits_for(const struct sw_stensor *t, uint32_t member)
{
	for (uint32_t i = 0; t->mem && i < t->window; i++) {
		const struct sw_slot *s = open_slot(t, i);

		if (s && !(s->got >> member & 1))
			return (uint32_t)__builtin_ctzll(s->got);
	}
	return SW_MAX_MEMBERS;
}

/* What somebody pushed to @t of the collective @number of its group. */
static const struct sw_slot *find_call(
	const struct sw_stensor *t, uint32_t number)
{
	for (uint32_t i = 0; t->mem && i < t->window; i++) {
		const struct sw_slot *s = open_slot(t, i);

		if (s && s->number == number)
			return s;
	}
	return NULL;
}

struct sw_begun sw_shard_other_call(
	const struct sw_shard *sh, const struct sw_stensor *t, uint32_t number)
{
	const struct sw_slot *s = NULL;
	uint32_t key = SW_KEY_NONE;

	while (t->window && !s &&
		(key = sw_shard_kin(sh, t->name, key)) != SW_KEY_NONE)
		if (key != t->key)
			s = find_call(sw_shard_tensor(sh, key), number);
	return s ? (struct sw_begun){.got = s->got, .op = s->op}
		 : (struct sw_begun){0};
}

bool sw_shard_close_stream(struct sw_shard *sh, struct sw_stensor *t,
	uint64_t members, uint64_t left, uint64_t *bytes)
{
	t->closed |= t->members & members;
	if (t->members & ~(t->closed | left))
		return false;
	*bytes = free_window(sh, t);
	return true;
}
