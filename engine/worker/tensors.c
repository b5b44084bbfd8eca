/* tensors.c - the worker's tensors: declare, give keys, close.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/worker/stream.h"
#include "sum/sum.h"

/* --- memory --- */

/* What the tensors of a batch have besides their records is one block of zeros,
 * which somebody else has made present (env.h): the lcore takes no page faults
 * for it, and small tensors do not fill a TLB, nor a few sets of the caches.
 * The first of them owns it. */
struct batch {
	void *mem; /* until then */
	uint64_t bytes;
	char *at; /* what is left of it */
};

enum { CHUNKS, LOCALS, ASKED, PARTS, WORDS, N_BLOCKS, LINE = 64 };

static uint32_t n_chunks_of(
	const struct sw_worker *w, const struct sw_worker_tensor *in)
{
	uint32_t per_chunk;

	if (in->window_log2)
		return w->n_links << in->window_log2;
	per_chunk = w->params.payload / sw_dtype_bytes(in->dtype);
	return (uint32_t)((in->n_elems - 1) / per_chunk + 1);
}

/* Words of one set for each link: how the chunks divide is known with the key,
 * until then the most that it can be. */
static uint64_t most_words(const struct sw_worker *w, uint32_t n_chunks)
{
	uint64_t divided = (n_chunks + w->n_links) / 63 + 1 +
			   SW_BITMAP_LEVELS * w->n_links;

	return sw_min64(divided, w->n_links * sw_bitmap_words(n_chunks));
}

static uint64_t size_blocks(
	const struct sw_worker *w, uint32_t n_chunks, uint64_t bytes[N_BLOCKS])
{
	bytes[CHUNKS] = (uint64_t)n_chunks * sizeof(struct sw_wchunk);
	bytes[LOCALS] = w->lane_i ? 0 : w->n_local * sizeof(struct sw_local);
	bytes[ASKED] = w->lane_i ? 0 : (w->n_local / 64 + 1) * sizeof(uint64_t);
	bytes[PARTS] = w->n_links * sizeof(struct sw_part);
	bytes[WORDS] =
		SW_N_TODO_SETS * most_words(w, n_chunks) * sizeof(uint64_t);
	return bytes[CHUNKS] + bytes[LOCALS] + bytes[ASKED] + bytes[PARTS] +
	       bytes[WORDS];
}

/* In whole lines of a cache. */
static uint64_t need_of(
	const struct sw_worker *w, const struct sw_worker_tensor *in)
{
	uint64_t bytes[N_BLOCKS];

	return (size_blocks(w, n_chunks_of(w, in), bytes) + LINE - 1) / LINE *
	       LINE;
}

static bool is_ready(const struct sw_worker *w, uint64_t need)
{
	return !w->env->mem_ready || w->env->mem_ready(w->env->ctx, 0, need);
}

static int take(struct sw_worker *w, struct batch *b, uint64_t need)
{
	*b = (struct batch){
		.mem = w->env->mem_get(w->env->ctx, need), .bytes = need};
	b->at = b->mem;
	return b->mem ? 0 : SW_ENOMEM;
}

static void lay(
	const struct sw_worker *w, struct sw_wtensor *t, struct batch *b)
{
	uint64_t bytes[N_BLOCKS];
	char *at = b->at;

	size_blocks(w, t->n_chunks, bytes);
	t->chunks = (void *)at;
	t->locals = (void *)(at += bytes[CHUNKS]);
	t->asked = (void *)(at += bytes[LOCALS]);
	t->parts = (void *)(at += bytes[ASKED]);
	t->words = (void *)(at + bytes[PARTS]);
	b->at += need_of(w, &t->decl);
	t->mem = b->mem;
	t->mem_bytes = b->mem ? b->bytes : 0;
	b->mem = NULL;
}

static void give(const struct sw_worker *w, struct sw_wtensor *t)
{
	if (t->mem)
		w->env->mem_put(w->env->ctx, t->mem, t->mem_bytes);
	sw_stream_close(t);
	*t = (struct sw_wtensor){0};
}

/* --- open, close --- */

