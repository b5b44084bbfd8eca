/* jobs.c - the agents and servers of a description, and their memory.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/cli/params.h"
#include "apps/lab/array.h"
#include "apps/lab/model.h"
#include "apps/lab/sim/lanes.h"
#include "apps/lab/sim/sim.h"
#include "conf/value.h"
#include "engine/base/bytes.h"
#include "engine/base/error.h"

enum {
	ALIGN = 64,
	/* f32 holds this many rounds of values up to 255 exactly */
	EXACT_ROUNDS = 65000,
	SURELY = 1000000, /* certainty, in parts per million */
};

/* Largest size of a tensor in bytes, and time of a layer in ns. */
static const uint64_t VALUE_MOST = 1ULL << 32;

/* Allocate zeros.  A large block of calloc has pages that take no memory until
 * they are written. */
void *sw_sim_memory(uint64_t bytes)
{
	uint8_t *mem = calloc(1, bytes + 2 * ALIGN);
	uint8_t *at;

	if (!mem)
		return NULL;
	at = mem + ALIGN + ALIGN - (uintptr_t)mem % ALIGN;
	memcpy(at - sizeof(mem), &mem, sizeof(mem));
	return at;
}

void sw_sim_memory_free(void *at)
{
	void *mem;

	if (!at)
		return;
	memcpy(&mem, (uint8_t *)at - sizeof(mem), sizeof(mem));
	free(mem);
}

/* --- the nodes of a job --- */

static bool is_among(uint32_t node, const uint32_t *nodes, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (nodes[i] == node)
			return true;
	return false;
}

static int refuse(
	struct sw_sim *s, const struct sw_sim_desc_job *d, const char *what)
{
	snprintf(s->why, sizeof(s->why), "[job %s] %s", d->label, what);
	return SW_ECONF;
}

/* Check a list of servers: those on the agents' machines must come last, and be
 * on all of these machines or on none. */
int sw_sim_servers_check(const struct sw_sim_job *j, const uint32_t *servers,
	uint32_t n, uint32_t *n_colocated)
{
	const struct sw_sim_desc_job *d = j->desc;

	*n_colocated = 0;
	if (n * d->job.server_lcores > SW_MAX_SERVERS)
		return refuse(j->sim, d,
			"servers: with their server_lcores, a job has at most "
			"128");
	if (d->agent.lcores > n * d->job.server_lcores)
		return refuse(j->sim, d,
			"lcores: each lcore of an agent needs a server lcore "
			"of "
			"its own, and there are fewer");
	for (uint32_t i = 0; i < n; i++)
		if (is_among(servers[i], j->nodes, j->n_agents))
			++*n_colocated;
		else if (*n_colocated)
			return refuse(j->sim, d,
				"servers: list servers on nodes of agents "
				"last");
	if (*n_colocated && d->agent.lcores > 1)
		return refuse(j->sim, d,
			"lcores: more than 1 needs nodes without servers");
	if (*n_colocated && *n_colocated != j->n_agents)
		return refuse(j->sim, d,
			"servers: on all nodes of agents, or on none");
	return 0;
}

static int check_agents(const struct sw_sim_job *j, const uint32_t *agents)
{
	const struct sw_sim_desc_job *d = j->desc;

	if (j->n_agents > SW_MAX_MEMBERS)
		return refuse(j->sim, d, "agents: a job has at most 64");
	for (uint32_t i = 0; i < j->n_agents; i++) {
		if (is_among(agents[i], agents, i))
			return refuse(j->sim, d,
				"agents: the list names a node twice");
		if (j->sim->net.nodes[agents[i]].step)
			return refuse(j->sim, d,
				"agents: a node has an agent of another job");
	}
	return 0;
}

/* --- tensors --- */

static void one_layer(struct sw_sim_job *j)
{
	j->layers = sw_lab_array(1, sizeof(*j->layers));
	j->n_layers = 1;
	j->layers[0] = (struct sw_sim_layer){
		.forward_ns = j->desc->compute_ns, .n = j->n_tensors};
}

/* Take the next value of a list.  Returns false if it is no value of @unit from
 * @min on. */
static bool take_value(const char **s, enum sw_unit unit, uint64_t min,
	uint64_t *out, char one[64])
{
	char why[SW_SIM_TEXT];
	size_t n;

	*s += strspn(*s, " \t");
	n = strcspn(*s, ",");
	snprintf(one, 64, "%.*s", (int)n, *s);
	one[strcspn(one, " \t")] = '\0';
	*s += n;
	*s += **s == ',';
	return !sw_value_parse(one, unit, out, why, sizeof(why)) &&
	       *out >= min && *out <= VALUE_MOST;
}

