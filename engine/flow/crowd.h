/* crowd.h - the flows of one job at one engine, which meet in the same queues.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * One ceiling may limit the flows' grants (flow.h), another one their quanta in
 * flight (fanout.h). Each job has its own ceilings.
 */
#ifndef SW_ENGINE_FLOW_CROWD_H
#define SW_ENGINE_FLOW_CROWD_H

#include "engine/base/bytes.h"
#include "engine/flow/ceiling.h"
#include "engine/flow/queue.h"

/* The ceiling on the quanta that the flows have in flight. */
struct sw_fanout {
	struct sw_ceiling ceiling; /* limits used */
	uint64_t used;    /* quanta in flight, or handed out and not sent */
	uint64_t srtt_ns; /* smoothed over all flows */
	uint64_t at_ns;   /* when the next frame may leave */
	struct sw_queue turns; /* flows that wait to send */
};

/* The part of one flow. */
struct sw_fan {
	struct sw_queued turn;
	uint64_t used;   /* its part of sw_fanout's used */
	uint32_t period; /* last period in which the flow lost frames */
};

struct sw_crowd {
	/* Borrowed: the grants, which list crowds with a ceiling; the engine's
	 * clock. */
	struct sw_grants *grants;
	const uint64_t *now_ns;
	struct sw_flow *flows;
	uint32_t n_flows;
	uint32_t used;     /* with a ceiling: quanta granted, not consumed */
	uint32_t n_behind; /* with a ceiling: flows with a backlog */
	struct sw_ceiling ceiling;
	struct sw_queue turns; /* flows that wait for a grant */
	bool fans_out;         /* a ceiling may limit the quanta in flight */
	struct sw_fanout fanout;
	struct sw_crowd *next; /* next crowd that the grants list */
	bool is_listed;
};

/* sw_crowd_open - begin without flows.
 * @fans_out  a ceiling may limit the flows' quanta in flight */
static inline void sw_crowd_open(struct sw_crowd *c, struct sw_grants *grants,
	bool fans_out, const uint64_t *now_ns)
{
	*c = (struct sw_crowd){
		.grants = grants, .fans_out = fans_out, .now_ns = now_ns};
}

/* sw_crowd_next - return the next crowd with a ceiling; NULL: none.
 * sw_crowd_turns - return the queue of flows that wait for a grant. */
static inline struct sw_crowd *sw_crowd_next(const struct sw_crowd *c)
{
	return c->next;
}

static inline struct sw_queue *sw_crowd_turns(struct sw_crowd *c)
{
	return &c->turns;
}

/* sw_crowd_most - return the limit at which the flows need no ceiling, in
 * quanta, but at most @total. */
static inline uint64_t sw_crowd_most(
	const struct sw_crowd *c, uint32_t frame, uint64_t total)
{
	return sw_min64(
		total, 2 * SW_CEILING_FEW * c->n_flows * (uint64_t)frame);
}

/* sw_crowd_add - add @f to the crowd, until sw_flow_fini.
 * sw_crowd_remove - remove @f from the crowd. */
void sw_crowd_add(struct sw_crowd *c, struct sw_flow *f);
void sw_crowd_remove(struct sw_crowd *c, struct sw_flow *f);

/* sw_crowd_list - list the crowd at its grants if it has a ceiling; else remove
 * it from that list. */
void sw_crowd_list(struct sw_crowd *c);

#endif
