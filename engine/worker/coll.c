/* coll.c - collectives as they are submitted.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/base/error.h"
#include "engine/worker/stream.h"
#include "sum/sum.h"

/* FNV-1a of the count: 16 bits that each push carries. */
static uint16_t tag_of(uint64_t n_elems)
{
	uint32_t h = 2166136261u;

	for (; n_elems; n_elems >>= 8)
		h = (h ^ (uint8_t)n_elems) * 16777619u;
	return (uint16_t)(h ^ h >> 16);
}

static void shape(const struct sw_worker *w, const struct sw_wtensor *t,
	const struct sw_worker_coll *ask, struct sw_coll *c)
{
	uint32_t elem = sw_dtype_bytes(ask->dtype);
	uint32_t n_parts;

	*c = (struct sw_coll){.ask = *ask,
		.is_open = true,
		.number = t->stream->n_colls + 1,
		.first = t->stream->first,
		.chunk_bytes = w->params.payload / elem * elem,
		.part_bytes = ask->n_elems * elem,
		.tag = tag_of(ask->whole ? ask->whole : ask->n_elems)};
	if (!ask->stride)
		c->ask.stride = c->part_bytes;
	n_parts = sw_coll_is_by_part(c)
			  ? (uint32_t)__builtin_popcountll(t->decl.members)
			  : 1;
	c->n_per_part = (uint32_t)((c->part_bytes - 1) / c->chunk_bytes + 1);
	c->n_chunks = c->n_left = c->n_per_part * n_parts;
}

static bool is_valid(const struct sw_worker *w, const struct sw_wtensor *t,
	const struct sw_worker_coll *ask)
{
	uint32_t elem = sw_dtype_bytes(ask->dtype);

	return elem && ask->kind > SW_COLL_NONE &&
	       ask->kind < SW_N_COLL_KINDS &&
	       w->env->sum->ops[ask->dtype].put && ask->n_elems &&
	       ask->n_elems <= (64ULL << 30) / elem &&
	       (!sw_coll_has_root(ask->kind) ||
		       (ask->root < w->n_members &&
			       t->decl.members >> ask->root & 1));
}

int sw_worker_coll(struct sw_worker *w, const struct sw_worker_coll *ask)
{
	struct sw_wtensor *t;
	struct sw_stream *s;
	struct sw_coll *c;

	if (sw_worker_end_of(w))
		return sw_worker_end_of(w);
	if (ask->stream >= w->n_tensors || !w->tensors[ask->stream].stream)
		return SW_EINVAL;
	t = &w->tensors[ask->stream];
	s = t->stream;
	c = &s->colls[s->n_colls % SW_COLLS];
	if (!is_valid(w, t, ask))
		return SW_EINVAL;
	if (t->dead_from)
		return SW_EMISMATCH;
	if (ask->stream >= w->n_admitted || c->is_open)
		return SW_EAGAIN;
	shape(w, t, ask, c);
	s->n_colls++;
	s->n_open++;
	s->first = (s->first + (c->n_chunks + SW_STRIPE_CHUNKS - 1) /
				       SW_STRIPE_CHUNKS * SW_STRIPE_CHUNKS) %
		   sw_place_line(&w->map);
	if (!t->is_open) { /* none of its chunks waits for anything */
		t->progress_ns = w->now_ns;
		sw_todo_take_place(w, t);
	}
	t->is_open = t->is_begun = true;
	t->n_missing = 1; /* as long as it is open */
	t->asked = ~0ULL;
	w->n_open++;
	sw_stream_enter(w, t);
	return 0;
}