/* Take the times of one pass. */
static int take_times(
	struct sw_sim_job *j, const char *key, const char *s, bool is_forward)
{
	for (uint32_t i = 0; i < j->n_layers; i++) {
		char one[64];
		uint64_t ns;

		if (!take_value(&s, SW_UNIT_TIME, 0, &ns, one)) {
			snprintf(j->sim->why, sizeof(j->sim->why),
				"[job %s] %s: a time for each of %u sizes, not "
				"\"%.40s\"",
				j->desc->label, key, j->n_layers, one);
			return SW_ECONF;
		}
		*(is_forward ? &j->layers[i].forward_ns
			     : &j->layers[i].backward_ns) = ns;
	}
	return 0;
}

/* Take the layers.  With times, each size is a separate layer. */
static int take_layers(struct sw_sim_job *j)
{
	int err;

	if (!*j->desc->forward && !*j->desc->backward) {
		one_layer(j);
		return 0;
	}
	j->layers = sw_lab_array(j->n_tensors, sizeof(*j->layers));
	j->n_layers = j->n_tensors;
	for (uint32_t i = 0; i < j->n_layers; i++)
		j->layers[i] = (struct sw_sim_layer){.first = i, .n = 1};
	err = take_times(j, "forward", j->desc->forward, true);
	return err ? err : take_times(j, "backward", j->desc->backward, false);
}

static int take_sizes(struct sw_sim_job *j)
{
	const char *s = j->desc->sizes;

	j->n_elems = sw_lab_array(SW_SIM_TEXT, sizeof(*j->n_elems));
	while (*s) {
		char one[64];
		uint64_t bytes;

		if (!take_value(&s, SW_UNIT_BYTES, 4, &bytes, one)) {
			snprintf(j->sim->why, sizeof(j->sim->why),
				"[job %s] sizes: \"%.40s\" is not a size from "
				"4 to 4GiB",
				j->desc->label, one);
			return SW_ECONF;
		}
		j->n_elems[j->n_tensors++] = bytes / 4;
	}
	return take_layers(j);
}

static int take_model(struct sw_sim_job *j)
{
	struct sw_model m;
	char why[SW_SIM_TEXT - 100];
	int err = sw_model_open(&m, j->desc->model, why, sizeof(why));

	if (err) {
		snprintf(j->sim->why, sizeof(j->sim->why), "[job %s] model: %s",
			j->desc->label, why);
		return err;
	}
	j->n_tensors = m.n_tensors;
	j->n_layers = m.n_layers;
	j->n_elems = sw_lab_array(m.n_tensors, sizeof(*j->n_elems));
	j->layers = sw_lab_array(m.n_layers, sizeof(*j->layers));
	for (uint32_t t = 0; t < m.n_tensors; t++)
		j->n_elems[t] = m.tensors[t].n_elems;
	for (uint32_t l = 0; l < m.n_layers; l++)
		j->layers[l] = (struct sw_sim_layer){
			.forward_ns = m.layers[l].forward_ns,
			.backward_ns = m.layers[l].backward_ns,
			.first = m.layers[l].first,
			.n = m.layers[l].n_tensors};
	sw_model_close(&m);
	return 0;
}

static const enum sw_coll_kind kinds[] = {[SW_SIM_ALL_REDUCE] = SW_ALL_REDUCE,
	[SW_SIM_REDUCE_SCATTER] = SW_REDUCE_SCATTER,
	[SW_SIM_ALL_GATHER] = SW_ALL_GATHER,
	[SW_SIM_BROADCAST] = SW_BCAST};

/* Take the kinds of collectives.  Each rank's part has whole elements, and all
 * parts are equal. */
static int take_kinds(struct sw_sim_job *j)
{
	uint32_t n_ranks = j->n_agents * j->desc->agent.local_ranks;

	if (!j->desc->collective && !j->n_traces)
		return 0;
	if (j->desc->transport != SW_SIM_SUMWIRE)
		return refuse(j->sim, j->desc,
			j->n_traces ? "trace: needs transport = sumwire"
				    : "collective: needs transport = sumwire");
	if (j->n_traces)
		return 0;
	j->kinds = sw_lab_array(j->n_tensors, sizeof(*j->kinds));
	for (uint32_t t = 0; t < j->n_tensors; t++) {
		j->kinds[t] = (uint8_t)kinds[j->desc->collective];
		if (j->kinds[t] != SW_ALL_GATHER &&
			j->kinds[t] != SW_REDUCE_SCATTER)
			continue;
		j->n_elems[t] -= j->n_elems[t] % n_ranks;
		if (!j->n_elems[t])
			return refuse(j->sim, j->desc,
				"collective: a tensor has fewer elements than "
				"the job has ranks");
	}
	return 0;
}

