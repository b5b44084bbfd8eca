/* piece.c - how a collective divides into chunks, and what each of them is.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/ticks.h"
#include "engine/worker/stream.h"
#include "sum/sum.h"

bool sw_coll_is_by_part(const struct sw_coll *c)
{
	return c->ask.kind == SW_REDUCE_SCATTER || c->ask.kind == SW_ALL_GATHER;
}

bool sw_coll_has_root(enum sw_coll_kind kind)
{
	return kind == SW_BCAST || kind == SW_REDUCE;
}

const struct sw_wrank *sw_coll_root(
	const struct sw_stream *s, const struct sw_coll *c, uint32_t chunk)
{
	return &s->group.ranks[sw_coll_is_by_part(c) ? chunk / c->n_per_part
						     : c->root];
}

/* Where a chunk begins in a buffer that has all parts, or in one part. */
static uint64_t offset_in_part(const struct sw_coll *c, uint32_t chunk)
{
	return (uint64_t)(chunk % c->n_per_part) * c->chunk_bytes;
}

static uint64_t offset_in_all(
	const struct sw_coll *c, const struct sw_coll_local *l, uint32_t chunk)
{
	return chunk / c->n_per_part * l->stride + offset_in_part(c, chunk);
}

uint32_t sw_piece_bytes(const struct sw_piece *p)
{
	return (uint32_t)sw_min64(p->coll->chunk_bytes,
		p->coll->part_bytes - offset_in_part(p->coll, p->chunk));
}

bool sw_piece_gives(const struct sw_worker *w, const struct sw_wtensor *t,
	const struct sw_piece *p)
{
	const struct sw_stream *s = t->stream;

	return sw_coll_from(p->coll->ask.kind, s->group.members,
		       sw_coll_root(s, p->coll, p->chunk)->member) >>
		       w->rank &
	       1;
}

bool sw_piece_gets(const struct sw_worker *w, const struct sw_wtensor *t,
	const struct sw_piece *p)
{
	const struct sw_stream *s = t->stream;

	return sw_coll_to(p->coll->ask.kind, s->group.members,
		       sw_coll_root(s, p->coll, p->chunk)->member) >>
		       w->rank &
	       1;
}

uint64_t sw_piece_givers(const struct sw_stream *s, const struct sw_piece *p)
{
	if (sw_coll_is_sum(p->coll->ask.kind))
		return s->group.here;
	return 1ULL << sw_coll_root(s, p->coll, p->chunk)->local;
}

uint64_t sw_piece_takers(const struct sw_stream *s, const struct sw_piece *p)
{
	enum sw_coll_kind kind = p->coll->ask.kind;

	if (kind == SW_REDUCE || kind == SW_REDUCE_SCATTER)
		return 1ULL << sw_coll_root(s, p->coll, p->chunk)->local;
	return s->group.here;
}

const uint8_t *sw_piece_source(const struct sw_piece *p, uint32_t local)
{
	const struct sw_coll_local *l = &p->coll->locals[local];

	return l->from + (p->coll->ask.kind == SW_ALL_GATHER
					 ? offset_in_part(p->coll, p->chunk)
					 : offset_in_all(p->coll, l, p->chunk));
}

uint8_t *sw_piece_target(const struct sw_piece *p, uint32_t local)
{
	const struct sw_coll_local *l = &p->coll->locals[local];

	return l->to + (p->coll->ask.kind == SW_REDUCE_SCATTER
				       ? offset_in_part(p->coll, p->chunk)
				       : offset_in_all(p->coll, l, p->chunk));
}

void sw_piece_take(const struct sw_stream *s, const struct sw_piece *p,
	const uint8_t *bytes)
{
	for (uint64_t to = sw_piece_takers(s, p); to; to &= to - 1) {
		uint8_t *at = sw_piece_target(p, (uint32_t)__builtin_ctzll(to));

		if (at != bytes)
			memcpy(at, bytes, sw_piece_bytes(p));
	}
}

void sw_piece_copy_own(const struct sw_stream *s, const struct sw_piece *p)
{
	sw_piece_take(s, p,
		sw_piece_source(p, sw_coll_root(s, p->coll, p->chunk)->local));
}

/* Without servers of their own (k = 0), a member's parts lie at its own, so
 * that they never travel; else chunks go by weight, as those of tensors do. */
static bool is_at_home(const struct sw_worker *w, const struct sw_coll *c)
{
	return sw_coll_is_by_part(c) &&
	       w->place.n_colocated == w->place.n_servers &&
	       w->place.n_lcores <= 1;
}

struct sw_coll_share sw_coll_share(const struct sw_worker *w,
	const struct sw_stream *s, const struct sw_coll *c, uint32_t server_i)
{
	const uint16_t *start = s->group.start;
	struct sw_coll_share share = {0};

	if (is_at_home(w, c)) {
		share.parts = s->group.by_member + start[server_i];
		share.n = c->n_per_part *
			  (uint32_t)(start[server_i + 1] - start[server_i]);
		return share;
	}
	share.place = sw_place_init(&w->map, c->first, c->n_chunks, server_i);
	share.n = share.place.n_local;
	return share;
}

uint32_t sw_coll_share_at(
	const struct sw_coll *c, const struct sw_coll_share *share, uint32_t i)
{
	if (share->parts)
		return share->parts[i / c->n_per_part] * c->n_per_part +
		       i % c->n_per_part;
	return sw_place_global(&share->place, i);
}
