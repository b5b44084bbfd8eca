/* group.c - the ranks of a stream, as a worker knows them.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/group.h"

#include <string.h>

#include "engine/worker/stream.h"
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

void sw_wgroup_fill(
	const struct sw_worker *w, const uint16_t *ranks, struct sw_wgroup *g)
{
	uint16_t next[SW_MAX_MEMBERS];

	g->crc = sw_crc32c(0, ranks, g->n * sizeof(*ranks));
	for (uint32_t i = 0; i < g->n; i++) {
		struct sw_wrank *r = &g->ranks[i];

		(void)!resolve(w, ranks[i], r);
		g->members |= 1ULL << r->member;
		g->start[r->member + 1]++;
		sw_bits_add(g->bits, r->rank);
		if (r->member == w->member)
			sw_bits_add(g->has_local, r->local);
	}
	for (uint32_t i = 0; i < w->n_local; i++)
		if (sw_wgroup_has_local(g, i))
			g->here[g->n_here++] = (uint16_t)i;
	/* Sort the places in the list by member. */
	for (uint32_t m = 0; m < SW_MAX_MEMBERS; m++)
		g->start[m + 1] = (uint16_t)(g->start[m + 1] + g->start[m]);
	memcpy(next, g->start, sizeof(next));
	for (uint32_t i = 0; i < g->n; i++)
		g->by_member[next[g->ranks[i].member]++] = (uint16_t)i;
}

uint32_t sw_wgroup_find(const struct sw_wgroup *g, uint32_t rank)
{
	uint32_t i = 0;

	while (i < g->n && g->ranks[i].rank != rank)
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
	return g->ranks[g->by_member[g->start[r.member]]].rank;
}

/* Replace the first ranks of members, by which a server names them, by their
 * first ranks in the group. */
void sw_fault_received(const struct sw_worker *w, const struct sw_wtensor *t,
	struct sw_fault *f)
{
	struct sw_fault_call *calls[] = {&f->one, &f->other};
	const struct sw_wgroup *g = sw_group_of(t);

	f->err = (int16_t)sw_fault_death(f->err);
	if (!g || f->kind >= SW_FAULT_SILENT ||
		(f->kind == SW_FAULT_GONE && f->other.rank))
		return; /* it names ranks, not members by their first rank */
	for (uint32_t i = 0; i < SW_ARRAY_SIZE(calls); i++) {
		calls[i]->rank = rank_in(w, g, calls[i]->rank);
		calls[i]->root = rank_in(w, g, calls[i]->root);
	}
}

/* --- the streams of one group --- */

enum { PLACES = sizeof((struct sw_worker *)0)->groups / sizeof(uint16_t) };

/* Return the place of the group of stream @name, or the place to insert it. */
static uint16_t *place_of(struct sw_worker *w, const char *name)
{
	size_t n = sw_coll_group_bytes(name);
	uint32_t i = sw_crc32c(0, name, n) % PLACES;

	for (; w->groups[i]; i = (i + 1) % PLACES) {
		const char *other = w->tensors[w->groups[i] - 1].name;

		if (sw_coll_group_bytes(other) == n && !memcmp(other, name, n))
			break;
	}
	return &w->groups[i];
}

/* Choose the slot in which the life of new stream @t's group lies.  A stream
 * beyond the group's limit has its own life, and the coordinator refuses it. */
static uint32_t slot_for(struct sw_worker *w, const struct sw_wtensor *t)
{
	const struct sw_wtensor *u = NULL;
	uint32_t n = 0;
	uint16_t *place;

	if (w->lane_i)
		return sw_wtensor_slot(&w->lanes->zero->tensors[t->index])
			->index;
	place = place_of(w, t->name);
	if (!*place)
		*place = (uint16_t)(t->index + 1);
	while ((u = sw_wtensor_next(&w->tensors[*place - 1], u)))
		n++;
	return n < SW_GROUP_STREAMS ? *place - 1u : t->index;
}

void sw_life_enter(struct sw_worker *w, struct sw_wtensor *t)
{
	struct sw_wtensor **at;

	t->life = &w->tensors[slot_for(w, t)].own_life;
	at = &t->life->streams;
	while (*at)
		at = &(*at)->stream->next;
	*at = t;
}

bool sw_life_identify(
	struct sw_worker *w, const struct sw_wtensor *t, uint32_t id)
{
	struct sw_life *g = t->life;

	if (g->key == SW_KEY_NONE) {
		g->key = id;
		w->by_group[sw_key_index(id)] = sw_wtensor_slot(t)->index;
	}
	return g->key == id;
}

/* Groups behind the removed one may have collided with it, so insert them
 * again. */
void sw_life_retire(struct sw_worker *w, const struct sw_wtensor *t)
{
	uint16_t *at = w->lane_i ? NULL : place_of(w, t->name), moved;

	if (!at || *at != sw_wtensor_slot(t)->index + 1)
		return;
	*at = 0;
	while (*(at = at + 1 < w->groups + PLACES ? at + 1 : w->groups)) {
		moved = *at;
		*at = 0;
		*place_of(w, w->tensors[moved - 1].name) = moved;
	}
}
