/* fanout.h - many flows of one sender behind one bottleneck.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A server sends a sum's result to all members at once: a burst that no flow's
 * window accounts for. When many of a job's flows lose frames, the flows that a
 * window limits take turns: each may send a frame when less than the ceiling is
 * in flight, at the pace of one ceiling per round-trip time.
 */
#ifndef SW_ENGINE_FLOW_FANOUT_H
#define SW_ENGINE_FLOW_FANOUT_H

#include "engine/flow/crowd.h"

/* sw_fanout_lose - note the loss of a frame that was sent at @sent_ns. */
void sw_fanout_lose(struct sw_flow *f, uint64_t sent_ns);

/* sw_fanout_settle - note that the quanta in flight or the window of @f have
 * changed. Call it only if a ceiling holds. */
void sw_fanout_settle(struct sw_flow *f);

/* sw_fanout_wait - queue @f, which has data, for its turn if only the ceiling
 * forbids it to send. */
void sw_fanout_wait(struct sw_flow *f);

/* sw_fanout_return - let another flow use the turn of @f, which has no data. */
void sw_fanout_return(struct sw_flow *f);

/* sw_fanout_next - let the flow that waits longest send a frame, and return
 * that flow; NULL: none waits, or none may send now. */
struct sw_flow *sw_fanout_next(struct sw_crowd *c);

/* sw_fanout_at - return when to call sw_fanout_next if no ACK arrives before;
 * UINT64_MAX: never. */
uint64_t sw_fanout_at(const struct sw_crowd *c);

/* sw_fanout_leave - remove @f from the turns and from the quanta in flight. */
void sw_fanout_leave(struct sw_flow *f);

#endif
