/* crowd.h - the flows of one job at one engine, which meet in the same queues.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * One ceiling may hold for what they are granted (flow.h), another one for what
 * they have in flight (fanout.h). Other jobs have ceilings of their own.
 */
#ifndef SW_ENGINE_FLOW_CROWD_H
#define SW_ENGINE_FLOW_CROWD_H

#include "engine/base/bytes.h"
#include "engine/flow/ceiling.h"
#include "engine/flow/queue.h"

/* The flows share a ceiling for what they have in flight. */
struct sw_fanout {
	struct sw_ceiling ceiling; /* of used */
	uint64_t used;    /* quanta in flight, or handed out and not sent */
	uint64_t srtt_ns; /* of all flows */
	uint64_t at_ns;   /* when the next frame may leave */
	struct sw_queue turns; /* to send */
};

/* The part of one flow. */
struct sw_fan {
	struct sw_queued turn;
	uint64_t used;   /* part of all */
	uint32_t period; /* the last one in which it lost frames */
};

struct sw_crowd {
	/* Borrowed: the grants, which list crowds with a ceiling; the engine's
	 * clock. */
	struct sw_grants *grants;
	const uint64_t *now_ns;
	struct sw_flow *flows;
	uint32_t n_flows;
	uint32_t used;     /* under the ceiling: granted and not consumed */
	uint32_t n_behind; /* likewise: flows with a backlog */
	struct sw_ceiling ceiling;
	struct sw_queue turns; /* to receive a grant */
	bool fans_out;         /* so has what they have in flight */
	struct sw_fanout fanout;
	struct sw_crowd *next; /* of those listed */
	bool is_listed;
};

/* sw_crowd_open - begin without flows.
 * @fans_out  a ceiling may hold for what they have in flight */
static inline void sw_crowd_open(struct sw_crowd *c, struct sw_grants *grants,
	bool fans_out, const uint64_t *now_ns)
{
	*c = (struct sw_crowd){
		.grants = grants, .fans_out = fans_out, .now_ns = now_ns};
}

/* sw_crowd_next - return the next one with a ceiling; NULL: none.
 * sw_crowd_turns - return the queue for its grants. */
static inline struct sw_crowd *sw_crowd_next(const struct sw_crowd *c)
{
	return c->next;
}

static inline struct sw_queue *sw_crowd_turns(struct sw_crowd *c)
{
	return &c->turns;
}

/* sw_crowd_most - return the quanta from which on no ceiling is needed, at most
 * @total. */
static inline uint64_t sw_crowd_most(
	const struct sw_crowd *c, uint32_t frame, uint64_t total)
{
	return sw_min64(
		total, 2 * SW_CEILING_FEW * c->n_flows * (uint64_t)frame);
}

/* sw_crowd_add - make @f one of them until sw_flow_fini.
 * sw_crowd_remove - take it out. */
void sw_crowd_add(struct sw_crowd *c, struct sw_flow *f);
void sw_crowd_remove(struct sw_crowd *c, struct sw_flow *f);

/* sw_crowd_list - begin or cease to be listed, as ceilings have it. */
void sw_crowd_list(struct sw_crowd *c);

#endif
