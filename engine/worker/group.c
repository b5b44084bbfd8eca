/* group.c - the ranks of a stream, as a worker knows them.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/stream.h"

#include <string.h>

#include "sum/sum.h"

/* Find the member and the local rank of @rank.  Returns false if there is no
 * such rank. */
static bool resolve(
	const struct sw_worker *w, uint32_t rank, struct sw_wrank *out)
{
	uint32_t m = 0;

	for (uint32_t step = SW_MAX_MEMBERS / 2; step; step /= 2)
		if (m + step < w->n_members && rank >= w->firsts[m + step])
			m += step;
	if (rank >= w->firsts[m + 1] ||
		(m == w->member && rank - w->firsts[m] >= w->n_local))
		return false;
	*out = (struct sw_wrank){.rank = (uint16_t)rank,
		.member = (uint16_t)m,
		.local = (uint16_t)(rank - w->firsts[m])};
	return true;
}

bool sw_wgroup_check(
	const struct sw_worker *w, const uint16_t *ranks, uint32_t n)
{
	uint64_t seen[(UINT16_MAX + 1) / 64] = {0};
	bool is_in = false;

	if (n > SW_GROUP_RANKS)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		struct sw_wrank r;

		if (sw_bits_has(seen, ranks[i]) || !resolve(w, ranks[i], &r))
			return false;
		sw_bits_add(seen, ranks[i]);
		is_in |= r.member == w->member;
	}
	return is_in;
}

/* Sort the places in the list by member. */
static void sort(struct sw_wgroup *g)
{
	uint16_t next[SW_MAX_MEMBERS];

	for (uint32_t i = 0; i < g->n; i++)
		g->start[g->ranks[i].member + 1]++;
	for (uint32_t m = 0; m < SW_MAX_MEMBERS; m++)
		g->start[m + 1] = (uint16_t)(g->start[m + 1] + g->start[m]);
	memcpy(next, g->start, sizeof(next));
	for (uint32_t i = 0; i < g->n; i++)
		g->by_member[next[g->ranks[i].member]++] = (uint16_t)i;
}

void sw_wgroup_fill(
	const struct sw_worker *w, const uint16_t *ranks, struct sw_wgroup *g)
{
	g->crc = sw_crc32c(0, ranks, g->n * sizeof(*ranks));
	memcpy(g->list, ranks, g->n * sizeof(*ranks));
	for (uint32_t i = 0; i < g->n; i++) {
		struct sw_wrank *r = &g->ranks[i];

		(void)!resolve(w, ranks[i], r);
		g->members |= 1ULL << r->member;
		sw_bits_add(g->bits, r->rank);
		if (r->member == w->member)
			sw_bits_add(g->has_local, r->local);
	}
	for (uint32_t i = 0; i < w->n_local; i++)
		if (sw_wgroup_has_local(g, i))
			g->here[g->n_here++] = (uint16_t)i;
	sort(g);
}

uint32_t sw_wgroup_find(const struct sw_wgroup *g, uint32_t rank)
{
	uint32_t i = 0;

	while (i < g->n && g->list[i] != rank)
		i++;
	return i;
}

/* --- faults that servers report --- */

static uint16_t rank_in(
	const struct sw_worker *w, const struct sw_wgroup *g, uint16_t rank)
{
	struct sw_wrank r;

	if (!resolve(w, rank, &r) || r.local || sw_bits_has(g->bits, rank) ||
		!(g->members >> r.member & 1))
		return rank;
	return g->list[g->by_member[g->start[r.member]]];
}

void sw_fault_received(const struct sw_worker *w, const struct sw_wtensor *t,
	struct sw_fault *f)
{
	struct sw_fault_call *calls[] = {&f->one, &f->other};

	f->err = (int16_t)sw_fault_death(f->err);
	if (!t->stream || (f->kind == SW_FAULT_GONE &&
				  f->other.rank)) /* all ranks of a node */
		return;
	for (uint32_t i = 0; i < SW_ARRAY_SIZE(calls); i++) {
		calls[i]->rank = rank_in(w, &t->stream->group, calls[i]->rank);
		calls[i]->root = rank_in(w, &t->stream->group, calls[i]->root);
	}
}

/* --- streams of one group --- */

static uint32_t place_of(const char *name)
{
	return sw_coll_group_hash(name) % SW_TENSORS;
}

/* Return the first stream of the group of @t in a chain, from @u on. */
static struct sw_wtensor *kin_from(struct sw_wtensor *u,
	const struct sw_wtensor *t, enum sw_kin_chain chain)
{
	while (u && !sw_coll_are_kin(u->name, t->name))
		u = u->stream->kin[chain];
	return u;
}

struct sw_wtensor *sw_wtensor_kin(const struct sw_worker *w,
	const struct sw_wtensor *t, const struct sw_wtensor *last)
{
	if (!t->stream)
		return NULL;
	return kin_from(last ? last->stream->kin[SW_KIN_ADDED]
			     : w->groups[SW_KIN_ADDED][place_of(t->name)],
		t, SW_KIN_ADDED);
}

bool sw_kin_has_room(const struct sw_wtensor *t)
{
	const struct sw_wtensor *u = t;
	uint32_t n = 0;

	for (; u; u = kin_from(u->stream->kin[SW_KIN_BUILT], t, SW_KIN_BUILT))
		n++;
	return n <= SW_GROUP_STREAMS;
}

void sw_kin_put(struct sw_wtensor *t, enum sw_kin_chain chain)
{
	struct sw_wtensor **first =
		&t->worker->groups[chain][place_of(t->name)];

	t->stream->kin[chain] = *first;
	*first = t;
}

void sw_kin_remove(struct sw_wtensor *t, enum sw_kin_chain chain)
{
	struct sw_wtensor **at = &t->worker->groups[chain][place_of(t->name)];

	while (*at != t)
		at = &(*at)->stream->kin[chain];
	*at = t->stream->kin[chain];
}
