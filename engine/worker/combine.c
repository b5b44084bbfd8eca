/* combine.c - combine the local ranks' bytes of a chunk into one contribution.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/base/ticks.h"
#include "engine/worker/stream.h"
#include "sum/sum.h"

/* The local ranks' bytes of one chunk. */
struct given {
	uint32_t n, n_elems;
	const void **from;
	double *scale; /* SW_PREMUL_SUM */
};

/* Scale a rank's bytes by its factor into w->payload; return them as they are
 * if the factor is 1. */
static const void *scaled(struct sw_worker *w, const struct sw_sum_ops *ops,
	const struct given *g, uint32_t i)
{
	if (g->scale[i] == 1)
		return g->from[i];
	ops->scale(w->payload, g->from[i], g->scale[i], g->n_elems);
	return w->payload;
}

/* Fold the bytes into w->sums: sums in one pass, other operations rank by rank.
 */
static void fold(struct sw_worker *w, const struct sw_sum_ops *ops,
	enum sw_reduce_op op, const struct given *g)
{
	sw_fold_fn *fn = ops->put;

	if (op == SW_SUM || op == SW_AVG) {
		ops->sum(w->sums, g->from, g->n, g->n_elems);
		return;
	}
	for (uint32_t i = 0; i < g->n; i++) {
		fn(w->sums,
			op == SW_PREMUL_SUM ? scaled(w, ops, g, i) : g->from[i],
			g->n_elems);
		fn = sw_coll_fold(ops, op);
	}
}

/* Combine the bytes into w->payload.  Without a server an average is divided
 * here. */
static void combine(struct sw_worker *w, const struct sw_stream *s,
	const struct sw_worker_coll *ask, const struct given *g)
{
	const struct sw_sum_ops *ops = &w->env->sum->ops[ask->dtype];

	fold(w, ops, ask->op, g);
	if (ask->op == SW_AVG && sw_stream_is_here(w, s))
		ops->divide(w->sums, w->sums, g->n, g->n_elems);
	(ops->round ? ops->round : ops->copy)(w->payload, w->sums, g->n_elems);
}

uint16_t sw_piece_give(struct sw_worker *w, const struct sw_stream *s,
	const struct sw_piece *p, const uint8_t **bytes)
{
	const struct sw_worker_coll *ask = &p->coll->ask;
	struct sw_local_list givers = sw_piece_givers(s, p);
	struct given g = {.n = givers.n,
		.n_elems = p->bytes / sw_dtype_bytes(ask->dtype),
		.from = w->sources,
		.scale = w->scales};

	for (uint32_t i = 0; i < g.n; i++) {
		g.from[i] = sw_piece_source(p, givers.list[i]);
		g.scale[i] = p->coll->locals[givers.list[i]].scale;
	}
	*bytes = g.from[0];
	if (g.n > 1 || ask->op == SW_PREMUL_SUM) {
		*bytes = w->payload;
		SW_TIMED(w->stats.ticks_sum, combine(w, s, ask, &g));
	}
	return (uint16_t)g.n;
}
