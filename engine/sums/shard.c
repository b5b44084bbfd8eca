/* shard.c - the tensors of one job on one server lcore: from open to close.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/sums/shard.h"

#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/sums/async.h"
#include "engine/sums/rules.h"

enum {
	LINE = 64,
	CLOSE_BURST = 64, /* tensors freed in one call */
};

static const struct sw_rules *const rules_of[SW_N_MODES] = {
	[SW_MODE_SYNC] = &sw_rules_sync,
	[SW_MODE_ASYNC] = &sw_rules_async,
	[SW_MODE_STREAM] = &sw_rules_stream,
};

/* Return the bytes of a job's tables, in the order of lay_tables. */
uint64_t sw_shard_bytes(uint32_t n_members)
{
	return SW_MAX_TENSORS *
		       (sizeof(struct sw_stensor) + sizeof(struct sw_fault)) +
	       (n_members + 2) * sw_bitmap_words(SW_MAX_TENSORS) *
		       sizeof(uint64_t) +
	       (SW_ORDERS_WORDS * SW_MAX_TENSORS + 2 * SW_SHARD_NAMES) *
		       sizeof(uint32_t) +
	       sizeof(struct sw_place_map);
}

/* Lay out the tables, aligned to cache lines. */
static void lay_tables(struct sw_shard *sh)
{
	uint64_t *next;

	sh->whys = (struct sw_fault *)(sh->tensors + SW_MAX_TENSORS);
	next = (uint64_t *)(sh->whys + SW_MAX_TENSORS);
	for (uint32_t m = 0; m < sh->n_members; m++)
		next = sw_bitmap_init(&sh->ready[m], SW_MAX_TENSORS, next);
	next = sw_bitmap_init(&sh->streams, SW_MAX_TENSORS, next);
	next = sw_bitmap_init(&sh->free, SW_MAX_TENSORS, next);
	sw_bitmap_add_run(&sh->free, 0, SW_MAX_TENSORS);
	sw_orders_open(&sh->orders, SW_MAX_TENSORS, (uint32_t *)next);
	sh->by_name = (uint32_t *)next + SW_ORDERS_WORDS * SW_MAX_TENSORS;
	sh->by_group = sh->by_name + SW_SHARD_NAMES;
	sh->map = (struct sw_place_map *)(sh->by_group + SW_SHARD_NAMES);
	sw_place_map_init(sh->map, &sh->place);
}

int sw_shard_open(struct sw_shard *sh, const struct sw_params *params,
	const struct sw_env *env, struct sw_stats *stats,
	const struct sw_place_job *job, uint16_t server_i, uint32_t seed,
	const uint64_t *now_ns)
{
	uint32_t n_members = job->n_members;

	*sh = (struct sw_shard){.params = params,
		.env = env,
		.now_ns = now_ns,
		.stats = stats,
		.n_members = n_members,
		.expected = ~0ULL >> (64 - n_members),
		.server_i = server_i,
		.seed = seed,
		.last_key = SW_KEY_NONE,
		.place = *job};
	sh->tensors = env->mem_get(env->ctx, sw_shard_bytes(n_members));
	if (!sh->tensors)
		return SW_ENOMEM;
	lay_tables(sh);
	return 0;
}

bool sw_shard_close(struct sw_shard *sh)
{
	const struct sw_env *env = sh->env;

	sh->n_open = sh->n_slots = sh->n_lent = 0;
	for (uint32_t n = 0; n < CLOSE_BURST && sh->n_keys; n++) {
		struct sw_stensor *t = &sh->tensors[--sh->n_keys];

		if (t->mem)
			env->mem_put(env->ctx, t->mem, t->mem_bytes);
	}
	if (sh->n_keys)
		return false;
	if (sh->tensors)
		env->mem_put(
			env->ctx, sh->tensors, sw_shard_bytes(sh->n_members));
	*sh = (struct sw_shard){0};
	return true;
}

/* Return whether results lie apart from the accumulators; in a stream they may.
 */
static bool is_rounded(const struct sw_stensor *t)
{
	return t->window || t->ops->round;
}

