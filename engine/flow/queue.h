/* queue.h - a queue of flows that wait for their turns.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_FLOW_QUEUE_H
#define SW_ENGINE_FLOW_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

struct sw_flow;

/* The place of a flow in a queue. */
struct sw_queued {
	struct sw_queued *next;
	struct sw_flow *flow;
	bool is_waiting;
};

struct sw_queue {
	struct sw_queued *first, *last;
};

static inline void sw_queue_add(
	struct sw_queue *q, struct sw_queued *t, struct sw_flow *f)
{
	*(q->first ? &q->last->next : &q->first) = t;
	q->last = t;
	t->next = NULL;
	t->flow = f;
	t->is_waiting = true;
}

/* sw_queue_first - return the flow that waits longest; NULL: none waits. */
static inline struct sw_flow *sw_queue_first(const struct sw_queue *q)
{
	return q->first ? q->first->flow : NULL;
}

/* sw_queue_take - end the first flow's wait; there must be one. */
static inline void sw_queue_take(struct sw_queue *q)
{
	q->first->is_waiting = false;
	q->first = q->first->next;
}

/* sw_queue_drop - end the wait of a flow, if it waits in @q. */
static inline void sw_queue_drop(struct sw_queue *q, struct sw_queued *t)
{
	struct sw_queued **at = &q->first;

	q->last = NULL;
	while (*at) {
		if (*at == t)
			*at = t->next;
		else
			at = &(q->last = *at)->next;
	}
	t->is_waiting = false;
}

#endif
