/* stream.c - rules of streams, which have a window of collectives.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/sums/stream.h"

#include "engine/sums/push.h"
#include "engine/wire/cipher.h"

static struct sw_slot *slot_of(const struct sw_stensor *t, uint32_t local)
{
	return (struct sw_slot *)t->records + local;
}

static struct sw_queried judge_query(const struct sw_shard *sh,
	const struct sw_stensor *t, uint32_t member, uint32_t local,
	uint32_t round)
{
	const struct sw_slot *s = slot_of(t, local);

	return (struct sw_queried){
		sw_slot_judge_query(s, t->members, t->base, round, member),
		s->inflight, sw_slot_from(s, t->members) & ~s->got};
}

static struct sw_begun begun(const struct sw_shard *sh,
	const struct sw_stensor *t, uint32_t local, const struct sw_header *h)
{
	const struct sw_slot *s = slot_of(t, local);

	if (s->chunk != h->stream.j)
		return (struct sw_begun){0};
	return (struct sw_begun){.got = s->got,
		.root = s->root,
		.step = s->tag,
		.op = s->op,
		.dtype = s->dtype,
		.number = s->number};
}

static uint8_t *result_of(
	const struct sw_shard *sh, const struct sw_stensor *t, uint32_t local)
{
	return sh->env->sum->ops[slot_of(t, local)->dtype].round
		       ? sw_stensor_result(t, 0, local)
		       : sw_stensor_acc(t, 0, local);
}

static void begin(struct sw_shard *sh, struct sw_stensor *t, struct sw_slot *s,
	uint32_t local, const struct sw_header *h)
{
	sw_late_begin(sh, t, local);
	if (!local) /* a busy stream also needs samples */
		sw_late_sample(sh, t, local);
	*s = (struct sw_slot){.chunk = h->stream.j,
		.number = h->stream.collective,
		.tag = h->stream.tag,
		.root = (uint8_t)h->stream.root,
		.dtype = h->dtype,
		.op = h->op};
	t->newest = h->stream.j;
	t->n_begun++;
	t->n_open++;
	sh->n_open++;
	sh->n_slots++;
}

/* Return where the contribution of the group's @i-th member is kept until all
 * have arrived. */
static uint8_t *apart_of(const struct sw_stensor *t, uint32_t local, uint32_t i)
{
	return t->apart +
	       ((uint64_t)local * t->n_apart + i) * sw_stensor_apart_stride(t);
}

static struct sw_open_sum open_sum(
	const struct sw_shard *sh, const struct sw_stensor *t, uint32_t local)
{
	struct sw_slot *s = slot_of(t, local);
	const struct sw_sum_ops *ops = &sh->env->sum->ops[s->dtype];

	return (struct sw_open_sum){.ops = ops,
		.fold = sw_coll_fold(ops, sw_coll_op_of(s->op)),
		.acc = sw_stensor_acc(t, 0, local),
		.lent = &s->lent,
		.n = sw_elems(ops, s->bytes)};
}

static bool is_sum(const struct sw_slot *s)
{
	return sw_coll_is_sum(sw_coll_kind_of(s->op));
}

/* Fold a payload. A copy goes straight to the result, because nothing is
 * rounded. A member that does not wait for the result lends nothing: it reuses
 * its buffer as soon as the payload is folded. */
static void fold_bytes(
	struct sw_shard *sh, struct sw_stensor *t, const struct sw_push *p)
{
	struct sw_slot *s = slot_of(t, p->local);
	bool is_first = !s->bytes;
	struct sw_open_sum sum;
	uint32_t i;

	s->bytes = p->h->payload_len;
	if (!is_sum(s)) {
		memcpy(result_of(sh, t, p->local), p->payload, s->bytes);
		s->crc = p->h->payload_crc;
		s->has_crc = p->has_crc;
		return;
	}
	if (t->apart) {
		i = (uint32_t)__builtin_popcountll(t->members & (p->bit - 1));
		memcpy(apart_of(t, p->local, i), p->payload, s->bytes);
		return;
	}
	sum = open_sum(sh, t, p->local);
	sw_sum_add(sh, &sum, p->payload, is_first,
		p->is_lent && sw_slot_to(s, t->members) >> p->member & 1);
}

