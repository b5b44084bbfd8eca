/* lanes.h - an agent's worker on one lcore or several.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_LAB_SIM_LANES_H
#define SW_APPS_LAB_SIM_LANES_H

#include <stdint.h>

#include "engine/worker/worker.h"

struct sw_sim_agent;
struct sw_sim_node;

/* sw_sim_lanes_new - allocate memory for the worker of a->n_lanes lanes.
 * sw_sim_lanes_free - free it. */
void sw_sim_lanes_new(struct sw_sim_agent *a);
void sw_sim_lanes_free(struct sw_sim_agent *a);

/* sw_sim_lanes_open - open all lanes, each on its core of the node.  Lane 0
 * takes its turns in the node's own step.  Fills in @wj's lanes.  Errors: as
 * sw_worker_open. */
int sw_sim_lanes_open(struct sw_sim_agent *a,
	const struct sw_worker_events *events, struct sw_worker_job *wj);

/* sw_sim_lanes_close - close all lanes. */
void sw_sim_lanes_close(struct sw_sim_agent *a);

/* sw_sim_lanes_declare - declare tensors or streams in all lanes.  Returns as
 * sw_worker_declare; after SW_EAGAIN call it again with the same ones. */
int sw_sim_lanes_declare(
	struct sw_sim_agent *a, const struct sw_worker_tensor *all, uint32_t n);

/* sw_sim_lanes_poke - wake the lanes for which lane 0 has commands. */
void sw_sim_lanes_poke(struct sw_sim_agent *a);

#endif