int sw_tensors_open(struct sw_worker *w)
{
	uint64_t *words = w->set_words;

	w->tensors = calloc(SW_TENSORS, sizeof(*w->tensors));
	if (!w->tensors)
		return SW_ENOMEM;
	words = sw_bitmap_init(&w->open, SW_TENSORS, words);
	words = sw_bitmap_init(&w->dying, SW_TENSORS, words);
	sw_bitmap_init(&w->lacking, SW_TENSORS, words);
	for (uint32_t i = 0; i < SW_TENSORS; i++)
		w->by_key[i] = SW_KEY_NONE;
	sw_orders_open(&w->orders, SW_TENSORS, w->order_words);
	if (sw_sched_open(&w->sched, w->params.policy, SW_TENSORS))
		return SW_ENOMEM;
	return sw_sched_set(&w->sched, w->params.policy, w->params.part_bytes,
		sw_tuning_credit(w, w->params.policy, w->params.credit_bytes));
}

void sw_tensors_close(struct sw_worker *w)
{
	for (uint32_t i = 0; w->tensors && i < w->n_tensors; i++)
		give(w, &w->tensors[i]);
	if (w->env && w->env->mem_drop)
		w->env->mem_drop(w->env->ctx, 0);
	free(w->tensors);
	sw_sched_close(&w->sched);
}

/* --- lane 0 declares, the others follow --- */

static bool is_stream(
	const struct sw_worker *w, const struct sw_worker_tensor *in)
{
	return in->window_log2 >= SW_WINDOW_MIN_LOG2 &&
	       in->window_log2 <= SW_WINDOW_MAX_LOG2 &&
	       sw_wgroup_check(w, in->ranks, in->n_ranks);
}

static bool is_valid(
	const struct sw_worker *w, const struct sw_worker_tensor *in)
{
	uint32_t elem = sw_dtype_bytes(in->dtype);

	if (!in->name[0] || strlen(in->name) >= SW_NAME_MAX)
		return false;
	if (in->window_log2)
		return is_stream(w, in);
	return elem && in->n_elems > 0 && in->n_elems <= (64ULL << 30) / elem &&
	       (in->n_elems - 1) / (w->params.payload / elem) < SW_BITMAP_MAX;
}

static void shape(const struct sw_worker *w, struct sw_wtensor *t)
{
	uint32_t elem = sw_dtype_bytes(t->decl.dtype);
	uint32_t per_chunk = w->params.payload / elem;

	t->elem_bytes = elem;
	t->chunk_bytes = per_chunk * elem;
	t->last_bytes = (uint32_t)(t->decl.n_elems -
				   (t->n_chunks - 1) * (uint64_t)per_chunk) *
			elem;
}

static int add(
	struct sw_worker *w, const struct sw_worker_tensor *in, struct batch *b)
{
	struct sw_wtensor *t = &w->tensors[w->n_tensors];
	int err;

	*t = (struct sw_wtensor){.worker = w,
		.decl = *in,
		.index = w->n_tensors,
		.key = SW_KEY_NONE,
		.last = SW_PLACE_NONE,
		.class = sw_class_of(in->priority),
		.n_chunks = n_chunks_of(w, in)};
	if (!in->window_log2)
		shape(w, t);
	snprintf(t->name, sizeof(t->name), "%s", in->name);
	t->decl.name = t->name;
	lay(w, t, b);
	err = in->window_log2 ? sw_stream_open(w, t) : 0;
	if (!err && in->window_log2)
		err = sw_kin_add(w, t);
	if (err) {
		give(w, t);
		return err;
	}
	if (in->window_log2)
		sw_group_copy_closed(w, t);
	if (w->n_local == 1 && !w->lane_i)
		t->locals[0].from = in->base;
	w->n_tensors++;
	return 0;
}

bool sw_tensors_are_admitted(const struct sw_worker *w)
{
	for (uint32_t l = 0; l < w->n_links; l++)
		if (w->links[l].n_declared != w->n_tensors)
			return false;
	return !w->n_declaring;
}

int sw_worker_declare(
	struct sw_worker *w, const struct sw_worker_tensor *tensors, uint32_t n)
{
	uint32_t first = w->n_tensors;
	struct batch b;
	uint64_t need = 0;
	int err;

	if (sw_worker_end_of(w))
		return sw_worker_end_of(w);
	if (!sw_tensors_are_admitted(w))
		return SW_EBUSY;
	if (n == 0 || n > SW_TENSORS - w->n_tensors)
		return SW_EINVAL;
	for (uint32_t i = 0; i < n; i++) {
		if (!is_valid(w, &tensors[i]))
			return SW_EINVAL;
		need += need_of(w, &tensors[i]);
	}
	if (!is_ready(w, need))
		return SW_EAGAIN;
	err = take(w, &b, need);
	for (uint32_t i = 0; i < n && !err; i++)
		err = add(w, &tensors[i], &b);
	if (err) {
		while (w->n_tensors > first)
			give(w, &w->tensors[--w->n_tensors]);
		return err;
	}
	sw_link_request(w, &w->links[0]);
	return 0;
}

