/* shard.c - the sums of one job on one server lcore.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/sums/shard.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/ticks.h"
#include "engine/sums/marks.h"
#include "engine/sums/rules.h"

enum { LINE = 64 };

static const struct sw_rules *const rules_of[SW_N_MODES] = {
	[SW_MODE_SYNC] = &sw_rules_sync,
	[SW_MODE_ASYNC] = &sw_rules_async,
};

int sw_shard_open(struct sw_shard *sh, const struct sw_params *params,
	const struct sw_env *env, struct sw_stats *stats,
	const struct sw_place_job *job, uint16_t server_i)
{
	uint32_t n_members = job->n_members;
	size_t words = sw_bitmap_words(SW_MAX_ORDERS);
	uint64_t *next;

	*sh = (struct sw_shard){.params = params,
		.env = env,
		.stats = stats,
		.n_members = n_members,
		.expected = ~0ULL >> (64 - n_members),
		.server_i = server_i,
		.place = *job};
	sh->tensors = calloc(SW_MAX_TENSORS, sizeof(*sh->tensors));
	sh->next_order = SW_MAX_TENSORS;
	sh->by_order = calloc(SW_MAX_ORDERS, sizeof(*sh->by_order));
	sh->ready_words = calloc(words * n_members, sizeof(uint64_t));
	sh->hashes = calloc(SW_MAX_TENSORS, sizeof(*sh->hashes));
	if (!sh->tensors || !sh->by_order || !sh->ready_words || !sh->hashes ||
		sw_place_map_open(&sh->map, job)) {
		sw_shard_close(sh);
		return SW_ENOMEM;
	}
	next = sh->ready_words;
	for (uint32_t m = 0; m < n_members; m++)
		next = sw_bitmap_init(&sh->ready[m], SW_MAX_ORDERS, next);
	return 0;
}

uint64_t sw_shard_bytes(uint32_t n_members)
{
	return SW_MAX_TENSORS * (sizeof(struct sw_stensor) + sizeof(uint32_t)) +
	       SW_MAX_ORDERS * sizeof(uint32_t) +
	       n_members * sw_bitmap_words(SW_MAX_ORDERS) * sizeof(uint64_t) +
	       SW_PLACE_MAP_BYTES;
}

static void free_tensor(const struct sw_env *env, struct sw_stensor *t)
{
	if (t->mem)
		env->mem_put(env->ctx, t->mem, t->mem_bytes);
}

void sw_shard_close(struct sw_shard *sh)
{
	for (uint32_t key = 0; key < sh->n_keys; key++)
		free_tensor(sh->env, &sh->tensors[key]);
	free(sh->tensors);
	free(sh->by_order);
	free(sh->ready_words);
	free(sh->hashes);
	sw_place_map_close(&sh->map);
	*sh = (struct sw_shard){0};
}

static uint64_t round_up(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

/* What a tensor has besides its record: values, then a record of each chunk,
 * then marks. */
static uint64_t values_bytes(const struct sw_stensor *t)
{
	uint64_t results = t->ops->round ? t->res_stride : t->acc_stride;

	return t->place.n_local *
	       (t->acc_stride + (t->rules->has_results ? results : 0));
}

static uint64_t records_bytes(
	const struct sw_shard *sh, const struct sw_stensor *t)
{
	return (uint64_t)t->place.n_local *
	       t->rules->record_bytes(sh->n_members);
}

/* Fill all that follows from the declaration; touches no memory. */
static void shape_tensor(const struct sw_shard *sh,
	const struct sw_declare_item *item, struct sw_stensor *t)
{
	uint32_t elem = sw_dtype_bytes(item->dtype);
	uint64_t n_chunks;

	t->key = item->key;
	t->first = item->first;
	t->priority = sw_priority_of(item->priority, item->key);
	t->class = sw_class_of(t->priority);
	t->dtype = item->dtype;
	t->mode = item->mode;
	t->rules = rules_of[item->mode];
	t->n_elems = item->n_elems;
	t->ops = &sh->env->sum->ops[item->dtype];
	t->chunk_elems = sh->params->payload / elem;
	n_chunks = (item->n_elems - 1) / t->chunk_elems + 1;
	t->last_elems =
		(uint32_t)(item->n_elems - (n_chunks - 1) * t->chunk_elems);
	t->place = sw_place_init(
		&sh->map, item->first, (uint32_t)n_chunks, sh->server_i);
	t->res_stride =
		round_up(sw_min64(t->chunk_elems, item->n_elems) * elem, LINE);
	t->acc_stride = t->res_stride / elem * t->ops->acc_bytes;
	t->mark_stride = (uint32_t)sw_bitmap_words(t->place.n_local);
	t->mem_bytes =
		values_bytes(t) + records_bytes(sh, t) +
		(uint64_t)t->mark_stride * sh->n_members * sizeof(uint64_t);
}

