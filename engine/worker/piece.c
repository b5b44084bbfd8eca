/* piece.c - divide a collective into chunks, combine and write their bytes.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/piece.h"

#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/ticks.h"
#include "engine/worker/group.h"
#include "sum/sum.h"

bool sw_coll_is_by_part(enum sw_coll_kind kind)
{
	return kind == SW_REDUCE_SCATTER || kind == SW_ALL_GATHER;
}

bool sw_coll_has_root(enum sw_coll_kind kind)
{
	return kind == SW_BCAST || kind == SW_REDUCE;
}

/* Return the root of a part. */
static const struct sw_wrank *root_of(
	const struct sw_stream *s, const struct sw_coll *c, uint32_t part)
{
	return &s->group.ranks[sw_coll_is_by_part(c->ask.kind) ? part
							       : c->root];
}

static uint16_t bytes_of(const struct sw_coll *c, uint32_t at)
{
	return (uint16_t)sw_min64(
		c->chunk_bytes, c->part_bytes - (uint64_t)at * c->chunk_bytes);
}

struct sw_piece sw_piece_of(const struct sw_worker *w,
	const struct sw_stream *s, struct sw_coll *c, uint32_t chunk)
{
	struct sw_piece p = {.coll = c,
		.part = (uint16_t)(chunk / c->n_per_part),
		.at = chunk % c->n_per_part};
	uint64_t members = s->group.members;

	p.bytes = bytes_of(c, p.at);
	p.root = (uint8_t)root_of(s, c, p.part)->member;
	p.gives = sw_coll_from(c->ask.kind, members, p.root) >> w->member & 1;
	p.gets = sw_coll_to(c->ask.kind, members, p.root) >> w->member & 1;
	p.cost = p.gives ? p.bytes : SW_EMPTY_COST;
	return p;
}

/* Return the local ranks of the group: all, or the root alone. */
static struct sw_local_list locals_of(
	const struct sw_stream *s, const struct sw_piece *p, bool are_all)
{
	if (are_all)
		return (struct sw_local_list){s->group.here, s->group.n_here};
	return (struct sw_local_list){&root_of(s, p->coll, p->part)->local, 1};
}

/* Where a piece begins in the buffers of local ranks: at bytes behind the start
 * of a part. */
struct spot {
	uint64_t at, part;
};

/* Return the spot of a piece.  In these buffers, collectives of kind @one_part
 * have one part: all_gather in sources, reduce_scatter in targets. */
static inline struct spot spot_of(
	const struct sw_piece *p, enum sw_coll_kind one_part)
{
	return (struct spot){.at = (uint64_t)p->at * p->coll->chunk_bytes,
		.part = p->coll->ask.kind == one_part ? 0 : p->part};
}

static inline uint64_t offset_at(
	struct spot spot, const struct sw_coll_local *l)
{
	return spot.part * l->stride + spot.at;
}

void sw_piece_take(const struct sw_stream *s, const struct sw_piece *p,
	const uint8_t *bytes)
{
	const struct sw_coll_local *locals = p->coll->locals;
	enum sw_coll_kind kind = p->coll->ask.kind;
	struct sw_local_list to =
		locals_of(s, p, kind != SW_REDUCE && kind != SW_REDUCE_SCATTER);
	struct spot spot = spot_of(p, SW_REDUCE_SCATTER);
	uint32_t n = p->bytes;

	for (uint32_t i = 0; i < to.n; i++) {
		const struct sw_coll_local *l = &locals[to.list[i]];
		uint8_t *at = l->to + offset_at(spot, l);

		if (at != bytes)
			memcpy(at, bytes, n);
	}
}

void sw_piece_copy_own(const struct sw_stream *s, const struct sw_piece *p)
{
	const struct sw_coll_local *l =
		&p->coll->locals[root_of(s, p->coll, p->part)->local];

	sw_piece_take(s, p, l->from + offset_at(spot_of(p, SW_ALL_GATHER), l));
}

/* Return the share of a colocated server: the member's parts, with chunks in
 * turns among its lcores. */
static struct sw_coll_share share_at_home(const struct sw_worker *w,
	const struct sw_stream *s, const struct sw_coll *c, uint32_t server_i)
{
	uint32_t step = w->place.n_lcores > 1 ? w->place.n_lcores : 1;
	const uint16_t *start = &s->group.start[server_i / step];
	struct sw_coll_share share = {.parts = s->group.by_member + start[0],
		.from = server_i % step,
		.step = step};

	share.n_per_part = (c->n_per_part + step - 1 - share.from) / step;
	share.n = share.n_per_part * (uint32_t)(start[1] - start[0]);
	return share;
}

/* Does another server have all chunks, because they are one stripe?  A small
 * collective then costs little at the servers that it does not use. */
static bool is_elsewhere(
	const struct sw_worker *w, const struct sw_coll *c, uint32_t server_i)
{
	return c->first % SW_STRIPE_CHUNKS +
			       (uint64_t)c->n_chunks * SW_COLL_PLACES <=
		       SW_STRIPE_CHUNKS &&
	       sw_place_owner(&w->map, c->first, 0) != server_i;
}

