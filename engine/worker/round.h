/* round.h - a round of a tensor, from what is asked for to what is sent.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ROUND_H
#define SW_ROUND_H

#include "engine/worker/link.h"
#include "engine/worker/tensor.h"

/* --- todo.c: what each link has to push, what it waits for --- */

enum { SW_ORDERS = 2 * SW_TENSORS }; /* engine/sched/order.h */

/* sw_link_refresh - put the link into the set of its most urgent push that it
 * has credit for.  Within a class the more urgent tensor goes first, and the
 * links of one tensor go by how far each is with its part: so a server with
 * the larger share gets the larger share of the port, and all get their last
 * chunk at the same time. */
void sw_link_refresh(struct sw_worker *w, struct sw_link *l);

/* What a chunk waits for: to be pushed, again if it has been sent; for its
 * result, although its push was acknowledged; nothing.  sw_link_refresh is to
 * follow. */
void sw_todo_push(struct sw_worker *w, struct sw_wtensor *t, uint32_t chunk);
void sw_todo_wait(struct sw_worker *w, struct sw_wtensor *t, uint32_t chunk);
void sw_todo_nothing(struct sw_worker *w, struct sw_wtensor *t, uint32_t chunk);

/* sw_todo_drop - no chunk of the tensor waits for anything. */
void sw_todo_drop(struct sw_worker *w, struct sw_wtensor *t);

/* sw_todo_order - number all tensors by (priority, index), and the sets of the
 * links with them; the first @n are in order. */
void sw_todo_order(struct sw_worker *w, uint32_t n);

/* sw_todo_take_place - the tensor goes by priority, or behind all that are
 * ready.  Its chunks wait for nothing. */
void sw_todo_take_place(struct sw_worker *w, struct sw_wtensor *t);

/* --- round.c --- */

/* sw_round_start - all local ranks have asked for it: count it, let the other
 * lanes begin it, give what this lane has of it to the scheduler. */
void sw_round_start(struct sw_worker *w, struct sw_wtensor *t);

/* sw_round_folded - a chunk's push has arrived for good: its credit comes back.
 * sw_sched_run is to follow. */
void sw_round_folded(struct sw_worker *w, struct sw_wtensor *t, uint32_t chunk);

/* sw_round_held - this lane holds all its chunks; sw_round_lane_done - another
 * lane does. */
void sw_round_held(struct sw_worker *w, struct sw_wtensor *t);
void sw_round_lane_done(
	struct sw_worker *w, const struct sw_lane_report *report);

/* sw_round_drop - it is dead: this lane has nothing to do with it any more. */
void sw_round_drop(struct sw_worker *w, struct sw_wtensor *t);

/* sw_round_end - it ends, for all who asked; sw_round_end_all - all that are
 * open do. */
void sw_round_end(struct sw_worker *w, struct sw_wtensor *t, int err);
void sw_round_end_all(struct sw_worker *w, int err);

/* Local ranks that have not asked for the open round. */
static inline uint64_t sw_round_lacks(
	const struct sw_worker *w, const struct sw_wtensor *t)
{
	return ~0ULL >> (64 - w->n_local) & ~t->asked;
}

/* --- stall.c --- */

/* sw_stall_tick - say what stands still: one line, once in a while. */
void sw_stall_tick(struct sw_worker *w);

#endif
