/* coll.h - collectives as frames name them: kind, operation, who gives and
 * gets. SPDX-License-Identifier: BSD-3-Clause
 *
 * A group is a set of members; it opens streams, each an ordered sequence of
 * collectives (PROTOCOL.md 13).  Each chunk of a collective has members who
 * give bytes (from) and members who get the result (to), which follow from the
 * kind and from one member, the chunk's root.
 */
#ifndef SW_COLL_H
#define SW_COLL_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/coll_kind.h"

/* Slots of a stream at a server, as powers of two. */
enum { SW_WINDOW_MIN_LOG2 = 4, SW_WINDOW_MAX_LOG2 = 14 };

/* In the header: kind and operation in one byte. */
static inline uint8_t sw_coll_op(enum sw_coll_kind kind, uint32_t operation)
{
	return (uint8_t)((uint32_t)kind << 4 | operation);
}

static inline enum sw_coll_kind sw_coll_kind_of(uint8_t op)
{
	return (enum sw_coll_kind)(op >> 4);
}

static inline bool sw_coll_is_sum(enum sw_coll_kind kind)
{
	return kind == SW_ALL_REDUCE || kind == SW_REDUCE_SCATTER ||
	       kind == SW_REDUCE || kind == SW_BARRIER;
}

/* sw_coll_from, sw_coll_to - of a chunk of @root in a group of @members.  Who
 * gave the only bytes needs no result. */
static inline uint64_t sw_coll_from(
	enum sw_coll_kind kind, uint64_t members, uint32_t root)
{
	return sw_coll_is_sum(kind) ? members : 1ULL << root;
}

static inline uint64_t sw_coll_to(
	enum sw_coll_kind kind, uint64_t members, uint32_t root)
{
	if (kind == SW_ALL_REDUCE || kind == SW_BARRIER)
		return members;
	return sw_coll_is_sum(kind) ? 1ULL << root : members & ~(1ULL << root);
}

/* sw_coll_name - "all_reduce", …, for messages. */
const char *sw_coll_name(uint32_t kind);

#endif
