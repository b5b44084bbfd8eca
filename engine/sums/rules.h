/* rules.h - how each mode sums chunks, and the marks of results to send.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * shard.c has the code that all tensors share. Each mode has a table of rules:
 * a synchronous tensor is summed in rounds of all members (sync.c), an
 * asynchronous tensor keeps a value (async.c), a stream has a window of
 * collectives (stream.c). @local is a chunk's local index (place.h).
 *
 * A mark (marks.c) is a bit per chunk and member: the server must still send
 * the newest result. Above the marks, each member has a bit per tensor that has
 * marks, in order of priority.
 */
#ifndef SW_ENGINE_SUMS_RULES_H
#define SW_ENGINE_SUMS_RULES_H

#include "engine/base/ticks.h"
#include "engine/sums/shard.h"

/* Verdict on a member's query, and the reason. */
struct sw_queried {
	enum sw_query_verdict verdict;
	uint64_t inflight; /* members with the newest result in flight */
	uint64_t missing;  /* members that the round waits for */
};

/* A run of pushes, as sw_shard_push gets it, and its outcome. */
struct sw_pushes {
	const struct sw_header *h;
	const struct sw_rx_frame *f;
	uint32_t n, member;
	bool has_crc, has_completed;
	uint32_t at, n_again; /* pushes held so far, and duplicates */
	uint64_t bytes;       /* payload bytes folded */
};

/* One contribution to a chunk. */
struct sw_push {
	const struct sw_header *h;
	const uint8_t *payload;
	uint32_t member, local;
	uint32_t n;            /* elements, if not a stream's */
	uint64_t bit;          /* 1 << member */
	const uint64_t *marks; /* marks of the member for this tensor */
	bool is_lent, has_crc;
};

/* The open sum of a chunk of @n elements. */
struct sw_open_sum {
	const struct sw_sum_ops *ops;
	sw_fold_fn *fold;
	uint8_t *acc;         /* accumulator */
	const uint8_t **lent; /* *lent: the first contribution in its sender's
				 buffer; NULL: it is in @acc */
	uint32_t n;
};

struct sw_rules {
	bool has_results;      /* results lie apart from the accumulators */
	uint32_t record_bytes; /* bytes per chunk; 0: use sw_kept_bytes */
	/* Handle pushes from r->at on, the first to @t; stop behind the last
	 * push, at a push that is neither folded nor a duplicate, or at a push
	 * to a tensor of another mode.  Return the verdict on the last push
	 * (push.h). */
	enum sw_push_verdict (*push)(
		struct sw_shard *sh, struct sw_stensor *t, struct sw_pushes *r);
	struct sw_queried (*judge_query)(const struct sw_shard *sh,
		const struct sw_stensor *t, uint32_t member, uint32_t local,
		uint32_t round);
	struct sw_begun (*begun)(const struct sw_shard *sh,
		const struct sw_stensor *t, uint32_t local,
		const struct sw_header *h);
	/* Settle results that were in flight. Mark lost ones again, except
	 * results of older rounds: the member holds such a result, or a newer
	 * one is marked. */
	void (*settle)(struct sw_shard *sh, struct sw_stensor *t,
		uint32_t member, const struct sw_sent *const *sent, uint32_t n,
		bool is_lost);
	/* Take marked results for @member; there must be one (push.h). */
	uint32_t (*take)(struct sw_shard *sh, struct sw_stensor *t,
		uint32_t member, struct sw_tx_frame *out, uint32_t *cells,
		uint32_t n);
	/* As sw_shard_seal. NULL: results of this mode change. */
	bool (*seal)(struct sw_stensor *t, uint32_t local, uint32_t round,
		uint32_t era);
	/* Stop borrowing a chunk's first contribution: copy it, or drop it if
	 * the chunk is dead. Returns false if nothing was borrowed. NULL: this
	 * mode never borrows. */
	bool (*keep)(struct sw_shard *sh, struct sw_stensor *t, uint32_t local);
};

/* sw_stensor_is_given_up - return whether the newest round is dead, so that
 * open chunks are abandoned.  Then no push of any round is folded. */