/* Open the next trace.  "*" in its name stands for the number of an agent's
 * first rank. */
static int open_trace(struct sw_sim_job *j)
{
	const char *name = j->desc->trace, *star = strchr(name, '*');
	char path[SW_SIM_TEXT + 16], why[SW_SIM_TEXT - 100];
	struct sw_chakra *t = &j->traces[j->n_traces];
	int err;

	snprintf(path, sizeof(path), "%s", name);
	if (star)
		snprintf(path + (star - name),
			sizeof(path) - (size_t)(star - name), "%u%s",
			j->n_traces * j->desc->agent.local_ranks, star + 1);
	err = sw_chakra_open(t, path, why, sizeof(why));
	if (!err)
		err = sw_chakra_check(t, j->traces, path, why, sizeof(why));
	j->n_traces++;
	if (err)
		snprintf(j->sim->why, sizeof(j->sim->why), "[job %s] trace: %s",
			j->desc->label, why);
	return err;
}

static int open_traces(struct sw_sim_job *j)
{
	uint32_t n = strchr(j->desc->trace, '*') ? j->n_agents : 1;
	int err = 0;

	j->traces = sw_lab_array(n, sizeof(*j->traces));
	while (j->n_traces < n && !err)
		err = open_trace(j);
	return err;
}

/* Make a tensor for each collective of the trace, in the order of their
 * calls. */
static int take_trace(struct sw_sim_job *j)
{
	uint32_t n_ranks = j->n_agents * j->desc->agent.local_ranks;
	int err = open_traces(j);

	if (err)
		return err;
	j->n_elems = sw_lab_array(j->traces->n_colls, sizeof(*j->n_elems));
	j->kinds = sw_lab_array(j->traces->n_colls, sizeof(*j->kinds));
	for (uint32_t i = 0; i < j->traces->n_nodes; i++) {
		const struct sw_chakra_node *n = &j->traces->nodes[i];
		uint32_t t = j->n_tensors;

		if (!n->kind)
			continue;
		j->kinds[t] = (uint8_t)n->kind;
		j->n_elems[t] = n->bytes / 4;
		if (n->kind == SW_ALL_GATHER)
			j->n_elems[t] *= n_ranks;
		/* Every part has whole elements, at least one. */
		if (n->kind == SW_REDUCE_SCATTER)
			j->n_elems[t] +=
				(n_ranks - j->n_elems[t] % n_ranks) % n_ranks;
		j->n_tensors++;
	}
	one_layer(j);
	return 0;
}

static int take_tensors(struct sw_sim_job *j)
{
	int err = 0;

	if (*j->desc->trace)
		err = take_trace(j);
	else if (*j->desc->model)
		err = take_model(j);
	else if (*j->desc->sizes)
		err = take_sizes(j);
	else {
		j->n_tensors = j->desc->n_tensors;
		j->n_elems = sw_lab_array(j->n_tensors, sizeof(*j->n_elems));
		for (uint32_t t = 0; t < j->n_tensors; t++)
			j->n_elems[t] = j->desc->bytes / 4;
		one_layer(j);
	}
	if (!err)
		err = take_kinds(j);
	for (uint32_t t = 0; t < j->n_tensors && !err; t++)
		j->bytes += j->n_elems[t] * 4;
	return err;
}

/* --- agents --- */

static float **sums_of(const struct sw_sim_job *j)
{
	float **all;

	if (j->sim->net.is_bare || j->params.mode != SW_MODE_ASYNC)
		return NULL;
	all = sw_lab_array(j->n_tensors, sizeof(*all));
	for (uint32_t t = 0; t < j->n_tensors; t++)
		all[t] = sw_lab_array(SW_SIM_PERIOD, sizeof(**all));
	return all;
}

static void free_sums(const struct sw_sim_job *j, float **all)
{
	for (uint32_t t = 0; all && t < j->n_tensors; t++)
		free(all[t]);
	free(all);
}

static void *buffer(const struct sw_sim_job *j, uint32_t t)
{
	void *mem;

	/* Without payloads nothing reads it, so all tensors share one
	 * buffer. */
	if (j->sim->net.is_bare)
		return j->sim->scratch;
	mem = sw_sim_memory(j->n_elems[t] * 4);
	if (!mem)
		abort();
	return mem;
}

