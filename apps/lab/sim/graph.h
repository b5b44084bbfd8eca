/* graph.h - rounds of an agent that follow a trace (chakra.h).
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A round executes the whole trace.  A node begins when its dependencies have
 * ended.  Computations run one at a time.  Collectives are called in the order
 * of the trace, because all ranks must agree on it: a ready collective waits
 * for the ones before it.
 */
#ifndef SW_APPS_LAB_SIM_GRAPH_H
#define SW_APPS_LAB_SIM_GRAPH_H

#include <stdint.h>

struct sw_chakra;
struct sw_sim_agent;
struct sw_sim_graph;

/* sw_sim_graph_open - prepare the first round of @t, which is borrowed.
 * sw_sim_graph_reset - return to the state before the first round.
 * sw_sim_graph_close - free it; may be NULL. */
struct sw_sim_graph *sw_sim_graph_open(const struct sw_chakra *t);
void sw_sim_graph_reset(struct sw_sim_graph *g);
void sw_sim_graph_close(struct sw_sim_graph *g);

/* sw_sim_graph_compute - advance like sw_sim_agent_compute.  It calls @call for
 * each collective, numbered from 0 in each round, and @late for the time by
 * which the agent is late in a round.
 * sw_sim_graph_done - note that a collective has completed. */
uint64_t sw_sim_graph_compute(struct sw_sim_agent *a, uint64_t now_ns,
	void (*call)(struct sw_sim_agent *a, uint32_t coll),
	uint64_t (*late)(struct sw_sim_agent *a));
void sw_sim_graph_done(struct sw_sim_graph *g, uint32_t coll);

#endif
