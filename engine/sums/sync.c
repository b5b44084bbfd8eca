/* sync.c - rules of synchronous tensors, which are summed in rounds.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/sums/push.h"
#include "engine/wire/cipher.h"

/* Return the chunk with index @local; initialize it at its first frame. */
static struct sw_chunk *chunk_of(const struct sw_stensor *t, uint32_t local)
{
	struct sw_chunk *c = &t->chunks[local];

	if (sw_chunk_is_blank(c))
		sw_chunk_init(c);
	return c;
}

static struct sw_queried judge_query(const struct sw_shard *sh,
	const struct sw_stensor *t, uint32_t member, uint32_t local,
	uint32_t round)
{
	const struct sw_chunk *c = chunk_of(t, local);

	return (struct sw_queried){sw_cell_judge_query(c, round, member),
		c->inflight, sw_cell_missing(c, round, sh->expected)};
}

static struct sw_begun begun(const struct sw_shard *sh,
	const struct sw_stensor *t, uint32_t local, const struct sw_header *h)
{
	const struct sw_cell *cell = &t->chunks[local].cell[h->round & 1];

	return (struct sw_begun){.got = cell->got,
		.root = cell->root,
		.step = cell->step,
		.op = cell->op};
}

/* Return the open sum of a chunk of @n elements. */
static struct sw_open_sum open_sum(
	const struct sw_stensor *t, uint32_t local, uint32_t round, uint32_t n)
{
	return (struct sw_open_sum){.ops = t->ops,
		.fold = t->ops->add,
		.acc = sw_stensor_acc(t, round, local),
		.lent = &t->chunks[local].lent,
		.n = n};
}

/* Copy @payload, if not empty, as the bytes of the broadcast @cell. */
static void fold_copy(struct sw_shard *sh, struct sw_stensor *t, uint32_t local,
	struct sw_cell *cell, uint32_t member, const struct sw_header *h,
	const uint8_t *payload)
{
	uint8_t *acc = sw_stensor_acc(t, h->round, local);

	if (!h->payload_len)
		return;
	memcpy(acc, payload, h->payload_len);
	cell->has_root = true;
	cell->crc = h->payload_crc;
	if (sh->params->has_crc && !sw_shard_has_crc(sh, member))
		cell->crc = sw_data_crc(sh->seed, h, acc, h->payload_len);
}

/* Complete a sum; @p is the last contribution. */
static void complete_sum(struct sw_shard *sh, struct sw_stensor *t,
	struct sw_cell *cell, const struct sw_push *p)
{
	const struct sw_header *h = p->h;
	uint32_t local = p->local;
	bool is_sum = (cell->got & (cell->got - 1)) || t->ops->round;

	if (t->chunks[local].lent || t->ops->round) {
		struct sw_open_sum sum = open_sum(t, local, h->round, p->n);

		sw_sum_keep(sh, &sum, false); /* a sum of one */
		if (t->ops->round)
			t->ops->round(
				sw_stensor_result(t, 0, local), sum.acc, sum.n);
	}
	/* A sum of one is the contribution, and so is its CRC. */
	if (is_sum && sh->params->has_crc)
		SW_TIMED(sh->stats->ticks_crc_result,
			cell->crc = sw_data_crc(sh->seed, h,
				sw_stensor_result(t, cell->round, local),
				h->payload_len));
}

static void begin(struct sw_shard *sh, struct sw_stensor *t,
	struct sw_cell *cell, uint32_t local, const struct sw_header *h)
{
	sw_late_begin(sh, t, local);
	cell->op = h->op;
	cell->root = h->aux;
	cell->crc = h->payload_crc;
	t->newest = h->round;
	t->n_open++;
	sh->n_open++;
}

/* Judge whether the push agrees with the pushes folded into @cell, if
 * @has_begun, and names a valid root. */
static enum sw_push_verdict fit(const struct sw_shard *sh,
	const struct sw_cell *cell, const struct sw_push *p, bool has_begun)
{
	const struct sw_header *h = p->h;

	if (has_begun && (cell->step != h->step || cell->op != h->op))
		return SW_PUSH_DIFFERS;
	if (h->op != SW_ROUND_COPY)
		return SW_PUSH_FOLD;
	if ((has_begun && cell->root != h->aux) ||
		!sw_shard_has_root(sh, p->member, h))
		return SW_PUSH_DIFFERS;
	return has_begun && cell->has_root && h->payload_len
		       ? SW_PUSH_VIOLATION /* I3: a second root */
		       : SW_PUSH_FOLD;
}

/* Complete a cell, because all members have pushed: its bytes never change
 * again, and all members receive them. A single result slot holds the last sum
 * until all members have asked for a broadcast, whose bytes wait in the
 * accumulator. */
