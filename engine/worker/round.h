/* round.h - a round of a tensor, from its first request to its end.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_WORKER_ROUND_H
#define SW_ENGINE_WORKER_ROUND_H

#include "engine/base/bits.h"
#include "engine/worker/wtensor.h"

/* sw_round_drop - cancel all work of this lane for a dead round. */
void sw_round_drop(struct sw_worker *w, struct sw_wtensor *t);

/* sw_round_end - end the round for all local ranks that asked for it.
 * sw_rounds_end - end open rounds and collectives when the worker has ended,
 * some in each turn; returns the work done. */
void sw_round_end(struct sw_worker *w, struct sw_wtensor *t, int err);
uint32_t sw_rounds_end(struct sw_worker *w);

/* sw_round_end_some - end the round of a tensor, or the oldest open collective
 * of a stream, with @err; returns an upper bound of the work, n_local. */
uint32_t sw_round_end_some(struct sw_worker *w, struct sw_wtensor *t, int err);

/* --- buffers that are written while the round runs --- */

/* sw_grow_lacks - does the round wait for more of the buffer of @local? */
static inline bool sw_grow_lacks(const struct sw_wtensor *t, uint32_t local)
{
	return t->lacks && sw_bits_has(t->asked, local) &&
	       t->locals[local].lacks;
}

/* sw_granules_held - note that this lane holds @chunk of a growing tensor.
 * sw_granules_tell - in lane 0, call events.summed if a granule was completed
 * since the last call; returns whether it did. */
void sw_granules_held(
	struct sw_worker *w, struct sw_wtensor *t, uint32_t chunk);
bool sw_granules_tell(struct sw_worker *w);

#endif