/* Memory of a tensor: values, then a record of each chunk, then marks. */
static uint64_t values_bytes(const struct sw_stensor *t)
{
	uint64_t results = is_rounded(t) ? t->res_stride : t->acc_stride;

	return t->place.n_local *
	       (t->acc_stride + (t->rules->has_results ? results : 0) +
		       (uint64_t)t->n_apart * sw_stensor_apart_stride(t));
}

static uint64_t records_bytes(
	const struct sw_shard *sh, const struct sw_stensor *t)
{
	uint32_t each = t->rules->record_bytes;

	return (uint64_t)t->place.n_local *
	       (each ? each : sw_kept_bytes(sh->n_members));
}

static uint64_t marks_bytes(
	const struct sw_shard *sh, const struct sw_stensor *t)
{
	return (uint64_t)t->mark_stride * sh->n_members * sizeof(uint64_t);
}

/* Shape a window of slots for any collective: f32 accumulators for 16-bit types
 * and a result each; with [job] order = rank also each member's contribution.
 */
static void shape_window(const struct sw_shard *sh,
	const struct sw_declare_item *item, struct sw_stensor *t)
{
	t->window = t->place.n_local = 1u << item->stream.window_log2;
	t->members = item->stream.members;
	t->base = 1;
	t->ops = &sh->env->sum->ops[SW_F32];
	t->res_stride = sh->params->payload;
	t->acc_stride = 2 * t->res_stride;
	if (sh->params->is_by_rank)
		t->n_apart = (uint32_t)__builtin_popcountll(t->members);
}

static void shape_chunks(const struct sw_shard *sh,
	const struct sw_declare_item *item, struct sw_stensor *t)
{
	uint32_t elem = sw_dtype_bytes(item->dtype);
	uint64_t per_chunk = sh->params->payload / elem, n_chunks;

	t->ops = &sh->env->sum->ops[item->dtype];
	n_chunks = (item->n_elems - 1) / per_chunk + 1;
	t->chunk_bytes = (uint32_t)per_chunk * elem;
	t->last_bytes =
		(uint32_t)(item->n_elems - (n_chunks - 1) * per_chunk) * elem;
	t->place = sw_place_init(
		sh->map, item->first, (uint32_t)n_chunks, sh->server_i);
	t->res_stride = (sw_min64(per_chunk, item->n_elems) * elem + LINE - 1) /
			LINE * LINE;
	t->acc_stride = t->res_stride / elem * t->ops->acc_bytes;
}

/* Fill all fields that follow from the declaration; allocates nothing. */
static void shape_tensor(const struct sw_shard *sh,
	const struct sw_declare_item *item, struct sw_stensor *t)
{
	t->key = item->key;
	t->first = item->first;
	t->priority = sw_priority_of(item->priority, item->key);
	t->class = sw_class_of(t->priority);
	t->dtype = item->dtype;
	t->mode = item->mode;
	t->rules = rules_of[item->mode];
	t->n_elems = item->n_elems;
	if (item->mode == SW_MODE_STREAM)
		shape_window(sh, item, t);
	else
		shape_chunks(sh, item, t);
	t->mark_stride = (uint32_t)sw_bitmap_words(t->place.n_local);
	t->mem_bytes = values_bytes(t) + records_bytes(sh, t) +
		       marks_bytes(sh, t) +
		       (t->window ? sh->n_members * sizeof(*t->n_pushed) : 0);
}

uint64_t sw_shard_need(
	const struct sw_shard *sh, const struct sw_declare_item *item)
{
	struct sw_stensor t = {0};

	shape_tensor(sh, item, &t);
	return t.mem_bytes;
}

/* Allocate all memory at once, zeroed. The first frame of a chunk initializes
 * its record, so nothing here walks over chunks. */
static int take_memory(const struct sw_shard *sh, struct sw_stensor *t)
{
	const struct sw_env *env = sh->env;
	uint64_t n = t->place.n_local;

	if (!n)
		return 0;
	t->mem = env->mem_get(env->ctx, t->mem_bytes);
	if (!t->mem)
		return SW_ENOMEM;
	t->records = (uint8_t *)t->mem + values_bytes(t);
	sw_bitmap_init(&t->marks, t->place.n_local,
		(uint64_t *)(t->records + records_bytes(sh, t)));
	t->n_pushed = (uint32_t *)(t->records + records_bytes(sh, t) +
				   marks_bytes(sh, t));
	t->acc[0] = t->acc[1] = t->mem;
	if (t->n_apart)
		t->apart = t->acc[0] + n * (t->acc_stride + t->res_stride);
	if (is_rounded(t)) {
		t->res[0] = t->res[1] = t->acc[0] + n * t->acc_stride;
	} else if (t->rules->has_results) {
		t->acc[1] = t->acc[0] + n * t->acc_stride;
		t->res[0] = t->acc[0];
		t->res[1] = t->acc[1];
	}
	return 0;
}

