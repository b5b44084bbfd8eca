/* plan_place.h - the server of each stripe by BytePS's hashes.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * These are the functions of BytePS's BYTEPS_KEY_HASH_FN, for comparison with
 * our placement (engine/sched/place.h).  BytePS hashes a stripe's number, and
 * leaves size and balance to chance.
 */
#ifndef SW_APPS_LAB_PLAN_PLACE_H
#define SW_APPS_LAB_PLAN_PLACE_H

#include "engine/sched/place.h"

enum sw_plan_place {
	SW_PLAN_BYTES, /* ours: exact */
	SW_PLAN_NAIVE,
	SW_PLAN_BUILT_IN,
	SW_PLAN_DJB2,
	SW_PLAN_SDBM,
	SW_PLAN_MIXED, /* the shares of Theorem 1 by djb2 modulo 101 */
	SW_N_PLAN_PLACES,
};

const char *sw_plan_place_name(enum sw_plan_place place);

/* sw_plan_owner - return the server of stripe @stripe of the line.  @map must
 * belong to @job. */
uint32_t sw_plan_owner(enum sw_plan_place place, const struct sw_place_job *job,
	const struct sw_place_map *map, uint32_t stripe);

#endif
