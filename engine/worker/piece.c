/* piece.c - how a collective divides into chunks, and what each of them is.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/base/bytes.h"
#include "engine/worker/stream.h"

bool sw_coll_is_by_part(const struct sw_coll *c)
{
	return c->ask.kind == SW_REDUCE_SCATTER || c->ask.kind == SW_ALL_GATHER;
}

/* Member number @i of the group. */
static uint32_t member_at(uint64_t members, uint32_t i)
{
	while (i-- > 0)
		members &= members - 1;
	return (uint32_t)__builtin_ctzll(members);
}

static uint32_t place_in_group(uint64_t members, uint32_t member)
{
	return (uint32_t)__builtin_popcountll(members & ((1ULL << member) - 1));
}

bool sw_coll_has_root(enum sw_coll_kind kind)
{
	return kind == SW_BCAST || kind == SW_REDUCE;
}

/* Where none is meant it is the lowest member. */
uint32_t sw_coll_root(
	const struct sw_wtensor *t, const struct sw_coll *c, uint32_t chunk)
{
	if (sw_coll_has_root(c->ask.kind))
		return c->ask.root;
	return member_at(t->decl.members,
		sw_coll_is_by_part(c) ? chunk / c->n_per_part : 0);
}

/* Where a chunk begins in a buffer that has all parts, or in one part. */
static uint64_t offset_in_part(const struct sw_coll *c, uint32_t chunk)
{
	return (uint64_t)(chunk % c->n_per_part) * c->chunk_bytes;
}

static uint64_t offset_in_all(const struct sw_coll *c, uint32_t chunk)
{
	return chunk / c->n_per_part * c->ask.stride + offset_in_part(c, chunk);
}

uint32_t sw_piece_bytes(const struct sw_piece *p)
{
	return (uint32_t)sw_min64(p->coll->chunk_bytes,
		p->coll->part_bytes - offset_in_part(p->coll, p->chunk));
}

uint32_t sw_stream_bytes(const struct sw_wtensor *t, uint32_t chunk)
{
	return sw_piece_bytes(&t->stream->pieces[chunk]);
}

bool sw_piece_gives(const struct sw_worker *w, const struct sw_wtensor *t,
	const struct sw_piece *p)
{
	return sw_coll_from(p->coll->ask.kind, t->decl.members,
		       sw_coll_root(t, p->coll, p->chunk)) >>
		       w->rank &
	       1;
}

bool sw_piece_gets(const struct sw_worker *w, const struct sw_wtensor *t,
	const struct sw_piece *p)
{
	return sw_coll_to(p->coll->ask.kind, t->decl.members,
		       sw_coll_root(t, p->coll, p->chunk)) >>
		       w->rank &
	       1;
}

const uint8_t *sw_piece_source(const struct sw_piece *p)
{
	const uint8_t *from = p->coll->ask.from;

	return from + (p->coll->ask.kind == SW_ALL_GATHER
				      ? offset_in_part(p->coll, p->chunk)
				      : offset_in_all(p->coll, p->chunk));
}

uint8_t *sw_piece_target(const struct sw_piece *p)
{
	uint8_t *to = p->coll->ask.to;

	return to + (p->coll->ask.kind == SW_REDUCE_SCATTER
				    ? offset_in_part(p->coll, p->chunk)
				    : offset_in_all(p->coll, p->chunk));
}

/* Without servers of their own (k = 0), a member's part lies at its own, so
 * that it never travels; else chunks go by weight, as those of tensors do. */
static bool is_at_home(const struct sw_worker *w, const struct sw_coll *c)
{
	return sw_coll_is_by_part(c) &&
	       w->place.n_colocated == w->place.n_servers &&
	       w->place.n_lcores <= 1;
}

/* Chunks of @c that lie at the link's server, and the one with local index
 * @i. */
uint32_t sw_coll_n_at(const struct sw_worker *w, const struct sw_wtensor *t,
	const struct sw_coll *c, const struct sw_link *l)
{
	if (!is_at_home(w, c))
		return sw_place_init(
			&w->map, c->first, c->n_chunks, l->server_i)
			.n_local;
	return t->decl.members >> l->server_i & 1 ? c->n_per_part : 0;
}

uint32_t sw_coll_chunk_at(const struct sw_worker *w, const struct sw_wtensor *t,
	const struct sw_coll *c, const struct sw_link *l, uint32_t i)
{
	struct sw_place p;

	if (is_at_home(w, c))
		return place_in_group(t->decl.members, l->server_i) *
			       c->n_per_part +
		       i;
	p = sw_place_init(&w->map, c->first, c->n_chunks, l->server_i);
	return sw_place_global(&p, i);
}