/* Fold all contributions in the order of members; an addition needs one pass.
 */
static void fold_in_order(struct sw_shard *sh, struct sw_stensor *t,
	uint32_t local, const struct sw_open_sum *sum)
{
	const void *from[SW_MAX_MEMBERS];

	for (uint32_t i = 0; i < t->n_apart; i++)
		from[i] = apart_of(t, local, i);
	if (sum->fold == sum->ops->add) {
		sum->ops->sum(sum->acc, from, t->n_apart, sum->n);
		return;
	}
	sum->ops->put(sum->acc, from[0], sum->n);
	for (uint32_t i = 1; i < t->n_apart; i++)
		sum->fold(sum->acc, from[i], sum->n);
}

/* Make the result from the accumulator. An average is divided once, before it
 * is rounded. */
static void make_result(
	struct sw_shard *sh, struct sw_stensor *t, uint32_t local)
{
	const struct sw_slot *s = slot_of(t, local);
	struct sw_open_sum sum = open_sum(sh, t, local);

	if (!is_sum(s))
		return;
	if (t->apart)
		SW_TIMED(sh->stats->ticks_fold,
			fold_in_order(sh, t, local, &sum));
	sw_sum_keep(sh, &sum, false); /* a sum of one */
	if (sw_coll_op_of(s->op) == SW_AVG)
		sum.ops->divide(sum.acc, sum.acc, s->weight, sum.n);
	if (sum.ops->round)
		sum.ops->round(result_of(sh, t, local), sum.acc, sum.n);
}

/* Complete a chunk, because all members that give bytes have pushed. */
static void complete(struct sw_shard *sh, struct sw_stensor *t, uint32_t local)
{
	struct sw_slot *s = slot_of(t, local);
	const struct sw_header place = {
		.key = t->key, .round = s->chunk, .chunk = s->number};
	uint64_t to = sw_slot_to(s, t->members) & s->got;

	t->n_open--;
	t->since_ns = *sh->now_ns;
	sh->n_open--;
	sh->n_slots--;
	sh->n_done++;
	sw_count(&sh->stats->chunks_done, 1);
	make_result(sh, t, local);
	if (sh->params->has_crc && !s->has_crc)
		SW_TIMED(sh->stats->ticks_crc_result,
			s->crc = sw_data_crc(sh->seed, &place,
				result_of(sh, t, local), s->bytes));
	for (; to; to &= to - 1)
		sw_marks_add(sh, t, (uint32_t)__builtin_ctzll(to), local);
}

/* Note whether the slot is done, and advance base over chunks that are. */
static void note_held(struct sw_stensor *t, struct sw_slot *s)
{
	uint64_t to = sw_slot_to(s, t->members);

	s->is_done = s->is_ready && (s->held & to) == to;
	if (!s->is_done)
		return;
	s = slot_of(t, t->base & (t->window - 1));
	while (s->chunk == t->base && s->is_done)
		s = slot_of(t, ++t->base & (t->window - 1));
}

static bool differs(const struct sw_slot *s, const struct sw_header *h)
{
	return s->number != h->stream.collective || s->op != h->op ||
	       s->dtype != h->dtype || s->root != h->stream.root ||
	       s->tag != h->stream.tag ||
	       (s->bytes && h->payload_len && s->bytes != h->payload_len);
}