static void complete(struct sw_shard *sh, struct sw_stensor *t,
	struct sw_cell *cell, const struct sw_push *p)
{
	if (p->h->op != SW_ROUND_COPY)
		complete_sum(sh, t, cell, p);
	else if (t->ops->round)
		memcpy(sw_stensor_result(t, cell->round, p->local),
			sw_stensor_acc(t, 0, p->local), t->res_stride);
	if (!(p->h->round & 3)) /* the sample is rarely in the cache */
		sw_late_end(sh, t, p->local, p->member);
	cell->is_done = true;
	sh->n_open--;
	t->n_open--;
	sh->n_done++;
	sw_count(&sh->stats->chunks_done, 1);
	sw_marks_add_all(sh, t, sh->n_members, p->local);
}

static enum sw_push_verdict fold(struct sw_shard *sh, struct sw_stensor *t,
	struct sw_chunk *c, struct sw_cell *cell, const struct sw_push *p,
	bool is_first)
{
	const struct sw_header *h = p->h;

	/* its pusher holds the previous result */
	if (p->marks[p->local / 64] >> p->local % 64 & 1)
		sw_marks_remove(sh, t, p->member, p->local);
	if (is_first) {
		sw_cell_open(cell, h->round, h->step);
		begin(sh, t, cell, p->local, h);
	}
	if (h->op == SW_ROUND_COPY) {
		fold_copy(sh, t, p->local, cell, p->member, h, p->payload);
	} else {
		struct sw_open_sum sum = open_sum(t, p->local, h->round, p->n);

		SW_TIMED(sh->stats->ticks_fold,
			sw_sum_add(sh, &sum, p->payload, is_first, p->is_lent));
	}
	c->inflight &= ~p->bit;
	if (!sw_cell_fold(cell, p->bit, h->weight, sh->expected))
		return SW_PUSH_FOLD;
	complete(sh, t, cell, p);
	return SW_PUSH_COMPLETE;
}

static enum sw_push_verdict push_one(
	struct sw_shard *sh, struct sw_stensor *t, const struct sw_push *p)
{
	struct sw_chunk *c = chunk_of(t, p->local);
	struct sw_cell *cell = &c->cell[p->h->round & 1];
	enum sw_push_verdict verdict =
		sw_cell_judge_push(c, p->h->round, p->member);
	bool has_begun;

	if (verdict != SW_PUSH_FOLD)
		return verdict;
	/* a cell that was opened has a contribution */
	has_begun = cell->round == p->h->round;
	verdict = sw_push_check(sh, t, p, has_begun);
	if (verdict == SW_PUSH_FOLD)
		verdict = fit(sh, cell, p, has_begun);
	return verdict == SW_PUSH_FOLD ? fold(sh, t, c, cell, p, !has_begun)
				       : verdict;
}

static enum sw_push_verdict push_run(
	struct sw_shard *sh, struct sw_stensor *t, struct sw_pushes *r)
{
	return sw_push_run(sh, t, r, push_one, false);
}

/* Settle lost results; sw_shard_fate settles the ones that arrived. */
static void settle_sent(struct sw_shard *sh, struct sw_stensor *t,
	uint32_t member, const struct sw_sent *const *sent, uint32_t n,
	bool is_lost)
{
	for (uint32_t i = 0; i < n; i++)
		if (sw_chunk_settle(&t->chunks[sent[i]->cell], 1ULL << member,
			    sent[i]->round))
			sw_marks_again(sh, t, member, sent[i]->cell);
}

static const void *take_one(struct sw_shard *sh, struct sw_stensor *t,
	uint32_t member, uint32_t local, struct sw_header *h)
{
	struct sw_chunk *c = &t->chunks[local];
	const struct sw_cell *cell = sw_chunk_owed(c, member);

	c->inflight |= 1ULL << member;
	h->round = cell->round;
	h->step = cell->step;
	h->weight = cell->weight;
	h->op = cell->op;
	h->payload_crc = cell->crc;
	return sw_stensor_result(t, cell->round, local);
}

static uint32_t take_run(struct sw_shard *sh, struct sw_stensor *t,
	uint32_t member, struct sw_tx_frame *out, uint32_t *cells, uint32_t n)
{
	return sw_take_run(sh, t, member, out, cells, n, take_one, false);
}

static bool seal(
	struct sw_stensor *t, uint32_t local, uint32_t round, uint32_t era)
{
	struct sw_cell *cell = &t->chunks[local].cell[round & 1];
	bool was = cell->is_sealed;

	cell->is_sealed = true;
	cell->crc = sw_result_era(was, cell->crc, era);
	return was;
}

static bool keep(struct sw_shard *sh, struct sw_stensor *t, uint32_t local)
{
	const struct sw_chunk *c = &t->chunks[local];
	uint32_t round = c->cell[c->cell[0].is_done].round;
	struct sw_open_sum sum;

	if (!c->lent)
		return false;
	sum = open_sum(t, local, round,
		sw_elems(t->ops, sw_stensor_bytes(t,
					 sw_place_global(&t->place, local))));
	return sw_sum_keep(sh, &sum, sw_stensor_is_dead(t, round));
}

const struct sw_rules sw_rules_sync = {.has_results = true,
	.record_bytes = sizeof(struct sw_chunk),
	.push = push_run,
	.judge_query = judge_query,
	.begun = begun,
	.settle = settle_sent,
	.take = take_run,
	.seal = seal,
	.keep = keep};
