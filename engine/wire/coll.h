/* coll.h - kinds and operations of collectives, as encoded in frames.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A group is a set of members.  It opens streams; each stream is an ordered
 * sequence of collectives (PROTOCOL.md 13).  The kind of a collective and the
 * root of a chunk, one member, determine which members contribute bytes to the
 * chunk (from) and which members get its result (to). */
#ifndef SW_ENGINE_WIRE_COLL_H
#define SW_ENGINE_WIRE_COLL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/coll_kind.h"
#include "sum/sum.h"

/* Slots of a stream at a server, as powers of two. */
enum { SW_WINDOW_MIN_LOG2 = 4, SW_WINDOW_MAX_LOG2 = 10 };

/* Encode kind and operation in the header's op. SW_PREMUL_SUM travels as
 * SW_SUM, because members multiply by their factors before they push. */
static inline uint8_t sw_coll_op(enum sw_coll_kind kind, uint32_t op)
{
	return (uint8_t)((uint32_t)kind << 4 |
			 (op == SW_PREMUL_SUM ? SW_SUM : op));
}

static inline uint32_t sw_coll_op_of(uint8_t op)
{
	return op & 15;
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

/* sw_coll_from, sw_coll_to - return the members that contribute bytes to a
 * chunk of @root in a group of @members, and the members that get its result.
 * The root of a copy gets no result. */
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

/* Fold src[i] into acc[i], as in sw_sum_ops. */
typedef void sw_fold_fn(void *acc, const void *src, size_t n);

/* sw_coll_fold - return the function of operation @op; NULL: not defined for
 * these elements. */
sw_fold_fn *sw_coll_fold(const struct sw_sum_ops *ops, uint32_t op);

/* sw_coll_has - return whether the combination is valid: kinds that only copy
 * need SW_SUM; bit operations need integers or bool; bool has no SW_AVG and no
 * SW_PREMUL_SUM. */
bool sw_coll_has(
	const struct sw_sum *sum, uint32_t kind, uint32_t op, uint32_t dtype);

/* sw_coll_group_bytes - return the length of the group's name in a stream's
 * name. */
size_t sw_coll_group_bytes(const char *name);

/* sw_coll_last - return the part of a stream's name after the last '/'. */
const char *sw_coll_last(const char *name);

#endif
