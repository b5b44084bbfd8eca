/* async.c - parameters that the server keeps: asynchronous training.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/sums/async.h"

#include "engine/sums/push.h"

static struct sw_queried judge_query(const struct sw_shard *sh,
	const struct sw_stensor *t, uint32_t member, uint32_t local,
	uint32_t round)
{
	const struct sw_kept *k = sw_async_chunk(sh, t, local);

	return (struct sw_queried){sw_kept_judge_query(k, round, member),
		k->inflight, sh->expected & ~k->got};
}

/* Return the root of the first round, the only one common to all members. */
static struct sw_begun begun(const struct sw_shard *sh,
	const struct sw_stensor *t, uint32_t local, const struct sw_header *h)
{
	const struct sw_kept *k = sw_async_chunk(sh, t, local);

	return (struct sw_begun){.got = k->got,
		.root = k->root,
		.step = h->step,
		.op = SW_ROUND_COPY};
}

static void add_bytes(const struct sw_stensor *t, struct sw_kept *k,
	uint32_t local, const struct sw_header *h, const uint8_t *payload)
{
	uint32_t n = sw_elems(t->ops, h->payload_len);

	if (!n)
		return; /* pushed by a member that is not the root */
	if (h->op == SW_ROUND_SUM)
		t->ops->add(sw_stensor_acc(t, 0, local), payload, n);
	else
		t->ops->put(sw_stensor_acc(t, 0, local), payload, n);
	k->n_updates++;
}

/* Note that a member has pushed the first broadcast; when all members have,
 * mark the answer for all of them. */
static enum sw_push_verdict start(struct sw_shard *sh, struct sw_stensor *t,
	struct sw_kept *k, uint32_t member, uint32_t local)
{
	t->newest = 1;
	if (!k->got)
		sw_late_begin(sh, t, local);
	t->n_open += !k->got;
	sh->n_open += !k->got;
	k->got |= 1ULL << member;
	k->is_ready = k->got == sh->expected && k->n_updates;
	if (!k->is_ready)
		return SW_PUSH_FOLD;
	t->n_open--;
	sh->n_open--;
	sw_late_end(sh, t, local, member);
	sw_marks_add_all(sh, t, sh->n_members, local);
	return SW_PUSH_COMPLETE;
}

static enum sw_push_verdict fold(struct sw_shard *sh, struct sw_stensor *t,
	struct sw_kept *k, const struct sw_push *p)
{
	/* its pusher holds the previous result */
	sw_marks_remove(sh, t, p->member, p->local);
	if (!k->got)
		k->root = p->h->aux;
	SW_TIMED(sh->stats->ticks_fold,
		add_bytes(t, k, p->local, p->h, p->payload));
	k->last[p->member] = p->h->round;
	/* its pusher holds the last answer */
	k->inflight &= ~p->bit;
	if (!k->is_ready)
		return start(sh, t, k, p->member, p->local);
	sw_marks_add(sh, t, p->member, p->local);
	return SW_PUSH_FOLD;
}

static bool differs(const struct sw_shard *sh, const struct sw_kept *k,
	const struct sw_push *p)
{
	bool has_begun = p->h->round == 1 && k->got;

	return (has_begun &&
		       (p->h->op != SW_ROUND_COPY || k->root != p->h->aux)) ||
	       !sw_shard_has_root(sh, p->member, p->h);
}

static enum sw_push_verdict push_one(
	struct sw_shard *sh, struct sw_stensor *t, const struct sw_push *p)
{
	struct sw_kept *k = sw_async_chunk(sh, t, p->local);
	enum sw_push_verdict verdict =
		sw_kept_judge_push(k, p->h->round, p->member, p->h->op);

	if (verdict == SW_PUSH_FOLD)
		verdict = sw_push_check(sh, t, p, p->h->round == 1 && k->got);
	if (verdict != SW_PUSH_FOLD)
		return verdict;
	return differs(sh, k, p) ? SW_PUSH_DIFFERS : fold(sh, t, k, p);
}

static enum sw_push_verdict push_run(
	struct sw_shard *sh, struct sw_stensor *t, struct sw_pushes *r)
{
	return sw_push_run(sh, t, r, push_one, false);
}

static void settle_sent(struct sw_shard *sh, struct sw_stensor *t,
	uint32_t member, const struct sw_sent *const *sent, uint32_t n,
	bool is_lost)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t local = sent[i]->cell;
		struct sw_kept *k = sw_async_chunk(sh, t, local);
		uint64_t bit = 1ULL << member;

		if (sent[i]->round != k->last[member] || !(k->inflight & bit))
			continue;
		k->inflight &= ~bit;
		if (is_lost)
			sw_marks_again(sh, t, member, local);
	}
}

static const void *take_one(struct sw_shard *sh, struct sw_stensor *t,
	uint32_t member, uint32_t local, struct sw_header *h)
{
	struct sw_kept *k = sw_async_chunk(sh, t, local);
	const uint8_t *bytes = sw_stensor_acc(t, 0, local);

	k->inflight |= 1ULL << member;
	h->round = k->last[member];
	h->step = (uint16_t)k->n_updates;
	h->aux = (uint16_t)(k->n_updates >> 16);
	h->weight = 1;
	h->op = SW_ROUND_COPY;
	if (t->ops->round) {
		t->ops->round(
			sh->rounded, bytes, sw_elems(t->ops, h->payload_len));
		bytes = sh->rounded;
	}
	if (sw_shard_has_crc(sh, member))
		SW_TIMED(sh->stats->ticks_crc_result,
			h->payload_crc = sw_data_crc(
				sh->seed, h, bytes, h->payload_len));
	return bytes;
}

static uint32_t take_run(struct sw_shard *sh, struct sw_stensor *t,
	uint32_t member, struct sw_tx_frame *out, uint32_t *cells, uint32_t n)
{
	return sw_take_run(sh, t, member, out, cells, n, take_one, false);
}

const struct sw_rules sw_rules_async = {.push = push_run,
	.judge_query = judge_query,
	.begun = begun,
	.settle = settle_sent,
	.take = take_run};
