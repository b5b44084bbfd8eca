/* async.h - parameters that the server keeps: asynchronous training.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A chunk of an asynchronous tensor has one value. The first round is a
 * broadcast of all members, which sets the value and lets them start together.
 * After it, each member counts its own rounds. Each round adds a delta, or is a
 * broadcast whose root sets a new value. The server answers at once, with a
 * copy of the value when it builds the answer.
 *
 * The server folds only the next round of a member. A member has one push per
 * chunk in flight and pushes again only when it holds the answer. So no delta
 * is overtaken, lost or folded twice, and a member never receives an older
 * value after a newer one: the server builds the answer to round r before the
 * member pushes r + 1, and the answer to r + 1 after it has folded r + 1.
 *
 * BytePS (OSDI'20) section 5; PROTOCOL.md 7.11.
 */
#ifndef SW_ENGINE_SUMS_ASYNC_H
#define SW_ENGINE_SUMS_ASYNC_H

#include "engine/sums/cell.h"
#include "engine/sums/shard.h"

/* State of one chunk; its value lies in the tensor's acc[0]. */
struct sw_kept {
	uint64_t got;       /* members that have pushed the first broadcast */
	uint64_t inflight;  /* members whose answer is in flight */
	uint32_t n_updates; /* values and deltas folded */
	uint16_t root;      /* root of the first broadcast */
	bool is_ready;      /* first broadcast is complete */
	uint32_t last[];    /* last round folded, by member; 0: none */
};

/* sw_kept_bytes - return the bytes of one chunk's record for @n_members. */
static inline uint32_t sw_kept_bytes(uint32_t n_members)
{
	return ((uint32_t)sizeof(struct sw_kept) + 4 * n_members + 7) & ~7u;
}

/* sw_kept_judge_push - judge a push of @round by @member. Changes nothing. */
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

/* sw_kept_judge_query - judge the query of @member, which waits for @round. */
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

/* sw_async_chunk - return the record of the chunk with local index @local. */
static inline struct sw_kept *sw_async_chunk(
	const struct sw_shard *sh, const struct sw_stensor *t, uint32_t local)
{
	return (struct sw_kept *)(t->records +
				  (size_t)local * sw_kept_bytes(sh->n_members));
}

#endif
