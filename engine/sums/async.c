/* async.c - parameters that the server keeps: asynchronous training.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/sums/async.h"

#include "engine/base/ticks.h"
#include "engine/sums/fold.h"
#include "engine/sums/marks.h"

static uint8_t *value_of(const struct sw_stensor *t, uint32_t local)
{
	return t->acc[0] + local * t->acc_stride;
}

static void add_bytes(const struct sw_stensor *t, struct sw_kept *k,
	uint32_t local, const struct sw_header *h, const uint8_t *payload)
{
	uint32_t n = h->payload_len / t->ops->elem_bytes;

	if (!n)
		return; /* of a broadcast, and not the root's */
	if (h->op == SW_OPERATION_SUM)
		t->ops->add(value_of(t, local), payload, n);
	else
		t->ops->put(value_of(t, local), payload, n);
	k->n_updates++;
}

/* One more has asked for the first value; when all have, all are answered. */
static enum sw_shard_push start(struct sw_shard *sh, struct sw_stensor *t,
	struct sw_kept *k, uint32_t member, uint32_t local)
{
	t->newest = 1;
	t->n_open += !k->got;
	sh->n_open += !k->got;
	k->got |= 1ULL << member;
	k->is_ready = k->got == sh->expected && k->n_updates;
	if (!k->is_ready)
		return SW_SHARD_TAKEN;
	t->n_open--;
	sh->n_open--;
	for (uint32_t m = 0; m < sh->n_members; m++)
		sw_marks_add(sh, t, m, local);
	return SW_SHARD_COMPLETE;
}

static enum sw_shard_push fold(struct sw_shard *sh, struct sw_stensor *t,
	uint32_t member, const struct sw_header *h, const uint8_t *payload)
{
	uint32_t local = sw_place_local(&t->place, h->chunk);
	struct sw_kept *k = sw_async_chunk(sh, t, local);

	if (!k->got)
		k->root = h->aux;
	SW_TIMED(sh->stats->ticks_fold, add_bytes(t, k, local, h, payload));
	k->last[member] = h->round;
	/* Pushing this round, the member holds the answer to its last one. */
	k->inflight &= ~(1ULL << member);
	sw_marks_remove(sh, t, member, local);
	t->is_fifo = h->flags & SW_FLAG_FIFO;
	sh->n_folded++;
	sw_count(&sh->stats->push_folded, 1);
	sw_count(&sh->stats->push_bytes, h->payload_len);
	if (!k->is_ready)
		return start(sh, t, k, member, local);
	sw_marks_add(sh, t, member, local);
	return SW_SHARD_RESULT;
}

static enum sw_shard_push check_and_fold(struct sw_shard *sh,
	struct sw_stensor *t, uint32_t member, const struct sw_header *h,
	const uint8_t *payload)
{
	const struct sw_kept *k =
		sw_async_chunk(sh, t, sw_place_local(&t->place, h->chunk));

	if (!sw_shard_is_whole(sh, member, h, payload))
		return SW_SHARD_CRC;
	if ((h->round == 1 && k->got && k->root != h->aux) ||
		!sw_shard_has_root(sh, member, h))
		return SW_SHARD_DIFFERS; /* about who gives the value */
	return fold(sh, t, member, h, payload);
}

enum sw_shard_push sw_async_push(struct sw_shard *sh, struct sw_stensor *t,
	uint32_t member, const struct sw_header *h, const uint8_t *payload)
{
	uint32_t local = sw_place_local(&t->place, h->chunk);
	struct sw_kept *k = sw_async_chunk(sh, t, local);

	switch (sw_kept_judge_push(k, h->round, member, h->op)) {
	case SW_PUSH_FOLD:
		return sh->is_draining
			       ? SW_SHARD_DROP
			       : check_and_fold(sh, t, member, h, payload);
	case SW_PUSH_DONE:
		sw_count(&sh->stats->push_again, 1);
		if (k->inflight >> member & 1)
			return SW_SHARD_TAKEN;
		sw_marks_add(sh, t, member, local);
		return SW_SHARD_RESULT;
	case SW_PUSH_HAVE:
	case SW_PUSH_OLD:
		sw_count(&sh->stats->push_again, 1);
		return SW_SHARD_TAKEN;
	default:
		sw_count(&sh->stats->rx_round, 1);
		return SW_SHARD_DROP;
	}
}

const void *sw_async_take(struct sw_shard *sh, struct sw_stensor *t,
	uint32_t member, uint32_t local, struct sw_header *h)
{
	struct sw_kept *k = sw_async_chunk(sh, t, local);
	uint32_t chunk = sw_place_global(&t->place, local);
	uint32_t n = sw_stensor_elems(t, chunk);
	const uint8_t *bytes = value_of(t, local);

	k->inflight |= 1ULL << member;
	*h = (struct sw_header){.type = SW_RESULT,
		.class = t->class,
		.key = t->key,
		.round = k->last[member],
		.chunk = chunk,
		.step = (uint16_t)k->n_updates,
		.aux = (uint16_t)(k->n_updates >> 16),
		.weight = 1,
		.dtype = t->dtype,
		.op = SW_OPERATION_COPY,
		.payload_len = (uint16_t)(n * t->ops->elem_bytes)};
	if (t->ops->round) {
		t->ops->round(sh->rounded, bytes, n);
		bytes = sh->rounded;
	}
	if (sw_shard_has_crc(sh, member))
		SW_TIMED(sh->stats->ticks_crc_result,
			h->payload_crc = sw_data_crc(h, bytes, h->payload_len));
	return bytes;
}

void sw_async_fate(struct sw_shard *sh, struct sw_stensor *t, uint32_t member,
	uint32_t cell, uint32_t round, bool is_lost)
{
	struct sw_kept *k = sw_async_chunk(sh, t, cell);

	/* Of an older round: the member holds its answer. */
	if (round != k->last[member] || !(k->inflight >> member & 1))
		return;
	k->inflight &= ~(1ULL << member);
	if (is_lost) {
		sw_marks_add(sh, t, member, cell);
		sw_count(&sh->stats->retransmissions, 1);
	}
}