uint64_t sw_shard_need(
	const struct sw_shard *sh, const struct sw_declare_item *item)
{
	struct sw_stensor t;

	shape_tensor(sh, item, &t);
	return t.mem_bytes;
}

/* All of it comes at once, and as zeros: nothing here walks over chunks, whose
 * records begin with their first frame. */
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
	t->mark_words = (uint64_t *)(t->records + records_bytes(sh, t));
	t->acc[0] = t->acc[1] = t->mem;
	if (t->ops->round) {
		t->res[0] = t->res[1] = t->acc[0] + n * t->acc_stride;
	} else if (t->rules->has_results) {
		t->acc[1] = t->acc[0] + n * t->acc_stride;
		t->res[0] = t->acc[0];
		t->res[1] = t->acc[1];
	}
	return 0;
}

/* FNV-1a, so that a name is looked up without touching all tensors. */
static uint32_t hash(const char *name)
{
	uint32_t h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 16777619u;
	return h;
}

struct sw_stensor *sw_shard_named(const struct sw_shard *sh, const char *name)
{
	uint32_t h = hash(name);

	for (uint32_t key = 0; key < sh->n_keys; key++)
		if (sh->hashes[key] == h && sh->tensors[key].is_admitted &&
			!strcmp(sh->tensors[key].name, name))
			return &sh->tensors[key];
	return NULL;
}

int sw_shard_admit(struct sw_shard *sh, const struct sw_declare_item *item,
	const char *name, uint32_t member)
{
	struct sw_stensor *t = &sh->tensors[item->key];
	struct sw_stensor fresh = {0};
	int err;

	shape_tensor(sh, item, &fresh);
	fresh.declared_by = (uint16_t)member;
	strncpy(fresh.name, name, sizeof(fresh.name) - 1);
	err = take_memory(sh, &fresh);
	if (err)
		return err;
	*t = fresh;
	t->is_admitted = true;
	sh->hashes[item->key] = hash(fresh.name);
	sh->n_keys = (uint32_t)sw_max64(sh->n_keys, item->key + 1);
	sh->mem_bytes += sw_shard_need(sh, item);
	sh->line_bytes += item->n_elems * fresh.ops->elem_bytes;
	sw_marks_admit(sh, t);
	return 0;
}

struct sw_stensor_view sw_stensor_view(
	const struct sw_shard *sh, const struct sw_stensor *t)
{
	return (struct sw_stensor_view){.key = t->key,
		.first = t->first,
		.priority = t->priority,
		.dtype = t->dtype,
		.mode = t->mode,
		.n_elems = t->n_elems,
		.rank = sw_shard_rank_of(sh, t->declared_by),
		.dead_from = t->dead_from,
		.name = t->name,
		.why = t->why};
}

void sw_shard_give_key(const struct sw_shard *sh, struct sw_declare_item *item,
	uint32_t n_new, uint64_t n_bytes)
{
	item->key = sh->n_tensors + n_new;
	item->first = sw_place_first(
		&sh->map, sh->line_bytes + n_bytes, sh->params->payload);
}

/* Is what was open of it given up?  Then nothing is folded any more, whatever
 * round a member says that its push is of. */
static bool is_given_up(const struct sw_stensor *t)
{
	return sw_stensor_is_dead(t, t->newest);
}

bool sw_shard_kill(struct sw_shard *sh, struct sw_stensor *t, uint32_t round,
	const char *why)
{
	if (t->mode == SW_MODE_ASYNC || !round)
		round = 1; /* there is no round that all are in */
	if (sw_stensor_is_dead(t, round))
		return false;
	t->dead_from = round;
	strncpy(t->why, why, sizeof(t->why) - 1);
	if (is_given_up(t)) {
		sh->n_open -= t->n_open;
		t->n_open = 0;
	}
	return true;
}

