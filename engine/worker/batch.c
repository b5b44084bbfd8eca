/* batch.c - build tensors and streams before the lcore knows of them.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The control thread builds them in unused places of w->tensors; sw_worker_add
 * then only adds their numbers. */
#include <stdio.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/worker/stream.h"
#include "sum/sum.h"

/* --- memory --- */

/* One block of zeros holds all that the tensors of a batch have besides their
 * records.  Its pages are present (env.h): the lcore takes no page faults, and
 * small tensors neither fill a TLB nor crowd a few cache sets.  The first
 * tensor owns it; a stream, which may be freed earlier, has its own. */
struct block {
	char *base; /* NULL: only measure */
	uint64_t at;
};

enum { LINE = 64 };

static void *cut(struct block *b, uint64_t n, uint64_t bytes)
{
	void *p = b->base ? b->base + b->at : NULL;

	b->at += (n * bytes + 7) / 8 * 8;
	return p;
}

static uint32_t n_chunks_of(
	const struct sw_worker *w, const struct sw_worker_tensor *in)
{
	uint32_t per_chunk;

	if (in->window_log2)
		return w->n_links << in->window_log2;
	per_chunk = sw_worker_payload(w) / sw_dtype_bytes(in->dtype);
	return (uint32_t)((in->n_elems - 1) / per_chunk + 1);
}

/* Return the words of one set for each link, at most: the placement of chunks
 * is known only with the key. */
static uint64_t most_words(const struct sw_worker *w, uint32_t n_chunks)
{
	uint64_t divided = (n_chunks + w->n_links) / 63 + 1 +
			   SW_BITMAP_LEVELS * w->n_links;

	return sw_min64(divided, w->n_links * sw_bitmap_words(n_chunks));
}

/* Round up to a power of two, which a ring's size must be. */
static uint32_t ring_of(uint32_t n)
{
	uint32_t ring = 1;

	while (ring < n)
		ring *= 2;
	return ring;
}

static void lay_stream(
	const struct sw_worker *w, struct sw_wtensor *t, struct block *b)
{
	struct sw_stream measured, *s;
	struct sw_wgroup *g;

	s = t->stream = cut(
		b, 1, sizeof(*s) + w->n_links * sizeof(struct sw_stream_link));
	if (!s)
		s = &measured;
	s->pieces = cut(b, t->n_chunks, sizeof(*s->pieces));
	s->n_entered = ring_of(t->n_chunks);
	s->entered = cut(b, s->n_entered, sizeof(*s->entered));
	s->locals = cut(b, SW_COLLS * w->n_local, sizeof(*s->locals));
	s->n_asked = cut(b, w->n_local, sizeof(*s->n_asked));
	s->lanes = cut(b, w->n_others, sizeof(*s->lanes));
	g = &s->group;
	g->n = t->decl.n_ranks;
	g->ranks = cut(b, g->n, sizeof(*g->ranks));
	g->list = cut(b, g->n, sizeof(*g->list));
	g->by_member = cut(b, g->n, sizeof(*g->by_member));
	g->here = cut(b, w->n_local, sizeof(*g->here));
	g->bits = cut(b, w->size / 64 + 1, sizeof(*g->bits));
}

static void lay_granules(
	const struct sw_worker *w, struct sw_wtensor *t, struct block *b)
{
	uint32_t n =
		sw_granules_of(t->decl.n_elems * sw_dtype_bytes(t->decl.dtype));

	t->left = cut(b, n, sizeof(*t->left));
	if (!w->lane_i)
		t->held = cut(b, n, sizeof(*t->held));
}

/* Lay out a tensor in whole cache lines. */
static void lay(
	const struct sw_worker *w, struct sw_wtensor *t, struct block *b)
{
	t->chunks = cut(b, t->n_chunks, sizeof(*t->chunks));
	if (!w->lane_i) {
		t->locals = cut(b, w->n_local, sizeof(*t->locals));
		t->asked = cut(b, w->n_local / 64 + 1, sizeof(*t->asked));
	}
	if (t->decl.granules)
		lay_granules(w, t, b);
	t->parts = cut(b, w->n_links, sizeof(*t->parts));
	t->n_words = SW_N_TODO_SETS * most_words(w, t->n_chunks);
	t->words = cut(b, t->n_words, sizeof(*t->words));
	if (t->decl.window_log2)
		lay_stream(w, t, b);
	b->at = (b->at + LINE - 1) / LINE * LINE;
}

/* Return how many of the first tensors share a block. */
static uint32_t run_of(const struct sw_worker_tensor *tensors, uint32_t n)
{
	uint32_t i = 1;

	while (!tensors->window_log2 && i < n && !tensors[i].window_log2)
		i++;
	return i;
}

static uint64_t need_of(const struct sw_worker *w,
	const struct sw_worker_tensor *tensors, uint32_t n)
{
	struct block b = {0};

	for (uint32_t i = 0; i < n; i++) {
		struct sw_wtensor t = {.decl = tensors[i],
			.n_chunks = n_chunks_of(w, &tensors[i])};

		lay(w, &t, &b);
	}
	return b.at;
}

void sw_tensors_give(const struct sw_worker *w, struct sw_wtensor *t)
{
	if (t->mem)
		w->env->mem_put(w->env->ctx, t->mem, t->mem_bytes);
	*t = (struct sw_wtensor){.id = t->id};
}