struct sw_stensor *sw_shard_named(const struct sw_shard *sh, const char *name)
{
	uint32_t found = *sw_shard_place_of(sh, sh->by_name, name);

	return found ? &sh->tensors[found - 1] : NULL;
}

static void enter(struct sw_shard *sh, const struct sw_stensor *fresh)
{
	uint32_t i = sw_key_index(fresh->key);
	struct sw_stensor *t = &sh->tensors[i];

	struct sw_sgroup own = t->own;

	*t = *fresh;
	t->own = own;
	t->n_next_key = t->key;
	sw_sgroup_enter(sh, t);
	sw_bitmap_remove(&sh->free, i);
	*sw_shard_place_of(sh, sh->by_name, t->name) = i + 1;
	sh->n_keys = (uint32_t)sw_max64(sh->n_keys, i + 1);
	sh->last_key = t->key;
	sh->mem_bytes += t->mem_bytes;
	sw_marks_admit(sh, t);
}

int sw_shard_admit(struct sw_shard *sh, const struct sw_declare_item *item,
	const char *name, uint32_t member, bool has_memory)
{
	struct sw_stensor t = {.declared_by = (uint16_t)member};

	shape_tensor(sh, item, &t);
	strncpy(t.name, name, sizeof(t.name) - 1);
	if (!has_memory)
		t.mem_bytes = 0;
	else if (take_memory(sh, &t))
		return SW_ENOMEM;
	enter(sh, &t);
	sh->line_bytes += sw_item_bytes(item);
	return 0;
}

/* Return the next key: a free index above the index of @last, or the lowest
 * free index in the next generation. */
static uint32_t next_key(const struct sw_shard *sh, uint32_t last)
{
	uint32_t i = sw_bitmap_next(&sh->free, sw_key_index(last) + 1);
	uint32_t generation = last >> SW_KEY_BITS;

	if (i == SW_BITMAP_NONE) {
		i = sw_bitmap_first(&sh->free);
		generation = last == SW_KEY_NONE ? 0 : generation + 1;
	}
	return generation < SW_KEY_GENERATIONS ? generation << SW_KEY_BITS | i
					       : SW_KEY_NONE;
}

void sw_shard_give_key(const struct sw_shard *sh, struct sw_declare_item *item,
	const struct sw_given *before)
{
	uint32_t last = before->n ? before->last_key : sh->last_key;

	item->key = sh->n_tensors + before->n < SW_MAX_TENSORS
			    ? next_key(sh, last)
			    : SW_KEY_NONE;
	if (item->mode == SW_MODE_STREAM)
		return;
	item->first = sw_place_first(
		sh->map, sh->line_bytes + before->n_bytes, sh->params->payload);
}

static void set_rank(struct sw_shard *sh, uint32_t member, uint32_t first)
{
	sh->first[member] = (uint16_t)first;
	sh->ranked |= 1ULL << member;
}

void sw_shard_join(
	struct sw_shard *sh, const struct sw_join *join, bool has_crc)
{
	sh->weights[join->member] = join->n_local;
	sh->no_crc &= ~(1ULL << join->member);
	sh->no_crc |= (uint64_t)!has_crc << join->member;
	if (join->first) /* earlier members may not have joined this server */
		set_rank(sh, join->member, join->first - 1u);
}

void sw_shard_rank(struct sw_shard *sh, uint64_t joined)
{
	uint32_t m = 0, first = 0;

	for (; m < sh->n_members && joined >> m & 1; m++) {
		set_rank(sh, m, first);
		first += sh->weights[m];
	}
	sh->n_ranks = m == sh->n_members ? first : UINT32_MAX;
}
