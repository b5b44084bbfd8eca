/* async.h - parameters that the server keeps: asynchronous training.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A chunk of an asynchronous tensor has one value.  The first round is a
 * broadcast of all members, which gives the value and lets them start together;
 * after it a member's rounds are a sequence of its own, in which each adds a
 * delta (or is another broadcast, whose root puts a new value there).  It is
 * answered at once, with a copy of the value as it is when the answer is built,
 * and waits for nobody.
 *
 * A push is folded only if it is the next of its member.  A member has one
 * push of a chunk on its way and pushes again only when it holds the answer,
 * so no delta can be overtaken, lost or folded twice, and what a member gets
 * never goes back: an answer to round r is built before r + 1 is pushed, one to
 * r + 1 after it was folded.
 *
 * BytePS (OSDI'20) section 5; PROTOCOL.md 7.11.
 */
#ifndef SW_ENGINE_SUMS_ASYNC_H
#define SW_ENGINE_SUMS_ASYNC_H

#include "engine/sums/cell.h"
#include "engine/sums/shard.h"

/* A chunk; its bytes are the tensor's acc[0]. */
struct sw_kept {
	uint64_t got;       /* members that took part in the first broadcast */
	uint64_t inflight;  /* members to whom their answer is on its way */
	uint32_t n_updates; /* folded: the first value, deltas, new values */
	uint16_t root;      /* whose bytes the first value is */
	bool is_ready;      /* it is there, and all have asked for it */
	uint32_t last[];    /* round folded last, by member; 0: none */
};

/* sw_kept_bytes - of one chunk, for @n_members. */
static inline uint32_t sw_kept_bytes(uint32_t n_members)
{
	return ((uint32_t)sizeof(struct sw_kept) + 4 * n_members + 7) & ~7u;
}

/* sw_kept_judge_push - what a push of @round by @member is.  Changes nothing.
 */
static inline enum sw_push_verdict sw_kept_judge_push(const struct sw_kept *k,
	uint32_t round, uint32_t member, enum sw_round_kind op)
{
	uint32_t last = k->last[member];

	if (round == last && last)
		return k->is_ready ? SW_PUSH_DONE : SW_PUSH_HAVE;
	if (sw_round_before(round, last + 1))
		return SW_PUSH_OLD;
	if (round != last + 1 || (op == SW_ROUND_SUM && !k->is_ready))
		return SW_PUSH_VIOLATION;
	return SW_PUSH_FOLD;
}

/* sw_kept_judge_query - decide the answer to @member, which waits for @round.
 */
static inline enum sw_query_verdict sw_kept_judge_query(
	const struct sw_kept *k, uint32_t round, uint32_t member)
{
	uint32_t last = k->last[member];

	if (sw_round_before(round, last))
		return SW_QUERY_GONE;
	if (round != last || !last)
		return SW_QUERY_NEED;
	return k->is_ready ? SW_QUERY_RESULT : SW_QUERY_WAIT;
}

/* sw_async_chunk - the chunk with that local index. */
static inline struct sw_kept *sw_async_chunk(
	const struct sw_shard *sh, const struct sw_stensor *t, uint32_t local)
{
	return (struct sw_kept *)(t->records +
				  (size_t)local * sw_kept_bytes(sh->n_members));
}

#endif