static void prepare_agent(struct sw_sim_job *j, uint32_t rank, uint32_t node)
{
	struct sw_sim_agent *a = &j->agents[rank];
	uint32_t n = j->desc->agent.local_ranks;

	*a = (struct sw_sim_agent){.job = j,
		.node = &j->sim->net.nodes[node],
		.n_lanes = j->desc->agent.lcores,
		.rank = rank,
		.n_local = n,
		.to = sw_lab_array(j->n_tensors, sizeof(*a->to)),
		.from = sw_lab_array(
			(uint64_t)j->n_tensors * n, sizeof(*a->from)),
		.low = sums_of(j),
		.colls = j->kinds ? sw_sim_colls_open(j) : NULL,
		.graph = j->n_traces ? sw_sim_graph_open(
					       &j->traces[rank % j->n_traces])
				     : NULL,
		.n_open = sw_lab_array(j->n_layers, sizeof(*a->n_open)),
		.pushed_ns = sw_lab_array(j->n_tensors, sizeof(*a->pushed_ns)),
		.rng = j->sim->desc->run.seed ^ (uint64_t)node << 32};
	sw_sim_lanes_new(a);
	for (uint32_t t = 0; t < j->n_tensors; t++) {
		a->to[t] = buffer(j, t);
		for (uint32_t l = 0; l < n; l++)
			a->from[t * n + l] = n == 1 ? a->to[t] : buffer(j, t);
	}
}

static void close_agent(struct sw_sim_agent *a)
{
	struct sw_sim_job *j = a->job;

	if (!j)
		return;
	if (!j->plain)
		sw_sim_lanes_close(a);
	for (uint32_t t = 0; t < j->n_tensors && !j->sim->net.is_bare; t++) {
		for (uint32_t l = 0; l < a->n_local && a->n_local > 1; l++)
			sw_sim_memory_free(a->from[t * a->n_local + l]);
		sw_sim_memory_free(a->to[t]);
	}
	sw_sim_colls_close(a->colls);
	sw_sim_graph_close(a->graph);
	sw_sim_lanes_free(a);
	free_sums(j, a->low);
	free(a->to);
	free(a->from);
	free(a->n_open);
	free(a->pushed_ns);
}

static uint64_t start_job(void *ctx, uint64_t now_ns)
{
	struct sw_sim_job *j = ctx;

	(void)now_ns;
	if (j->plain)
		sw_sim_plain_start(j);
	for (uint32_t r = 0; r < j->n_agents && !j->plain; r++)
		sw_sim_agent_open(&j->agents[r]);
	return UINT64_MAX;
}

/* --- servers --- */

/* Open engine @i of @n on a server's node. */
static int open_core(struct sw_sim_job *j, const struct sw_params *params,
	uint32_t node, uint32_t i, uint32_t n)
{
	struct sw_sim *s = j->sim;
	struct sw_sim_node *core = sw_sim_core(&s->net.nodes[node], i);
	struct sw_server **server = &s->servers[core - s->net.nodes];
	int err = sw_server_open(server, params, &s->env, core->ports,
		core->n_ports, UINT64_MAX / 2);

	if (err)
		return err;
	sw_server_set_lcores(*server, n, n > 1 ? &s->all_used[node] : NULL);
	err = sw_sim_guests_tell(&s->guests, *server);
	if (err)
		return err;
	sw_loop_set(core->loop, s->net.nodes[node].n_endpoints++,
		sw_server_engine(*server));
	sw_sim_node_poke(core);
	return 0;
}

int sw_sim_server_open(struct sw_sim_job *j, uint32_t node)
{
	struct sw_sim *s = j->sim;
	struct sw_sim_node *n = &s->net.nodes[node];
	struct sw_params params = j->params;
	uint32_t n_lcores = j->desc->job.server_lcores;
	int err = 0;

	j->has_used[node] = true;
	if (s->servers[node])
		return (n->n_lcores ? n->n_lcores : 1) == n_lcores
			       ? 0
			       : refuse(s, j->desc,
					 "server_lcores: differs from that of "
					 "another job at the same server");
	if (n_lcores > 1 && n->loop)
		return refuse(s, j->desc,
			"server_lcores: more than 1 needs nodes without "
			"agents");
	if (n->n_lcores)
		return refuse(s, j->desc,
			"servers: a node has an agent with several lcores");
	params.queue_bytes /= n->loopback ? 2 : 1;
	if (!n->loop)
		sw_sim_node_open(n, n_lcores, false, params.stop_gap);
	if (n_lcores > 1)
		sw_sim_node_lcores(n, n_lcores, params.stop_gap);
	for (uint32_t i = 0; i < n_lcores && !err; i++)
		err = open_core(j, &params, node, i, n_lcores);
	return err;
}