static inline bool sw_stensor_is_given_up(const struct sw_stensor *t)
{
	return sw_stensor_is_dead(t, t->newest);
}

/* sw_late_begin - note the first contribution to a chunk of @t; the caller
 * counts it in t->n_open afterwards.  A chunk that begins while no other chunk
 * is open is a sample; sw_late_sample makes any chunk a sample. */
static inline void sw_late_sample(
	const struct sw_shard *sh, struct sw_stensor *t, uint32_t local)
{
	t->first_ns = *sh->now_ns;
	t->sample = local;
}

static inline void sw_late_begin(
	const struct sw_shard *sh, struct sw_stensor *t, uint32_t local)
{
	if (t->n_open)
		return;
	t->since_ns = *sh->now_ns;
	sw_late_sample(sh, t, local);
}

/* sw_late_end - note the last contribution to chunk @local, from @member. */
static inline void sw_late_end(struct sw_shard *sh, const struct sw_stensor *t,
	uint32_t local, uint32_t member)
{
	if (local != t->sample)
		return;
	sw_histogram_note(&sh->late[member], *sh->now_ns - t->first_ns);
	sw_histogram_note(&sh->stats->late_ns, *sh->now_ns - t->first_ns);
}

/* sw_stensor_bytes - return the bytes of a chunk, given its index in the
 * tensor. */
static inline uint32_t sw_stensor_bytes(
	const struct sw_stensor *t, uint32_t chunk)
{
	return chunk + 1 == t->place.n_chunks ? t->last_bytes : t->chunk_bytes;
}

/* sw_elems - return the number of elements in @bytes. */
static inline uint32_t sw_elems(const struct sw_sum_ops *ops, uint32_t bytes)
{
	return bytes >> __builtin_ctz(ops->elem_bytes);
}

/* sw_stensor_acc - return the accumulator, or the kept value, of a chunk. */
static inline uint8_t *sw_stensor_acc(
	const struct sw_stensor *t, uint32_t round, uint32_t local)
{
	return t->acc[round & 1] + local * t->acc_stride;
}

/* sw_stensor_result - return the place of the rounded result; the accumulator
 * if nothing is rounded. */
static inline uint8_t *sw_stensor_result(
	const struct sw_stensor *t, uint32_t round, uint32_t local)
{
	return t->res[round & 1] + local * t->res_stride;
}

/* sw_stensor_apart_stride - return the distance between two members'
 * contributions. Their low 12 address bits differ, because equal ones slow down
 * sums of many operands. */
static inline uint64_t sw_stensor_apart_stride(const struct sw_stensor *t)
{
	return t->res_stride + 3 * 64;
}

/* sw_sum_keep - stop borrowing the first contribution: copy it into the
 * accumulator, or drop the reference if the sum is dead. Returns false if
 * nothing was borrowed. */
static inline bool sw_sum_keep(
	struct sw_shard *sh, const struct sw_open_sum *s, bool is_dead)
{
	if (!*s->lent)
		return false;
	if (!is_dead) /* if dead, the sender owns it again */
		s->ops->put(s->acc, *s->lent, s->n);
	*s->lent = NULL;
	sh->n_lent--;
	return true;
}

/* sw_sum_add - add @payload to @s. A first contribution that @is_lent is
 * borrowed, not copied; the second one writes the sum of both. */
static inline void sw_sum_add(struct sw_shard *sh, const struct sw_open_sum *s,
	const uint8_t *payload, bool is_first, bool is_lent)
{
	if (is_first && is_lent) {
		*s->lent = payload;
		sh->n_lent++;
	} else if (is_first) {
		s->ops->put(s->acc, payload, s->n);
	} else if (*s->lent && s->fold == s->ops->add) {
		const void *both[] = {*s->lent, payload};

		s->ops->sum(s->acc, both, 2, s->n);
		*s->lent = NULL;
		sh->n_lent--;
	} else {
		sw_sum_keep(sh, s, false);
		s->fold(s->acc, payload, s->n);
	}
}

