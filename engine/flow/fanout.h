/* fanout.h - many flows of one sender behind one bottleneck.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A sum's result goes to all members at once: a burst that no flow's window
 * knows of. When many of a job's flows lose frames, those whose windows are
 * limited take turns: each gets a frame when less than the ceiling is in
 * flight, at the pace of the ceiling per round-trip time.
 */
#ifndef SW_ENGINE_FLOW_FANOUT_H
#define SW_ENGINE_FLOW_FANOUT_H

#include "engine/flow/crowd.h"

/* sw_fanout_lose - note that a frame was lost that left at @sent_ns. */
void sw_fanout_lose(struct sw_flow *f, uint64_t sent_ns);

/* sw_fanout_settle - note that what is in flight, or the window, has changed;
 * with a ceiling. */
void sw_fanout_settle(struct sw_flow *f);

/* sw_fanout_wait - @f has data. If only the ceiling forbids it to send, it
 * waits for its turn. */
void sw_fanout_wait(struct sw_flow *f);

/* sw_fanout_return - @f has no data: others may have its turn. */
void sw_fanout_return(struct sw_flow *f);

/* sw_fanout_next - let the longest waiting flow send a frame and return it;
 * NULL: none waits, or none may send now. */
struct sw_flow *sw_fanout_next(struct sw_crowd *c);

/* sw_fanout_at - return when to call sw_fanout_next, if nothing is acknowledged
 * before; UINT64_MAX: never. */
uint64_t sw_fanout_at(const struct sw_crowd *c);

/* sw_fanout_leave - forget @f. */
void sw_fanout_leave(struct sw_flow *f);

#endif