/* --- declarations --- */

static bool is_stream(
	const struct sw_worker *w, const struct sw_worker_tensor *in)
{
	return in->window_log2 >= SW_WINDOW_MIN_LOG2 &&
	       in->window_log2 <= SW_WINDOW_MAX_LOG2 &&
	       sw_wgroup_check(w, in->ranks, in->n_ranks);
}

/* Does @id follow the last id at its index, which is free? */
static bool may_follow(const struct sw_worker *w, uint32_t id)
{
	const struct sw_wtensor *t = &w->tensors[sw_id_index(id)];

	return sw_id_index(id) < w->n_places && !t->worker &&
	       sw_id_follows(id, t->id);
}

static bool is_valid(
	const struct sw_worker *w, const struct sw_worker_tensor *in)
{
	uint32_t elem = sw_dtype_bytes(in->dtype);

	if (!in->name[0] || strlen(in->name) >= SW_NAME_MAX ||
		(in->again && !may_follow(w, in->again)))
		return false;
	if (in->window_log2)
		return is_stream(w, in);
	return elem && in->n_elems > 0 && in->n_elems <= (64ULL << 30) / elem &&
	       (in->n_elems - 1) / (sw_worker_payload(w) / elem) <
		       SW_BITMAP_MAX;
}

static void build(
	struct sw_worker *w, const struct sw_worker_tensor *in, struct block *b)
{
	uint32_t id = in->again ? in->again : w->n_places++;
	uint32_t i = sw_id_index(id);
	struct sw_wtensor *t = &w->tensors[i];

	w->by_number[w->n_built % SW_TENSORS] = (uint16_t)i;
	*t = (struct sw_wtensor){.worker = w,
		.kind = in->window_log2 ? &sw_stream_kind : &sw_tensor_kind,
		.decl = *in,
		.id = id,
		.index = i,
		.number = w->n_built++,
		.key = SW_KEY_NONE,
		.life = &t->own_life,
		.own_life.key = SW_KEY_NONE,
		.last = SW_PLACE_NONE,
		.class = sw_class_of(in->priority),
		.mode = in->window_log2 ? SW_MODE_STREAM
			: in->is_async  ? SW_MODE_ASYNC
					: SW_MODE_SYNC,
		.n_chunks = n_chunks_of(w, in)};
	snprintf(t->name, sizeof(t->name), "%s", in->name);
	t->decl.name = t->name;
	lay(w, t, b);
	if (w->n_local == 1 && !w->lane_i)
		t->locals[0].from = in->base;
	t->kind->build(w, t);
}

void sw_worker_free(struct sw_worker *w, uint32_t tensor)
{
	struct sw_wtensor *t = &w->tensors[sw_id_index(tensor)];

	if (t->id == tensor)
		sw_tensors_give(w, t);
}

/* Drop the last one first.  Nobody has seen the ids, so they can be reused. */
void sw_worker_unbuild(struct sw_worker *w, uint32_t n)
{
	while (w->n_built > n) {
		struct sw_wtensor *t = sw_wtensor_numbered(w, --w->n_built);

		uint32_t again = t->decl.again;

		w->n_places -= !again;
		sw_bitmap_remove(&w->new_streams, t->index);
		sw_worker_free(w, t->id);
		t->id -= again ? SW_IDS : 0;
	}
}

/* Build tensors that share a block. */
static int build_run(
	struct sw_worker *w, const struct sw_worker_tensor *tensors, uint32_t n)
{
	uint64_t bytes = need_of(w, tensors, n);
	struct block b = {.base = w->env->mem_get(w->env->ctx, bytes)};
	struct sw_wtensor *first;

	if (!b.base)
		return SW_ENOMEM;
	build(w, &tensors[0], &b);
	first = sw_wtensor_numbered(w, w->n_built - 1);
	first->mem = b.base;
	first->mem_bytes = bytes;
	for (uint32_t i = 1; i < n; i++)
		build(w, &tensors[i], &b);
	return 0;
}

/* May the batch be built, and how much memory does it need? */
static int check(const struct sw_worker *w,
	const struct sw_worker_tensor *tensors, uint32_t n, uint64_t *bytes)
{
	const uint64_t page = 4096; /* each block begins on a page */
	uint32_t n_new = 0;

	*bytes = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (!is_valid(w, &tensors[i]))
			return SW_EINVAL;
		n_new += !tensors[i].again;
	}
	if (!n)
		return SW_EINVAL;
	if (n_new > SW_TENSORS - w->n_places)
		return SW_EBUSY;
	for (uint32_t i = 0, some; i < n; i += some) {
		some = run_of(&tensors[i], n - i);
		*bytes += need_of(w, &tensors[i], some) + (i ? page : 0);
	}
	return 0;
}

int sw_worker_build(
	struct sw_worker *w, const struct sw_worker_tensor *tensors, uint32_t n)
{
	uint32_t first = w->n_built;
	uint64_t bytes;
	int err = check(w, tensors, n, &bytes);

	if (err)
		return err;
	if (w->env->mem_ready && !w->env->mem_ready(w->env->ctx, 0, bytes))
		return SW_EAGAIN;
	for (uint32_t i = 0, some; i < n && !err; i += some) {
		some = run_of(&tensors[i], n - i);
		err = build_run(w, &tensors[i], some);
	}
	if (err)
		sw_worker_unbuild(w, first);
	return err;
}