/* sw_marks_at - return where the marks of @member begin, for the functions of
 * bitmap.h whose names end in _in. */
static inline size_t sw_marks_at(const struct sw_stensor *t, uint32_t member)
{
	return (size_t)member * t->mark_stride;
}

/* sw_marks_of - return the words of @member's marks; NULL: no chunk is here. */
static inline const uint64_t *sw_marks_of(
	const struct sw_stensor *t, uint32_t member)
{
	return t->mem ? sw_bitmap_word(&t->marks, 0) + sw_marks_at(t, member)
		      : NULL;
}

/* sw_marks_admit - insert @t into the orders. */
void sw_marks_admit(struct sw_shard *sh, struct sw_stensor *t);

/* sw_marks_forget - remove @t from the orders. */
void sw_marks_forget(struct sw_shard *sh, const struct sw_stensor *t);

/* sw_marks_add, sw_marks_remove - set or clear a mark of @member.
 * sw_marks_begin and sw_marks_end do the rare part, when the mark's word was
 * zero before or becomes zero. */
void sw_marks_begin(struct sw_shard *sh, struct sw_stensor *t, uint64_t members,
	uint32_t local);
void sw_marks_end(struct sw_shard *sh, struct sw_stensor *t, uint32_t member,
	uint32_t local);

static inline void sw_marks_add(struct sw_shard *sh, struct sw_stensor *t,
	uint32_t member, uint32_t local)
{
	if (!sw_bitmap_add_word_in(&t->marks, sw_marks_at(t, member), local))
		sw_marks_begin(sh, t, 1ULL << member, local);
}

/* sw_marks_add_all - set a mark of members 0 to @n - 1. */
static inline void sw_marks_add_all(
	struct sw_shard *sh, struct sw_stensor *t, uint32_t n, uint32_t local)
{
	uint64_t *word = sw_bitmap_word(&t->marks, local);
	uint64_t bit = 1ULL << local % 64;
	size_t stride = t->mark_stride;
	uint64_t begun = 0;

	for (uint32_t m = 0; m < n; m++, word += stride) {
		if (!*word)
			begun |= 1ULL << m;
		*word |= bit;
	}
	if (begun)
		sw_marks_begin(sh, t, begun, local);
}

/* sw_marks_again - mark a lost result for retransmission. */
static inline void sw_marks_again(struct sw_shard *sh, struct sw_stensor *t,
	uint32_t member, uint32_t local)
{
	sw_marks_add(sh, t, member, local);
	sw_count(&sh->stats->retransmissions, 1);
}

static inline void sw_marks_remove(struct sw_shard *sh, struct sw_stensor *t,
	uint32_t member, uint32_t local)
{
	size_t at = sw_marks_at(t, member);

	if (sw_bitmap_has_in(&t->marks, at, local) &&
		!sw_bitmap_remove_word_in(&t->marks, at, local))
		sw_marks_end(sh, t, member, local);
}

/* sw_push_check - return SW_PUSH_FOLD if a new push may be folded, else the
 * reason. @has_begun: its round already has a contribution. */
static inline enum sw_push_verdict sw_push_check(struct sw_shard *sh,
	const struct sw_stensor *t, const struct sw_push *p, bool has_begun)
{
	const struct sw_header *h = p->h;
	uint32_t crc = h->payload_crc;

	if (sw_stensor_is_given_up(t))
		return SW_PUSH_DEAD;
	if (sh->is_draining && !has_begun)
		return SW_PUSH_DROP;
	if (p->has_crc)
		SW_TIMED(sh->stats->ticks_crc_in,
			crc = sw_data_crc_far(
				sh->seed, h, p->payload, h->payload_len));
	if (__builtin_expect(crc != h->payload_crc, 0))
		return SW_PUSH_CRC;
	return SW_PUSH_FOLD;
}

/* sw_marks_drop - clear all marks of @t: its results are not sent. */
void sw_marks_drop(struct sw_shard *sh, struct sw_stensor *t);

extern const struct sw_rules sw_rules_sync, sw_rules_async, sw_rules_stream;

#endif
