/* shard_group.c - close groups and find what their members call.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/sums/rules.h"
#include "engine/sums/stream.h"

static uint64_t free_window(struct sw_shard *sh, struct sw_stensor *t)
{
	uint64_t bytes = t->mem_bytes;

	/* ends its open chunks */
	sw_shard_kill(sh, t, 1, &t->why);
	for (uint32_t i = 0; t->mem && i < t->window && sh->n_lent; i++)
		t->rules->keep(sh, t, i);
	sw_marks_drop(sh, t);
	if (t->mem)
		sh->env->mem_put(sh->env->ctx, t->mem, bytes);
	sh->mem_bytes -= bytes;
	sw_shard_forget(sh, t);
	return bytes;
}

/* Return the slot of chunk @j, or NULL if no member has pushed it. */
static const struct sw_slot *open_slot(const struct sw_stensor *t, uint32_t j)
{
	const struct sw_slot *slots = (const struct sw_slot *)t->records;
	const struct sw_slot *s = &slots[j & (t->window - 1)];

	return t->mem && s->chunk == j && s->got ? s : NULL;
}

/* Return a member that has pushed a chunk that @member lacks. If two members
 * lack chunks of each other, none may have pushed more; then return any that
 * has pushed. */
static uint32_t who_waits(const struct sw_stensor *t, uint32_t member)
{
	const struct sw_slot *s = open_slot(t, t->newest);
	uint32_t who = SW_MAX_MEMBERS;

	if (s && !(s->got >> member & 1))
		return (uint32_t)__builtin_ctzll(s->got);
	for (uint64_t m = t->members & ~(1ULL << member); m; m &= m - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(m);

		if (who == SW_MAX_MEMBERS || t->n_pushed[i] > t->n_pushed[who])
			who = i;
	}
	return who;
}

uint32_t sw_shard_waits_for(const struct sw_stensor *t, uint32_t member)
{
	bool is_awaited = t->mem && t->members >> member & 1 &&
			  t->n_pushed[member] != t->n_begun;

	return is_awaited ? who_waits(t, member) : SW_MAX_MEMBERS;
}

/* Find a push to @t for collective @number of its group. All chunks below base
 * are done, and numbers rise with chunks, so the first of two differing
 * collectives reaches base as soon as earlier ones are done. */
static const struct sw_slot *find_call(
	const struct sw_stensor *t, uint32_t number)
{
	const uint32_t at[] = {t->base, t->newest};

	for (uint32_t i = 0; i < 2; i++) {
		const struct sw_slot *s = open_slot(t, at[i]);

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