void sw_shard_rank(struct sw_shard *sh, uint64_t joined)
{
	uint32_t m = 0, first = 0;

	for (; m < sh->n_members && joined >> m & 1; m++) {
		sh->first[m] = (uint16_t)first;
		first += sh->weights[m];
	}
	sh->n_ranked = m;
	sh->n_ranks = m == sh->n_members ? first : UINT32_MAX;
}

static struct sw_stensor *find(
	const struct sw_shard *sh, uint32_t key, uint32_t chunk)
{
	struct sw_stensor *t = sw_shard_tensor(sh, key);

	if (!t) {
		sw_count(&sh->stats->rx_key, 1);
		return NULL;
	}
	if (!sw_place_has(&t->place, chunk)) {
		sw_count(&sh->stats->rx_chunk, 1);
		return NULL;
	}
	return t;
}

static bool matches(struct sw_shard *sh, const struct sw_stensor *t,
	const struct sw_header *h)
{
	bool may_be_empty = h->op == SW_OPERATION_COPY;

	if (h->dtype != t->dtype || h->op >= SW_N_OPERATIONS) {
		sw_count(&sh->stats->rx_dtype, 1);
		return false;
	}
	if (h->payload_len !=
			sw_stensor_elems(t, h->chunk) * t->ops->elem_bytes &&
		!(may_be_empty && !h->payload_len)) {
		sw_count(&sh->stats->rx_length, 1);
		return false;
	}
	return true;
}

/* Of a sum as its member declared it, of a broadcast 1 with bytes. */
static bool has_weight(
	const struct sw_shard *sh, uint32_t member, const struct sw_header *h)
{
	return h->weight == (h->op == SW_OPERATION_COPY ? h->payload_len > 0
							: sh->weights[member]);
}

/* Has the payload the CRC that @h says? */
static bool is_whole(struct sw_shard *sh, uint32_t member,
	const struct sw_header *h, const uint8_t *payload)
{
	uint32_t crc = h->payload_crc;

	if (sw_shard_has_crc(sh, member))
		SW_TIMED(sh->stats->ticks_crc_in,
			crc = sw_data_crc(h, payload, h->payload_len));
	sw_count(&sh->stats->rx_payload_crc, crc != h->payload_crc);
	return crc == h->payload_crc;
}

static bool differs(const struct sw_begun *b, const struct sw_header *h)
{
	return b->got &&
	       (b->step != h->step || b->op != h->op ||
		       (h->op == SW_OPERATION_COPY && b->root != h->aux));
}

/* A push that is new. */
static enum sw_push_verdict check_and_fold(struct sw_shard *sh,
	struct sw_stensor *t, uint32_t member, uint32_t local,
	const struct sw_header *h, const uint8_t *payload, bool is_lent)
{
	struct sw_begun begun = t->rules->begun(sh, t, local, h);

	if (is_given_up(t))
		return SW_PUSH_DEAD;
	if (sh->is_draining && !begun.got)
		return SW_PUSH_DROP;
	if (!is_whole(sh, member, h, payload))
		return SW_PUSH_CRC;
	if (differs(&begun, h) || !sw_shard_has_root(sh, member, h))
		return SW_PUSH_DIFFERS;
	if (begun.has_root && h->payload_len) { /* I3: a second root */
		sw_count(&sh->stats->rx_round, 1);
		return SW_PUSH_VIOLATION;
	}
	/* Pushing this round, the member holds the result of the one before:
	 * whatever is still marked for it is not needed. */
	sw_marks_remove(sh, t, member, local);
	t->is_fifo = h->flags & SW_FLAG_FIFO;
	sh->n_folded++;
	sw_count(&sh->stats->push_folded, 1);
	sw_count(&sh->stats->push_bytes, h->payload_len);
	return t->rules->fold(sh, t, member, local, h, payload, is_lent);
}

/* A push that was folded before, and whose result is there: it is sent, unless
 * the member holds it or will soon. */
static void send_again(struct sw_shard *sh, struct sw_stensor *t,
	uint32_t member, uint32_t local, uint32_t round)
{
	struct sw_pulled p = t->rules->judge_pull(sh, t, member, local, round);

	if (p.verdict == SW_PULL_RESULT && !(p.inflight >> member & 1))
		sw_marks_add(sh, t, member, local);
}