static enum sw_push_verdict fold(struct sw_shard *sh, struct sw_stensor *t,
	struct sw_slot *s, const struct sw_push *p)
{
	/* its pusher holds the previous result */
	sw_marks_remove(sh, t, p->member, p->local);
	t->n_pushed[p->member]++;
	if (s->chunk != p->h->stream.j)
		begin(sh, t, s, p->local, p->h);
	if (p->h->payload_len)
		SW_TIMED(sh->stats->ticks_fold, fold_bytes(sh, t, p));
	if (sw_slot_note(s, t->members, p->member, p->h->weight)) {
		sw_late_end(sh, t, p->local, p->member);
		complete(sh, t, p->local);
		note_held(t, s); /* it may have no receiver */
		return SW_PUSH_COMPLETE;
	}
	if (s->is_ready && sw_slot_to(s, t->members) >> p->member & 1)
		sw_marks_add(sh, t, p->member, p->local);
	return SW_PUSH_FOLD;
}

static enum sw_push_verdict push_one(
	struct sw_shard *sh, struct sw_stensor *t, const struct sw_push *p)
{
	struct sw_slot *s = slot_of(t, p->local);
	bool has_begun = s->chunk == p->h->stream.j && s->got;
	enum sw_push_verdict verdict = sw_slot_judge_push(
		s, t->base, t->window, p->h->stream.j, p->member);

	if (verdict == SW_PUSH_FOLD)
		verdict = sw_push_check(sh, t, p, has_begun);
	if (verdict != SW_PUSH_FOLD)
		return verdict;
	if (has_begun && differs(s, p->h))
		return SW_PUSH_DIFFERS;
	/* every member gives to a chunk or gets its result */
	if (t->group->closed & ~(has_begun ? s->got : 0))
		return SW_PUSH_CLOSED;
	return fold(sh, t, s, p);
}

static enum sw_push_verdict push_run(
	struct sw_shard *sh, struct sw_stensor *t, struct sw_pushes *r)
{
	return sw_push_run(sh, t, r, push_one, true);
}

static void settle_sent(struct sw_shard *sh, struct sw_stensor *t,
	uint32_t member, const struct sw_sent *const *sent, uint32_t n,
	bool is_lost)
{
	uint64_t bit = 1ULL << member;

	for (uint32_t i = 0; i < n; i++) {
		struct sw_slot *s = slot_of(t, sent[i]->cell);

		if (s->chunk != sent[i]->round || !(s->inflight & bit))
			continue;
		s->inflight &= ~bit;
		if (is_lost) {
			sw_marks_again(sh, t, member, sent[i]->cell);
			continue;
		}
		s->held |= bit;
		note_held(t, s);
	}
}

static const void *take_one(struct sw_shard *sh, struct sw_stensor *t,
	uint32_t member, uint32_t local, struct sw_header *h)
{
	struct sw_slot *s = slot_of(t, local);

	s->inflight |= 1ULL << member;
	h->stream.j = s->chunk;
	h->stream.collective = s->number;
	h->stream.tag = s->tag;
	h->weight = s->weight;
	h->dtype = s->dtype;
	h->op = s->op;
	h->stream.base = (uint16_t)t->base;
	h->payload_len = s->bytes;
	h->payload_crc = s->crc;
	return result_of(sh, t, local);
}

static uint32_t take_run(struct sw_shard *sh, struct sw_stensor *t,
	uint32_t member, struct sw_tx_frame *out, uint32_t *cells, uint32_t n)
{
	return sw_take_run(sh, t, member, out, cells, n, take_one, true);
}

static bool seal(
	struct sw_stensor *t, uint32_t local, uint32_t round, uint32_t era)
{
	struct sw_slot *s = slot_of(t, local);
	bool was = s->is_sealed;

	s->is_sealed = true;
	s->crc = sw_result_era(was, s->crc, era);
	return was;
}

static bool keep(struct sw_shard *sh, struct sw_stensor *t, uint32_t local)
{
	struct sw_open_sum sum = open_sum(sh, t, local);

	return sw_sum_keep(sh, &sum, sw_stensor_is_given_up(t));
}

const struct sw_rules sw_rules_stream = {.has_results = true,
	.record_bytes = sizeof(struct sw_slot),
	.push = push_run,
	.judge_query = judge_query,
	.begun = begun,
	.settle = settle_sent,
	.take = take_run,
	.seal = seal,
	.keep = keep};
