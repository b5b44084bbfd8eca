/* lanes.c - an agent's worker on one lcore or several.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/sim/lanes.h"

#include <stdlib.h>

#include "apps/lab/array.h"
#include "apps/lab/sim/sim.h"

/* The core of a lane. */
struct sw_sim_lane_core {
	struct sw_sim_agent *agent;
	uint32_t lane_i;
};

void sw_sim_lanes_new(struct sw_sim_agent *a)
{
	a->worker = sw_lab_array(a->n_lanes, sizeof(*a->worker));
	a->lanes = sw_lab_array(a->n_lanes, sizeof(*a->lanes));
	a->cores = sw_lab_array(a->n_lanes, sizeof(*a->cores));
}

void sw_sim_lanes_free(struct sw_sim_agent *a)
{
	free(a->worker);
	free(a->lanes);
	free(a->cores);
}

/* Take the lane's commands, and wake lane 0's node if the lane has reports.
 * Called after each turn of an lcore other than the first. */
static uint64_t step(void *ctx, uint64_t now_ns)
{
	const struct sw_sim_lane_core *c = ctx;
	struct sw_sim_agent *a = c->agent;

	(void)now_ns;
	if (sw_worker_take(&a->worker[c->lane_i]))
		sw_loop_look(sw_sim_core(a->node, c->lane_i)->loop);
	if (sw_lane_has_reports(&a->lanes[c->lane_i - 1]))
		sw_sim_node_poke(a->node);
	return UINT64_MAX;
}

static int open_lane(struct sw_sim_agent *a, uint32_t i,
	const struct sw_worker_events *events, struct sw_worker_job *wj)
{
	struct sw_sim *s = a->job->sim;
	struct sw_sim_node *core = sw_sim_core(a->node, i);
	int err;

	wj->lane_i = (uint8_t)i;
	if (i)
		sw_lane_init(&a->lanes[i - 1], a->worker);
	err = sw_worker_open(&a->worker[i], &a->job->params, &s->env, events,
		wj, core->ports, core->n_ports, s->net.now_ns);
	if (err)
		return err;
	if (i) {
		a->cores[i] = (struct sw_sim_lane_core){a, i};
		core->step = step;
		core->ctx = &a->cores[i];
	}
	sw_loop_set(
		core->loop, a->endpoint + i, sw_worker_engine(&a->worker[i]));
	sw_sim_node_poke(core);
	return 0;
}

int sw_sim_lanes_open(struct sw_sim_agent *a,
	const struct sw_worker_events *events, struct sw_worker_job *wj)
{
	int err = 0;

	a->n_built = 0;
	wj->n_lanes = (uint8_t)a->n_lanes;
	wj->lanes = a->lanes;
	for (uint32_t i = 0; i < a->n_lanes && !err; i++)
		err = open_lane(a, i, events, wj);
	return err;
}

void sw_sim_lanes_close(struct sw_sim_agent *a)
{
	/* Lane 0 is last, because the other lanes read its memory. */
	for (uint32_t i = a->n_lanes; i--;) {
		if (a->is_open)
			sw_loop_set(sw_sim_core(a->node, i)->loop,
				a->endpoint + i, NULL);
		sw_worker_close(&a->worker[i]);
	}
}

int sw_sim_lanes_declare(
	struct sw_sim_agent *a, const struct sw_worker_tensor *all, uint32_t n)
{
	for (; a->n_built < a->n_lanes; a->n_built++) {
		int err = sw_worker_build(&a->worker[a->n_built], all, n);

		if (err)
			return err;
	}
	a->n_built = 0;
	return sw_worker_add(a->worker);
}

void sw_sim_lanes_poke(struct sw_sim_agent *a)
{
	for (uint32_t i = 1; i < a->n_lanes; i++)
		if (sw_lane_has_commands(&a->lanes[i - 1]))
			sw_sim_node_poke(sw_sim_core(a->node, i));
}