enum sw_push_verdict sw_shard_push(struct sw_shard *sh, uint32_t member,
	const struct sw_header *h, const uint8_t *payload, bool is_lent)
{
	struct sw_stensor *t = find(sh, h->key, h->chunk);
	enum sw_push_verdict verdict;
	uint32_t local;

	if (!t || !matches(sh, t, h))
		return SW_PUSH_DROP;
	if (!has_weight(sh, member, h)) {
		sw_count(&sh->stats->rx_weight, 1);
		return SW_PUSH_DROP;
	}
	if (sw_stensor_is_dead(t, h->round))
		return SW_PUSH_DEAD;
	local = sw_place_local(&t->place, h->chunk);
	verdict = t->rules->judge_push(sh, t, member, local, h);
	if (verdict == SW_PUSH_FOLD)
		return check_and_fold(
			sh, t, member, local, h, payload, is_lent);
	if (verdict == SW_PUSH_DONE)
		send_again(sh, t, member, local, h->round);
	sw_count(verdict == SW_PUSH_VIOLATION ? &sh->stats->rx_round
					      : &sh->stats->push_again,
		1);
	return verdict;
}

struct sw_begun sw_shard_begun(
	const struct sw_shard *sh, const struct sw_header *h)
{
	const struct sw_stensor *t = &sh->tensors[h->key];

	return t->rules->begun(sh, t, sw_place_local(&t->place, h->chunk), h);
}

void sw_shard_copy_lent(struct sw_shard *sh)
{
	for (uint32_t key = 0; sh->n_lent && key < sh->n_keys; key++) {
		struct sw_stensor *t = &sh->tensors[key];

		if (t->is_admitted && t->rules->keep)
			t->rules->keep(sh, t);
	}
}

bool sw_shard_pull(struct sw_shard *sh, uint32_t member,
	const struct sw_pull *pull, struct sw_answer *answer)
{
	struct sw_stensor *t = find(sh, pull->key, pull->chunk);
	struct sw_pulled p;
	uint32_t local;

	if (!t)
		return false;
	local = sw_place_local(&t->place, pull->chunk);
	p = t->rules->judge_pull(sh, t, member, local, pull->round);
	*answer = (struct sw_answer){
		.key = pull->key, .round = pull->round, .chunk = pull->chunk};
	switch (p.verdict) {
	case SW_PULL_RESULT:
		if (!(p.inflight >> member & 1))
			sw_marks_add(sh, t, member, local);
		return false;
	case SW_PULL_WAIT:
		answer->kind = SW_ANSWER_WAIT;
		answer->missing = p.missing;
		sw_count(&sh->stats->pull_wait, 1);
		return true;
	case SW_PULL_NEED:
		answer->kind = SW_ANSWER_NEED;
		sw_count(&sh->stats->pull_need, 1);
		return true;
	case SW_PULL_GONE:
		break;
	}
	answer->kind = SW_ANSWER_GONE;
	sw_count(&sh->stats->pull_gone, 1);
	return true;
}

const void *sw_shard_take(struct sw_shard *sh, uint32_t member, uint32_t order,
	struct sw_header *h, uint32_t *cell_out)
{
	struct sw_stensor *t = &sh->tensors[sh->by_order[order]];
	struct sw_bitmap marks = sw_marks_of(t, member);
	uint32_t local = sw_bitmap_first(&marks);
	uint32_t chunk = sw_place_global(&t->place, local);

	sw_marks_remove(sh, t, member, local);
	*cell_out = local;
	*h = (struct sw_header){.type = SW_RESULT,
		.class = t->class,
		.key = t->key,
		.chunk = chunk,
		.dtype = t->dtype,
		.payload_len = (uint16_t)(sw_stensor_elems(t, chunk) *
					  t->ops->elem_bytes)};
	sw_count(&sh->stats->results, 1);
	sw_count(&sh->stats->result_bytes, h->payload_len);
	return t->rules->take(sh, t, member, local, h);
}

void sw_shard_fate(struct sw_shard *sh, uint32_t member, uint32_t key,
	uint32_t cell, uint32_t round, bool is_lost)
{
	struct sw_stensor *t = &sh->tensors[key];

	sw_count(&sh->stats->lost, is_lost);
	if (t->rules->settle(sh, t, member, cell, round) && is_lost) {
		sw_marks_add(sh, t, member, cell);
		sw_count(&sh->stats->retransmissions, 1);
	}
}
