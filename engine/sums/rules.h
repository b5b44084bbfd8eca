/* rules.h - how the chunks of a tensor are summed; which results wait for whom.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Between shard.c, which has what all tensors have in common, and the three
 * modes: a tensor of mode synchronous is summed in rounds that all members are
 * in (sync.c), of an asynchronous one a value is kept (async.c), a stream has a
 * window of collectives (stream.c).  A tensor has
 * its row from when it is admitted.  @local is a chunk's local index (place.h).
 *
 * A mark (marks.c) is a bit per chunk and member: the newest result is not sent
 * yet.  Above the marks of a tensor stands a bit per member in the order of
 * tensors: by priority, or, if it was pushed so, by readiness, behind all
 * others.
 */
#ifndef SW_ENGINE_SUMS_RULES_H
#define SW_ENGINE_SUMS_RULES_H

#include "engine/base/ticks.h"
#include "engine/sums/shard.h"

/* What a member that asks for a chunk is to be told, and why. */
struct sw_queried {
	enum sw_query_verdict verdict;
	uint64_t inflight; /* members to whom the newest result is on its way */
	uint64_t missing;  /* members that the round waits for */
};

/* One contribution to a chunk, as sw_shard_push has it. */
struct sw_push {
	const struct sw_header *h;
	const uint8_t *payload;
	uint32_t member, local;
	bool is_lent, has_crc;
};

/* An open sum of a chunk: of @n elements. */
struct sw_open_sum {
	const struct sw_sum_ops *ops;
	sw_fold_fn *fold;
	uint8_t *acc;         /* where it is made */
	const uint8_t **lent; /* *lent: the first contribution, where its sender
				 has it; NULL: it lies in @acc */
	uint32_t n;
};

struct sw_rules {
	bool has_results;      /* apart from the values that are summed */
	uint32_t record_bytes; /* of a chunk; 0: sw_kept_bytes says */
	/* What a push is; one that is new and right (sw_push_check) is folded,
	 * else nothing has changed. */
	enum sw_push_verdict (*push)(struct sw_shard *sh, struct sw_stensor *t,
		const struct sw_push *p);
	struct sw_queried (*judge_query)(const struct sw_shard *sh,
		const struct sw_stensor *t, uint32_t member, uint32_t local,
		uint32_t round);
	struct sw_begun (*begun)(const struct sw_shard *sh,
		const struct sw_stensor *t, uint32_t local,
		const struct sw_header *h);
	/* Results that were sent are not on their way any more: they arrived,
	 * or, if they are lost, are marked again; but not those of an older
	 * round, since then the member holds it, or a newer one is marked. */
	void (*settle)(struct sw_shard *sh, struct sw_stensor *t,
		uint32_t member, const struct sw_sent *const *sent, uint32_t n,
		bool is_lost);
	/* Fill what of @h depends on the round or slot; returns the bytes. */
	const void *(*take)(struct sw_shard *sh, struct sw_stensor *t,
		uint32_t member, uint32_t local, struct sw_header *h);
	/* What is lent to a chunk is copied; of a dead one it is left.  False:
	 * nothing was.  NULL: nothing ever is. */
	bool (*keep)(struct sw_shard *sh, struct sw_stensor *t, uint32_t local);
};

/* sw_stensor_is_given_up - is what was open of it?  Then nothing is folded any
 * more, whatever round a member says that its push is of. */
static inline bool sw_stensor_is_given_up(const struct sw_stensor *t)
{
	return sw_stensor_is_dead(t, t->newest);
}

/* sw_stensor_bytes - of a chunk, by its index in the tensor. */
static inline uint32_t sw_stensor_bytes(
	const struct sw_stensor *t, uint32_t chunk)
{
	return chunk + 1 == t->place.n_chunks ? t->last_bytes : t->chunk_bytes;
}

/* sw_elems - of so many bytes. */
static inline uint32_t sw_elems(const struct sw_sum_ops *ops, uint32_t bytes)
{
	return bytes >> __builtin_ctz(ops->elem_bytes);
}

/* sw_stensor_acc - where the sum, or the value, of a chunk is made. */
static inline uint8_t *sw_stensor_acc(
	const struct sw_stensor *t, uint32_t round, uint32_t local)
{
	return t->acc[round & 1] + local * t->acc_stride;
}

/* sw_stensor_result - where it is then rounded to; else the same place. */
static inline uint8_t *sw_stensor_result(
	const struct sw_stensor *t, uint32_t round, uint32_t local)
{
	return t->res[round & 1] + local * t->res_stride;
}

/* sw_stensor_apart_stride - from what one member gave to the next one's; not of
 * equal low 12 address bits, at which a sum of many is slow. */
static inline uint64_t sw_stensor_apart_stride(const struct sw_stensor *t)
{
	return t->res_stride + 3 * 64;
}

/* sw_sum_keep - nothing is lent to @s any more: it is copied, or, of a dead
 * one, which nobody gets, left.  False: nothing was. */
static inline bool sw_sum_keep(
	struct sw_shard *sh, const struct sw_open_sum *s, bool is_dead)
{
	if (!*s->lent)
		return false;
	if (!is_dead) /* else it is its sender's again */
		s->ops->put(s->acc, *s->lent, s->n);
	*s->lent = NULL;
	sh->n_lent--;
	return true;
}

/* sw_sum_add - @payload is part of @s.  If it @is_lent and the first, it is not
 * copied: the second writes what both come to. */
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

/* sw_marks_at - where the marks of @member begin, for functions of bitmap.h
 * that end in _in. */
static inline size_t sw_marks_at(const struct sw_stensor *t, uint32_t member)
{
	return (size_t)member * t->mark_stride;
}

/* sw_marks_admit - @t takes its place among the tensors. */
void sw_marks_admit(struct sw_shard *sh, struct sw_stensor *t);

/* sw_marks_forget - it has none any more. */
void sw_marks_forget(struct sw_shard *sh, const struct sw_stensor *t);

/* sw_marks_add, sw_marks_remove - a mark of @member; what is seldom, when its
 * word was zero or is zero then, is done by sw_marks_begin and sw_marks_end. */
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

/* sw_marks_add_all - of members 0 to @n - 1. */
static inline void sw_marks_add_all(
	struct sw_shard *sh, struct sw_stensor *t, uint32_t n, uint32_t local)
{
	uint64_t *word = sw_bitmap_word(&t->marks, local);
	uint64_t bit = 1ULL << local % 64;
	size_t stride = t->mark_stride;
	uint64_t begun = 0;

	for (uint32_t m = 0; m < n; m++, word += stride) {
		begun |= (uint64_t) !*word << m;
		*word |= bit;
	}
	if (begun)
		sw_marks_begin(sh, t, begun, local);
}

/* sw_marks_again - the result was lost on its way. */
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

/* sw_push_check - of a push that is new: SW_PUSH_FOLD if it may be folded.
 * @has_begun: others are in its round. */
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
	return crc == h->payload_crc ? SW_PUSH_FOLD : SW_PUSH_CRC;
}

/* sw_push_note - a push is folded now.  Its member holds the result of the
 * round before: whatever is still marked for it is not needed. */
static inline void sw_push_note(
	struct sw_shard *sh, struct sw_stensor *t, const struct sw_push *p)
{
	sw_marks_remove(sh, t, p->member, p->local);
	t->is_fifo = p->h->flags & SW_FLAG_FIFO;
}

/* sw_marks_drop - nobody is to get a result of @t any more. */
void sw_marks_drop(struct sw_shard *sh, struct sw_stensor *t);

extern const struct sw_rules sw_rules_sync, sw_rules_async, sw_rules_stream;

#endif
