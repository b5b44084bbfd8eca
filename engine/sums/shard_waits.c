/* shard_waits.c - find the tensors and streams that wait for members.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/sums/shard.h"
#include "engine/sums/stream.h"

/* Return the members that have pushed fewer chunks than were begun. */
static uint64_t stream_lacks(
	const struct sw_shard *sh, const struct sw_stensor *t)
{
	uint64_t lacks = 0;

	for (uint32_t m = 0; m < sh->n_members; m++)
		if (t->members >> m & 1 && t->n_pushed[m] != t->n_begun)
			lacks |= 1ULL << m;
	return lacks;
}

/* Name the collective of the oldest chunk that is not done. */
static void name_oldest(const struct sw_stensor *t, struct sw_shard_wait *out)
{
	const struct sw_slot *s = (const struct sw_slot *)t->records +
				  (t->base & (t->window - 1));

	if (s->chunk != t->base) /* no member has pushed it */
		return;
	out->number = s->number;
	out->kind = sw_coll_kind_of(s->op);
}

/* Collect the members that open chunks lack.  Returns false if the budget is
 * used up before the end. */
static bool chunks_lack(const struct sw_shard *sh, const struct sw_stensor *t,
	struct sw_shard_look *at, uint32_t *budget)
{
	for (; at->chunk < t->place.n_local && at->n_found < t->n_open;
		at->chunk++) {
		if (!*budget)
			return false;
		--*budget;
		for (uint32_t k = 0; k < 2; k++) {
			const struct sw_cell *c = &t->chunks[at->chunk].cell[k];

			if (!c->got || c->is_done)
				continue;
			at->lacks |= sh->expected & ~c->got;
			if (sw_round_before(at->round, c->round))
				at->round = c->round;
			at->n_found++;
		}
	}
	return true;
}

bool sw_shard_next_wait(const struct sw_shard *sh, struct sw_shard_look *at,
	uint32_t *budget, struct sw_shard_wait *out)
{
	for (; at->index < sh->n_keys && *budget;
		*at = (struct sw_shard_look){.index = at->index + 1}) {
		const struct sw_stensor *t = &sh->tensors[at->index];

		--*budget;
		if (!t->rules || !t->n_open)
			continue;
		if (t->window)
			at->lacks = stream_lacks(sh, t);
		else if (t->mode != SW_MODE_ASYNC &&
			 !chunks_lack(sh, t, at, budget))
			return false;
		*out = (struct sw_shard_wait){.n_open = t->n_open,
			.is_stream = t->window,
			.number = at->round,
			.lacks = at->lacks,
			.since_ns = t->since_ns,
			.name = t->name};
		if (t->window)
			name_oldest(t, out);
		*at = (struct sw_shard_look){.index = at->index + 1};
		return true;
	}
	return false;
}
