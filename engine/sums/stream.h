/* stream.h - the window of a stream: judge pushes and queries of its slots.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * On one server, a stream is a sequence of chunks: the pieces of all its
 * collectives that lie there, in order, numbered from 1 (modulo 2^32). Its
 * window has W slots; chunk j uses slot j mod W.
 *
 * A chunk is ready when all members that give bytes (from) have pushed, and
 * done when all members that get the result (to) have acknowledged it. All
 * chunks below base are done. A member pushes chunk j only when it knows of a
 * base with j < base + W. So chunk j - W is done, all its receivers have its
 * result, and the slot may be overwritten. A member that gives nothing pushes
 * no bytes, which asks for the result; a WANT stands for many such pushes.
 *
 * So the window bounds the memory for collectives of any size. The server
 * acknowledges nothing before it is folded. A chunk number is ambiguous only
 * for a frame that is late by 2^31 chunks (PROTOCOL.md 13).
 *
 * The rules are independent of frames, time and memory; test/model/ checks the
 * same rules.
 */
#ifndef SW_ENGINE_SUMS_STREAM_H
#define SW_ENGINE_SUMS_STREAM_H

#include "engine/sums/cell.h"
#include "engine/wire/coll.h"

struct sw_slot {
	_Alignas(64) uint64_t got; /* members that have pushed */
	uint64_t held;     /* members that have acknowledged the result */
	uint64_t inflight; /* members with the result in flight */
	uint32_t chunk;    /* number j; 0: never used */
	uint32_t number;   /* number of its collective in the group */
	uint32_t crc;    /* of the result when ready; its era once encrypted */
	uint16_t weight; /* ranks that have contributed */
	uint16_t bytes;  /* payload bytes; 0: none have arrived */
	uint16_t tag;    /* tag of the collective's size */
	uint8_t root, dtype, op;
	bool is_ready : 1;
	bool is_done : 1;
	bool has_crc : 1;    /* crc is that of the copied PUSH */
	bool is_sealed : 1;  /* ready, and encrypted where it lies */
	const uint8_t *lent; /* as in struct sw_chunk; its sender waits for the
				result */
};

_Static_assert(sizeof(struct sw_slot) == 64, "one cache line");

static inline uint64_t sw_slot_from(const struct sw_slot *s, uint64_t members)
{
	return sw_coll_from(sw_coll_kind_of(s->op), members, s->root);
}

static inline uint64_t sw_slot_to(const struct sw_slot *s, uint64_t members)
{
	return sw_coll_to(sw_coll_kind_of(s->op), members, s->root);
}

/* sw_slot_judge_push - judge a push of chunk @j by @member; @s is its slot.
 * Changes nothing. */
static inline enum sw_push_verdict sw_slot_judge_push(const struct sw_slot *s,
	uint32_t base, uint32_t window, uint32_t j, uint32_t member)
{
	if (sw_round_before(j, base))
		return SW_PUSH_OLD;
	if (j - base >= window)
		return SW_PUSH_VIOLATION;
	if (s->chunk != j || !(s->got >> member & 1))
		return SW_PUSH_FOLD;
	return s->is_ready ? SW_PUSH_DONE : SW_PUSH_HAVE;
}

/* sw_slot_judge_query - judge the query of @member, which waits for chunk @j.
 */
static inline enum sw_query_verdict sw_slot_judge_query(const struct sw_slot *s,
	uint64_t members, uint32_t base, uint32_t j, uint32_t member)
{
	if (sw_round_before(j, base))
		return SW_QUERY_GONE;
	if (s->chunk != j || !(s->got >> member & 1))
		return SW_QUERY_NEED;
	if (!s->is_ready)
		return SW_QUERY_WAIT;
	return sw_slot_to(s, members) & ~s->held & 1ULL << member
		       ? SW_QUERY_RESULT
		       : SW_QUERY_GONE;
}

/* sw_slot_note - note that a push of @member was folded. Returns whether that
 * makes the chunk ready. */
static inline bool sw_slot_note(
	struct sw_slot *s, uint64_t members, uint32_t member, uint16_t weight)
{
	uint64_t from = sw_slot_from(s, members);

	s->got |= 1ULL << member;
	s->weight += weight;
	if (s->is_ready || (s->got & from) != from)
		return false;
	s->is_ready = true;
	return true;
}

#endif
