/* coll_kind.h - the kinds of collectives and their operations, by name.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_BASE_COLL_KIND_H
#define SW_ENGINE_BASE_COLL_KIND_H

#include <stdint.h>

/* The codes of both enums are part of the wire and of the client interface. */
enum sw_coll_kind {
	SW_COLL_NONE, /* a tensor's push_pull or broadcast */
	SW_ALL_REDUCE,
	SW_REDUCE_SCATTER,
	SW_ALL_GATHER,
	SW_BCAST,
	SW_REDUCE,
	SW_BARRIER, /* an all_reduce of a byte each */
	SW_N_COLL_KINDS,
};

/* Operations on the members' elements; sumwire/coll.h defines them. */
enum sw_reduce_op {
	SW_SUM,
	SW_AVG,
	SW_MIN,
	SW_MAX,
	SW_PROD,
	SW_BAND,
	SW_BOR,
	SW_BXOR,
	SW_PREMUL_SUM, /* SW_SUM on the wire */
	SW_N_REDUCE_OPS,
};

/* sw_coll_name - return "all_reduce", …; "?" for an unused code. Static text.
 */
static inline const char *sw_coll_name(uint32_t kind)
{
	static const char *const names[SW_N_COLL_KINDS] = {"push_pull",
		"all_reduce", "reduce_scatter", "all_gather", "broadcast",
		"reduce", "barrier"};

	return kind < SW_N_COLL_KINDS ? names[kind] : "?";
}

/* sw_reduce_op_name - return "sum", …; "?" for an unused code. Static text. */
static inline const char *sw_reduce_op_name(uint32_t op)
{
	static const char *const names[SW_N_REDUCE_OPS] = {"sum", "avg", "min",
		"max", "prod", "band", "bor", "bxor", "premul_sum"};

	return op < SW_N_REDUCE_OPS ? names[op] : "?";
}

#endif
