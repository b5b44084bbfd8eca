/* lanes.h - what a lane says to the others and, lane 0, to the user.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_LANES_H
#define SW_LANES_H

#include "engine/worker/tensor.h"

/* sw_lanes_others - how many lanes hear what this one orders. */
static inline uint32_t sw_lanes_others(const struct sw_worker *w)
{
	return w->lane_i ? 0 : w->n_lanes - 1;
}

/* sw_lane_say - tell the user of a state or a line; from another lane through
 * lane 0. */
void sw_lane_say(struct sw_worker *w, int err, const char *text);

/* sw_lane_admitted - all tensors are admitted: in all lanes, as lane 0 says to
 * the user; in this one, as another says to lane 0. */
void sw_lane_admitted(struct sw_worker *w);

/* Lane 0 to all others: the job runs; tensors have keys; a round begins
 * (returns how many lanes have chunks of it); other knobs; the job ends. */
void sw_lanes_start(struct sw_worker *w);
void sw_lanes_declare(struct sw_worker *w);
uint32_t sw_lanes_begin(struct sw_worker *w, const struct sw_wtensor *t);
void sw_lanes_set_knobs(
	struct sw_worker *w, uint64_t part_bytes, uint64_t credit_bytes);
void sw_lanes_leave(struct sw_worker *w);

/* sw_lane_dead - a tensor is dead: lane 0 to all others, another to lane 0. */
void sw_lane_dead(struct sw_worker *w, const struct sw_wtensor *t);

/* sw_lane_done - another lane than 0 holds all its chunks of a round. */
void sw_lane_done(struct sw_worker *w, const struct sw_wtensor *t);

#endif