/* A set over no chunks is kept over one, which never enters. */
static uint32_t set_size(const struct sw_place *p)
{
	return p->n_local ? p->n_local : 1;
}

/* Where its chunks lie that are at link @l; of a stream the slots. */
static struct sw_place place_at(const struct sw_worker *w,
	const struct sw_wtensor *t, uint32_t first, uint32_t l)
{
	uint32_t log2 = t->decl.window_log2;

	return t->stream ? sw_place_row(l << log2, 1u << log2)
			 : sw_place_init(&w->map, first, t->n_chunks,
				   w->links[l].server_i);
}

int sw_tensors_keyed(
	struct sw_worker *w, uint32_t tensor, uint32_t key, uint32_t first)
{
	struct sw_wtensor *t = &w->tensors[tensor];
	uint64_t *words = t->words;
	uint32_t from = 0;

	if (key >= SW_TENSORS || w->by_key[key] != SW_KEY_NONE ||
		(!t->stream && first >= sw_place_line(&w->map)))
		return SW_EPROTO;
	if (!t->stream)
		t->own = sw_place_init(
			&w->lane_map, first, t->n_chunks, w->lane_i);
	for (uint32_t i = 0; i < w->n_others && !t->stream; i++)
		if (sw_place_init(&w->lane_map, first, t->n_chunks, i + 1)
				.n_local)
			t->lanes |= 1u << i;
	for (uint32_t l = 0; l < w->n_links; l++) {
		struct sw_part *p = &t->parts[l];

		p->place = place_at(w, t, first, l);
		p->from = from;
		from += p->place.n_local;
		p->turn_step = UINT32_MAX / set_size(&p->place);
		if (!t->stream && t->last == SW_PLACE_NONE)
			t->last = sw_part_record(p, t->n_chunks - 1);
		for (uint32_t s = 0; s < SW_N_TODO_SETS; s++)
			words = sw_bitmap_init(
				&p->sets[s], set_size(&p->place), words);
	}
	assert(words <= t->words + SW_N_TODO_SETS * most_words(w, t->n_chunks));
	t->key = key;
	t->first = first;
	t->decl.priority = sw_priority_of(t->decl.priority, key);
	t->class = sw_class_of(t->decl.priority);
	w->by_key[key] = tensor;
	sw_todo_admit(w, t);
	return 0;
}

static int copy_one(
	struct sw_worker *w, const struct sw_wtensor *from, struct batch *b)
{
	uint32_t i = w->n_tensors;
	struct sw_wtensor *t = &w->tensors[i];
	uint32_t dead_from = t->dead_from;
	bool is_closed = t->is_closed;
	int err = add(w, &from->decl, b);

	if (err)
		return err;
	t->locals = from->locals;
	t->is_closed = is_closed;
	if (from->key == SW_KEY_NONE) { /* it was refused */
		t->dead_from = 1;
		t->death = from->death;
		return 0;
	}
	err = sw_tensors_keyed(w, i, from->key, from->first);
	if (!err && dead_from)
		sw_tensor_kill(w, t, dead_from, from->death, from->why);
	if (!err && is_closed)
		sw_tensor_tell(w, t);
	return err;
}

bool sw_tensors_copy(struct sw_worker *w, const struct sw_wtensor *from)
{
	uint32_t first = w->n_tensors, n = w->n_wanted;
	struct batch b;
	uint64_t need = 0;
	int err;

	if (sw_worker_end_of(w)) {
		w->n_wanted = first;
		return true;
	}
	for (uint32_t i = first; i < n; i++)
		need += need_of(w, &from[i].decl);
	if (!is_ready(w, need))
		return false;
	err = take(w, &b, need);
	for (uint32_t i = first; i < n && !err; i++)
		err = copy_one(w, &from[i], &b);
	w->n_wanted = w->n_tensors;
	if (err) {
		sw_worker_fail(w, err, SW_KEY_NONE,
			"node %.64s: lcore %u cannot declare: %s", w->node_name,
			w->lane_i, sw_error_text(err));
		return true;
	}
	sw_todo_admitted(w);
	sw_links_skip_refused(w);
	for (uint32_t l = 0; l < w->n_links; l++)
		sw_link_request(w, &w->links[l]);
	if (sw_tensors_are_admitted(w)) /* all were refused */
		sw_lane_admitted(w);
	return true;
}
