/* lanes.h - the news between the lanes of a worker (lane.h).
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_WORKER_LANES_H
#define SW_ENGINE_WORKER_LANES_H

#include "engine/worker/wtensor.h"

/* sw_lane_take_commands - in another lane, take commands of lane 0.
 * sw_lane_take_reports - in lane 0, take reports of @lane.  Both take some and
 * return the work done. */
uint32_t sw_lane_take_commands(struct sw_worker *w);
uint32_t sw_lane_take_reports(struct sw_worker *w, uint32_t lane);

/* sw_lanes_command - set bits at all other lanes, in lane 0.
 * sw_lane_report - set bits at lane 0, in another lane. */
static inline void sw_lanes_command(struct sw_worker *w, uint32_t bits)
{
	for (uint32_t i = 0; i < w->n_others; i++)
		atomic_fetch_or(&w->lanes[i].commands.bits, bits);
}

static inline void sw_lane_report(struct sw_worker *w, uint32_t bits)
{
	atomic_fetch_or(&w->lanes->reports.bits, bits);
}

/* sw_lanes_tell - in lane 0, raise a tensor's flag at @lanes, a bit each, after
 * a word of the tensor has changed.
 * sw_lane_tell - raise the flag: in lane 0 at all other lanes, in another lane
 * at lane 0. */
static inline void sw_lanes_tell(
	struct sw_worker *w, const struct sw_wtensor *t, uint32_t lanes)
{
	for (; lanes; lanes &= lanes - 1)
		sw_flags_raise(&w->lanes[__builtin_ctz(lanes)].commands.tensors,
			t->index);
}

static inline void sw_lane_tell(struct sw_worker *w, const struct sw_wtensor *t)
{
	if (w->lane_i)
		sw_flags_raise(&w->lanes->reports.tensors, t->index);
	else
		sw_lanes_tell(w, t, (1u << w->n_others) - 1);
}

#endif
