/* graph.c - rounds of an agent that follow a trace (chakra.h).
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/sim/graph.h"

#include <stdlib.h>
#include <string.h>

#include "apps/lab/array.h"
#include "apps/lab/sim/chakra.h"
#include "apps/lab/sim/sim.h"

struct sw_sim_graph {
	const struct sw_chakra *trace;
	/* Nodes that depend on a node: after[first[i]] to after[first[i + 1]].
	 */
	uint32_t *first, *after;
	uint32_t *colls;  /* nodes of the collectives */
	uint32_t *n_deps; /* by node: unfinished dependencies */
	/* computations, in the order in which they became ready */
	uint32_t *ready;
	uint32_t n_ready, n_begun, n_called, n_left;
};

/* Reverse the dependencies. */
static void link_nodes(struct sw_sim_graph *g)
{
	const struct sw_chakra *t = g->trace;
	uint32_t *at = sw_lab_array(t->n_nodes + 1, sizeof(*at)), n_colls = 0;

	for (uint32_t d = 0; d < t->n_deps; d++)
		g->first[t->deps[d] + 1]++;
	for (uint32_t i = 0; i < t->n_nodes; i++)
		g->first[i + 1] += g->first[i];
	memcpy(at, g->first, t->n_nodes * sizeof(*at));
	for (uint32_t i = 0; i < t->n_nodes; i++) {
		const struct sw_chakra_node *n = &t->nodes[i];

		for (uint32_t d = n->first_dep; d < n->first_dep + n->n_deps;
			d++)
			g->after[at[t->deps[d]]++] = i;
		if (n->kind)
			g->colls[n_colls++] = i;
	}
	free(at);
}

struct sw_sim_graph *sw_sim_graph_open(const struct sw_chakra *t)
{
	struct sw_sim_graph *g = sw_lab_array(1, sizeof(*g));

	g->trace = t;
	g->first = sw_lab_array(t->n_nodes + 1, sizeof(*g->first));
	g->after = sw_lab_array(t->n_deps, sizeof(*g->after));
	g->colls = sw_lab_array(t->n_colls, sizeof(*g->colls));
	g->n_deps = sw_lab_array(t->n_nodes, sizeof(*g->n_deps));
	g->ready = sw_lab_array(t->n_nodes, sizeof(*g->ready));
	link_nodes(g);
	return g;
}

void sw_sim_graph_reset(struct sw_sim_graph *g)
{
	g->n_left = 0;
}

void sw_sim_graph_close(struct sw_sim_graph *g)
{
	if (!g)
		return;
	free(g->first);
	free(g->after);
	free(g->colls);
	free(g->n_deps);
	free(g->ready);
	free(g);
}

static void look(struct sw_sim_graph *g, uint32_t node)
{
	if (!g->n_deps[node] && !g->trace->nodes[node].kind)
		g->ready[g->n_ready++] = node;
}

static void begin_round(struct sw_sim_graph *g)
{
	const struct sw_chakra *t = g->trace;

	g->n_left = t->n_nodes;
	g->n_ready = g->n_begun = g->n_called = 0;
	for (uint32_t i = 0; i < t->n_nodes; i++) {
		g->n_deps[i] = t->nodes[i].n_deps;
		look(g, i);
	}
}

static void end_node(struct sw_sim_graph *g, uint32_t node)
{
	g->n_left--;
	for (uint32_t i = g->first[node]; i < g->first[node + 1]; i++) {
		g->n_deps[g->after[i]]--;
		look(g, g->after[i]);
	}
}

void sw_sim_graph_done(struct sw_sim_graph *g, uint32_t coll)
{
	end_node(g, g->colls[coll]);
}

/* Call the ready collectives.  Returns whether it called any. */
static bool call_ready(struct sw_sim_agent *a,
	void (*call)(struct sw_sim_agent *a, uint32_t coll))
{
	struct sw_sim_graph *g = a->graph;
	uint32_t before = g->n_called;

	while (g->n_called < g->trace->n_colls &&
		!g->n_deps[g->colls[g->n_called]])
		call(a, g->n_called++);
	return g->n_called > before;
}

/* Compute the next node.  Returns false if none is ready. */
static bool compute_next(struct sw_sim_agent *a, uint64_t now_ns,
	uint64_t (*late)(struct sw_sim_agent *a))
{
	struct sw_sim_graph *g = a->graph;

	if (g->n_begun == g->n_ready)
		return false;
	a->is_computing = true;
	a->stage_begin_ns = now_ns;
	a->stage_end_ns =
		now_ns + g->trace->nodes[g->ready[g->n_begun++]].duration_ns;
	if (g->n_begun == 1)
		a->stage_end_ns += late(a);
	return true;
}

static void end_stage(struct sw_sim_agent *a)
{
	uint32_t node = a->graph->ready[a->graph->n_begun - 1];

	a->is_computing = false;
	if (a->job->sim->trace.to && a->stage_end_ns > a->stage_begin_ns)
		sw_sim_perfetto_stage(&a->job->sim->trace, a, "node",
			a->graph->trace->nodes[node].id);
	end_node(a->graph, node);
}

uint64_t sw_sim_graph_compute(struct sw_sim_agent *a, uint64_t now_ns,
	void (*call)(struct sw_sim_agent *a, uint32_t coll),
	uint64_t (*late)(struct sw_sim_agent *a))
{
	struct sw_sim_graph *g = a->graph;
	bool has_called = false;

	for (;;) {
		if (!g->n_left && a->round == a->job->stop_round)
			return has_called ? now_ns : UINT64_MAX;
		if (!g->n_left)
			begin_round(g);
		if (a->is_computing && a->stage_end_ns <= now_ns)
			end_stage(a);
		has_called |= call_ready(a, call);
		if (!g->n_left) {
			a->round++;
			continue;
		}
		if (!a->is_computing && !compute_next(a, now_ns, late))
			return has_called ? now_ns : UINT64_MAX;
		if (a->stage_end_ns > now_ns)
			return has_called ? now_ns : a->stage_end_ns;
	}
}