/* --- a job --- */

static void take_scratch(struct sw_sim *s, const struct sw_sim_job *j)
{
	uint64_t most = 0;

	for (uint32_t t = 0; t < j->n_tensors; t++)
		most = sw_max64(most, j->n_elems[t] * 4);
	if (!s->net.is_bare || most <= s->scratch_bytes)
		return;
	/* jobs that were opened earlier use it */
	s->old_scratch[j - s->jobs] = s->scratch;
	s->scratch = sw_sim_memory(most);
	s->scratch_bytes = most;
	if (!s->scratch)
		abort();
}

/* Return the largest payload that the nodes' own links carry.  Agents probe the
 * links between switches themselves. */
static uint32_t payload_of(const struct sw_sim_job *j)
{
	uint32_t least = UINT32_MAX;

	for (uint32_t i = 0; i < j->n_agents + j->n_servers; i++) {
		uint32_t node = i < j->n_agents ? j->nodes[i]
						: j->servers[i - j->n_agents];

		least = (uint32_t)sw_min64(
			least, sw_sim_node_payload(&j->sim->net.nodes[node]));
	}
	return least;
}

static int set_params(struct sw_sim_job *j)
{
	const struct sw_sim_desc_job *d = j->desc;
	uint32_t most = payload_of(j);

	sw_params_of_conf(&j->params, &d->job, &d->agent, &d->node);
	if (d->job.payload_bytes > most) {
		snprintf(j->sim->why, sizeof(j->sim->why),
			"[job %s] payload: does not fit the mtu of all nodes' "
			"links: at most %u",
			d->label, most);
		return SW_ECONF;
	}
	j->params.payload = d->job.payload_bytes ? d->job.payload_bytes : most;
	j->params.is_unlimited = !d->has_congestion;
	if (j->sim->net.is_bare)
		j->params.has_crc = false;
	return 0;
}

/* Check the options of an asynchronous job: its servers hold values, not sums
 * of rounds. */
static int check_mode(const struct sw_sim_job *j)
{
	const struct sw_sim_desc_job *d = j->desc;

	if (j->params.mode != SW_MODE_ASYNC)
		return 0;
	if (j->kinds || d->transport != SW_SIM_SUMWIRE)
		return refuse(j->sim, d,
			"mode: asynchronous is for push_pull over sumwire: "
			"leave out collective, trace and transport");
	if (!j->sim->net.is_bare &&
		(uint64_t)d->n_rounds * j->truth.n_ranks > EXACT_ROUNDS)
		return refuse(j->sim, d,
			"rounds: the oracle adds up to 65,000 rounds of a rank "
			"exactly: run fewer, or with oracle = no");
	return 0;
}

/* Open the ports of the agents' nodes, with a loopback if they also serve. */
static int open_nodes(struct sw_sim_job *j, const uint32_t *agents)
{
	uint32_t n_lcores = j->desc->agent.lcores;

	for (uint32_t r = 0; r < j->n_agents; r++) {
		struct sw_sim_node *n = &j->sim->net.nodes[agents[r]];

		if (n->loop && (n_lcores > 1 || n->n_lcores))
			return refuse(j->sim, j->desc,
				"lcores: more than 1 needs nodes without "
				"servers");
		if (!n->loop)
			sw_sim_node_open(n, n_lcores, j->n_colocated,
				j->params.stop_gap);
		if (n_lcores > 1)
			sw_sim_node_lcores(n, n_lcores, j->params.stop_gap);
	}
	if (j->n_colocated)
		j->params.queue_bytes /= 2;
	return 0;
}

static int open_engines(struct sw_sim_job *j, const uint32_t *agents)
{
	int err = 0;

	for (uint32_t k = 0; k < j->n_servers && !j->n_colocated; k++)
		err = err ? err : sw_sim_server_open(j, j->servers[k]);
	err = err ? err : open_nodes(j, agents);
	for (uint32_t k = 0; k < j->n_servers && j->n_colocated; k++)
		err = err ? err : sw_sim_server_open(j, j->servers[k]);
	return err;
}

