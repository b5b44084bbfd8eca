/* coll.c - the names of the kinds of collectives.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/wire/coll.h"

const char *sw_coll_name(uint32_t kind)
{
	static const char *const names[] = {"push_pull", "all_reduce",
		"reduce_scatter", "all_gather", "broadcast", "reduce",
		"barrier"};

	return kind < SW_N_COLL_KINDS ? names[kind] : "an unknown collective";
}