struct sw_coll_share sw_coll_share(const struct sw_worker *w,
	const struct sw_stream *s, const struct sw_coll *c, uint32_t server_i)
{
	struct sw_coll_share share = {0};

	/* If all servers are colocated, parts lie at their member's own server,
	 * so that they never travel; else chunks are placed by weight, like a
	 * tensor's chunks. */
	if (sw_coll_is_by_part(c->ask.kind) &&
		w->place.n_colocated == w->place.n_servers)
		return share_at_home(w, s, c, server_i);
	if (is_elsewhere(w, c, server_i))
		return share;
	share.place = sw_place_init(
		&w->map, c->first, c->n_chunks * SW_COLL_PLACES, server_i);
	share.n = share.place.n_local / SW_COLL_PLACES;
	return share;
}

uint32_t sw_coll_share_at(
	const struct sw_coll *c, const struct sw_coll_share *share, uint32_t i)
{
	if (share->parts)
		return share->parts[i / share->n_per_part] * c->n_per_part +
		       share->from + i % share->n_per_part * share->step;
	return sw_place_global(&share->place, i * SW_COLL_PLACES) /
	       SW_COLL_PLACES;
}

uint32_t sw_coll_share_run(
	const struct sw_coll_share *share, const struct sw_piece *p, uint32_t i)
{
	uint32_t left = p->coll->n_per_part - p->at, run;

	if (share->parts)
		return (left + share->step - 1) / share->step;
	run = sw_place_run(&share->place, i * SW_COLL_PLACES) / SW_COLL_PLACES;
	return left < run ? left : run;
}

void sw_piece_go_on(const struct sw_coll_share *share, struct sw_piece *p)
{
	p->at += share->parts ? share->step : 1;
	p->bytes = bytes_of(p->coll, p->at);
	p->cost = p->gives ? p->bytes : SW_EMPTY_COST;
}

uint32_t sw_coll_divide(const struct sw_worker *w, const struct sw_stream *s,
	const struct sw_coll *c, uint32_t *lanes)
{
	uint32_t mine = 0;

	*lanes = 0;
	for (uint32_t i = 0; i < w->place.n_servers; i++) {
		uint32_t n = sw_coll_share(w, s, c, i).n;

		if (w->lane_of[i] == w->lane_i)
			mine += n;
		else if (n) /* lane 0 has no bit */
			*lanes |= 1u << w->lane_of[i] >> 1;
	}
	return mine;
}

/* --- combine the local ranks' bytes of a chunk into one contribution --- */

/* The local ranks' bytes of one chunk. */
struct given {
	uint32_t n, n_elems;
	const void **from;
	double *scale; /* SW_PREMUL_SUM */
};

/* Scale a rank's bytes by its factor into w->payload; return the rank's own
 * bytes if the factor is 1. */
static const void *scaled_given(struct sw_worker *w,
	const struct sw_sum_ops *ops, const struct given *g, uint32_t i)
{
	if (g->scale[i] == 1)
		return g->from[i];
	ops->scale(w->payload, g->from[i], g->scale[i], g->n_elems);
	return w->payload;
}

/* Fold the bytes into @to: sums in one pass, other operations rank by rank. */
static void fold_given(struct sw_worker *w, const struct sw_sum_ops *ops,
	enum sw_reduce_op op, const struct given *g, void *to)
{
	sw_fold_fn *fn = ops->put;

	if (op == SW_SUM || op == SW_AVG) {
		ops->sum(to, g->from, g->n, g->n_elems);
		return;
	}
	for (uint32_t i = 0; i < g->n; i++) {
		fn(to,
			op == SW_PREMUL_SUM ? scaled_given(w, ops, g, i)
					    : g->from[i],
			g->n_elems);
		fn = sw_coll_fold(ops, op);
	}
}

/* Combine the bytes into w->made_at.  Divide an average here if no server does.
 */
static void combine_given(struct sw_worker *w, const struct sw_stream *s,
	const struct sw_worker_coll *ask, const struct given *g)
{
	const struct sw_sum_ops *ops = &w->env->sum->ops[ask->dtype];
	void *to = ops->round ? (void *)w->sums : w->made_at;

	fold_given(w, ops, ask->op, g, to);
	if (ask->op == SW_AVG && sw_stream_is_here(w, s))
		ops->divide(to, to, g->n, g->n_elems);
	if (ops->round)
		ops->round(w->made_at, to, g->n_elems);
}

uint16_t sw_piece_give(struct sw_worker *w, const struct sw_stream *s,
	const struct sw_piece *p, const uint8_t **bytes)
{
	const struct sw_worker_coll *ask = &p->coll->ask;
	const struct sw_coll_local *locals = p->coll->locals;
	struct sw_local_list givers =
		locals_of(s, p, sw_coll_is_sum(ask->kind));
	struct spot spot = spot_of(p, SW_ALL_GATHER);
	struct given g = {.n = givers.n,
		.n_elems = p->bytes / sw_dtype_bytes(ask->dtype),
		.from = w->sources,
		.scale = w->scales};

	for (uint32_t i = 0; i < g.n; i++) {
		const struct sw_coll_local *l = &locals[givers.list[i]];

		g.from[i] = l->from + offset_at(spot, l);
	}
	for (uint32_t i = 0; ask->op == SW_PREMUL_SUM && i < g.n; i++)
		g.scale[i] = locals[givers.list[i]].scale;
	*bytes = g.from[0];
	if (g.n > 1 || ask->op == SW_PREMUL_SUM) {
		*bytes = w->made_at;
		SW_TIMED(w->stats.ticks_sum, combine_given(w, s, ask, &g));
	}
	return (uint16_t)g.n;
}