static int take_straggler(struct sw_sim_job *j)
{
	const struct sw_sim_desc_job *d = j->desc;
	char why[SW_SIM_TEXT - 100];
	int err;

	if (!*d->straggler_time)
		return d->straggler == SURELY
			       ? 0
			       : refuse(j->sim, d,
					 "straggler: needs straggler_time, "
					 "like exponential 5ms");
	err = sw_sim_straggler_open(
		&j->straggler, d->straggler_time, why, sizeof(why));
	if (err)
		snprintf(j->sim->why, sizeof(j->sim->why),
			"[job %s] straggler_time: %s", d->label, why);
	return err;
}

static int open_job(struct sw_sim *s, uint32_t i)
{
	struct sw_sim_job *j = &s->jobs[i];
	uint32_t *agents = sw_lab_array(SW_SIM_NODES_MAX, sizeof(*agents));
	int err;

	j->sim = s;
	j->desc = &s->desc->jobs[i];
	j->servers = j->home = sw_lab_array(SW_SIM_NODES_MAX, sizeof(*j->home));
	j->n_agents = sw_sim_find_all(s->desc, j->desc->agents, agents);
	j->n_home = j->n_servers =
		sw_sim_find_all(s->desc, j->desc->servers, j->home);
	j->most_servers = j->n_servers;
	j->nodes = agents;
	j->has_used = sw_lab_array(s->net.n_nodes, sizeof(*j->has_used));
	j->stop_round = j->desc->n_rounds;
	err = sw_sim_servers_check(
		j, j->servers, j->n_servers, &j->n_colocated);
	if (!err)
		err = check_agents(j, agents);
	if (!err)
		err = take_tensors(j);
	if (!err)
		err = take_straggler(j);
	if (!err)
		err = set_params(j);
	if (err)
		return err;
	take_scratch(s, j);
	sw_sim_truth_init(&j->truth, s->desc->run.seed + i,
		j->n_agents * j->desc->agent.local_ranks);
	err = check_mode(j);
	if (err)
		return err;
	j->high = sums_of(j);
	j->round_ends = sw_lab_array(j->desc->n_rounds, sizeof(*j->round_ends));
	j->urgent = sw_lab_array(
		(uint64_t)j->desc->n_rounds * j->n_agents, sizeof(*j->urgent));
	j->agents = sw_lab_array(j->n_agents, sizeof(*j->agents));
	if (j->desc->transport == SW_SIM_SUMWIRE)
		err = open_engines(j, agents);
	for (uint32_t r = 0; r < j->n_agents; r++)
		prepare_agent(j, r, agents[r]);
	sw_sim_timer_add(
		&s->net, s->net.now_ns + j->desc->start_ns, start_job, j);
	return err;
}

int sw_sim_jobs_open(struct sw_sim *s)
{
	int err = 0;

	s->n_jobs = s->desc->n_jobs;
	s->jobs = sw_lab_array(s->n_jobs, sizeof(*s->jobs));
	s->servers = sw_lab_array(s->net.n_cores, sizeof(*s->servers));
	s->all_used = sw_lab_array(s->net.n_nodes, sizeof(*s->all_used));
	err = sw_sim_guests_init(&s->guests, s->desc);
	for (uint32_t i = 0; i < s->n_jobs && !err; i++)
		err = open_job(s, i);
	return err;
}

void sw_sim_jobs_close(struct sw_sim *s)
{
	for (uint32_t i = 0; s->jobs && i < s->n_jobs; i++) {
		struct sw_sim_job *j = &s->jobs[i];

		for (uint32_t r = 0; j->agents && r < j->n_agents; r++)
			close_agent(&j->agents[r]);
		free(j->agents);
		free(j->nodes);
		free(j->home);
		free(j->has_used);
		free(j->n_elems);
		free(j->kinds);
		for (uint32_t t = 0; t < j->n_traces; t++)
			sw_chakra_close(&j->traces[t]);
		free(j->traces);
		sw_sim_straggler_close(&j->straggler);
		free(j->layers);
		free(j->round_ends);
		free(j->urgent);
		free_sums(j, j->high);
		sw_sim_plain_close(j->plain);
	}
	for (uint32_t i = 0; s->servers && i < s->net.n_cores; i++)
		sw_server_close(s->servers[i]);
	for (uint32_t i = 0; i < SW_SIM_JOBS; i++)
		sw_sim_memory_free(s->old_scratch[i]);
	sw_sim_memory_free(s->scratch);
	free(s->jobs);
	free(s->servers);
	free(s->all_used);
}
