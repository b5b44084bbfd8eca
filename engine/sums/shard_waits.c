/* shard_waits.c - which tensors and streams have chunks that wait, for whom.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/sums/shard.h"

/* Members that have not pushed as many chunks as were begun. */
static uint64_t stream_lacks(
	const struct sw_shard *sh, const struct sw_stensor *t)
{
	uint64_t lacks = 0;

	for (uint32_t m = 0; m < sh->n_members; m++)
		if (t->members >> m & 1 && t->n_pushed[m] != t->n_begun)
			lacks |= 1ULL << m;
	return lacks;
}

/* Members that an open chunk lacks, of as many chunks as @budget allows. */
static uint64_t chunks_lack(
	const struct sw_shard *sh, const struct sw_stensor *t, uint32_t *budget)
{
	uint64_t lacks = 0;
	uint32_t n_found = 0;

	for (uint32_t i = 0; i < t->place.n_local && *budget; i++, --*budget)
		for (uint32_t k = 0; k < 2; k++) {
			const struct sw_cell *c = &t->chunks[i].cell[k];

			if (!c->got || c->is_done)
				continue;
			lacks |= sh->expected & ~c->got;
			if (++n_found == t->n_open)
				return lacks;
		}
	return lacks;
}

bool sw_shard_next_wait(const struct sw_shard *sh, uint32_t *i,
	uint32_t *budget, struct sw_shard_wait *out)
{
	while (*i < sh->n_keys && *budget) {
		const struct sw_stensor *t = &sh->tensors[(*i)++];

		--*budget;
		if (!t->rules || !t->n_open)
			continue;
		*out = (struct sw_shard_wait){.n_open = t->n_open,
			.is_stream = t->window,
			.name = t->name};
		if (t->window)
			out->lacks = stream_lacks(sh, t);
		else if (t->mode != SW_MODE_ASYNC)
			out->lacks = chunks_lack(sh, t, budget);
		return true;
	}
	return false;
}
