/* job.c - a simulated job: servers and workers.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/sim/job.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/bytes.h"

/* --- the engine's environment --- */

/* Has the thread that allocates memory had its turn? The seed decides. */
static bool mem_ready(void *ctx, uint32_t owner, uint64_t bytes)
{
	struct sim_job *job = ctx;

	(void)owner;
	(void)bytes;
	return !job->has_late_memory || !(test_random(&job->rng_mem) % 3);
}

static void mem_drop(void *ctx, uint32_t owner)
{
	(void)ctx;
	(void)owner;
}

static void *mem_get(void *ctx, uint64_t bytes)
{
	struct sim_job *job = ctx;

	job->mem_bytes += bytes;
	job->n_mem_gets++;
	return sim_zeros(bytes);
}

static void mem_put(void *ctx, void *mem, uint64_t bytes)
{
	struct sim_job *job = ctx;

	job->mem_bytes -= bytes;
	sim_net_forget(&job->net, mem, bytes);
	free(mem);
}

static uint64_t env_random(void *ctx)
{
	return test_random(&((struct sim_job *)ctx)->rng);
}

static void print_line(void *ctx, enum sw_log_level level, const char *text)
{
	struct sim_job *job = ctx;

	(void)level;
	if (job->doom) /* expected; if the seed fails, main.c prints it */
		return;
	printf("# %12.6f %s\n", (double)job->net.now_ns / 1e9, text);
}

/* --- the job --- */

void sim_job_init(struct sim_job *job, uint64_t seed)
{
	memset(job, 0, sizeof(*job));
	job->seed = seed;
	job->rng = seed * 2 + 1;
	job->rng_mem = seed * 2 + 3;
	sw_params_init(&job->params);
	sim_net_init(&job->net, seed);
	job->dtype = SW_I32;
	job->n_workers = 2;
	job->n_servers = job->n_lcores = 1;
	job->n_tensors = job->n_first = 1;
	job->n_jobs = 1;
	job->n_rounds = 1;
	job->params.payload = 1344;
	job->quota_bytes = 1ULL << 30;
	job->odd_one = SIM_WORKERS;
	for (uint32_t t = 0; t < SIM_TENSORS; t++)
		job->n_elems[t] = 100;
	for (uint32_t r = 0; r < SIM_WORKERS; r++)
		job->n_local[r] = job->n_lanes[r] = 1;
}

/* Use a secret that the tests know and the attacker does not. */
static void take_secret(struct sim_job *job)
{
	uint8_t bytes[SW_SECRET_BYTES] = "the secret of the simulator";

	memcpy(bytes + 28, &job->seed, 4);
	if (!sw_secret_init(&job->entry.secret, bytes))
		abort();
	job->keyring = (struct sw_keyring){
		.entries = &job->entry, .n = 1, .is_required = true};
}

static void start_engine(struct sim_job *job, uint32_t e, uint32_t lcore)
{
	struct sim_node *n = job->lcores[e];
	struct sw_params params = sim_mtu_params(job, e / job->n_lcores);
	uint32_t n_queues =
		job->net.steering == SW_STEER_HANDOFF ? 1 : job->n_lcores;

	if (sw_server_open(&job->servers[e], &params, &job->env, n->ports,
		    SIM_PORTS, job->quota_bytes) ||
		sw_server_share(job->servers[e], job->shares, job->n_shares))
		abort();
	sw_server_set_lcores(job->servers[e], job->n_lcores, NULL);
	if (job->is_keyed) {
		take_secret(job);
		sw_server_set_keys(job->servers[e], &job->keyring);
	}
	if (lcore < n_queues)
		n->ports[0]->rate_bit_s = job->server_bit_s / n_queues;
	sim_node_start(
		n, lcore, &job->servers[e]->engine, job->params.stop_gap);
}

void sim_server_start(struct sim_job *job, uint32_t i)
{
	for (uint32_t k = 0; k < job->n_lcores; k++)
		start_engine(job, i * job->n_lcores + k, k);
}

void sim_server_kill(struct sim_job *job, uint32_t i)
{
	for (uint32_t k = 0; k < job->n_lcores; k++) {
		struct sw_server **srv = &job->servers[i * job->n_lcores + k];

		if (!*srv)
			return;
		sim_node_stop(&job->net.nodes[i]);
		sw_server_close(*srv);
		*srv = NULL;
	}
}

static void prepare_worker(struct sim_job *job, uint32_t rank)
{
	struct sim_worker *w = &job->workers[rank];
	uint32_t elems;

	w->job = job;
	w->rank = rank;
	w->n_local = job->n_local[rank];
	w->n_lanes = job->n_lanes[rank];
	w->others = calloc(w->n_lanes, sizeof(*w->others));
	w->lanes = aligned_alloc(64, w->n_lanes * sizeof(*w->lanes));
	if (!w->others || !w->lanes)
		abort();
	w->node = w->lcores[0] = &job->net.nodes[sim_job_first(job) + rank];
	if (!job->n_colocated)
		sim_net_add(&job->net, SW_PAYLOAD_MAX);
	w->node->port.rate_bit_s = job->worker_bit_s;
	w->node->step = sim_worker_step;
	w->node->ctx = w;
	for (uint32_t t = 0; t < job->n_tensors; t++) {
		elems = job->n_elems[t] + job->odd_elems + 1;
		w->data[t] = calloc(elems, job->elem_bytes);
		if (!w->data[t])
			abort();
		w->from[0][t] = w->data[t];
		for (uint32_t l = 0; l < w->n_local && w->n_local > 1; l++) {
			w->from[l][t] = calloc(elems, job->elem_bytes);
			if (!w->from[l][t])
				abort();
		}
	}
}

/* Describe engine @e for a worker's list of servers. */
static struct sw_worker_server server_of(const struct sim_job *job,
	const struct sim_worker *w, uint32_t e, char name[8])
{
	uint32_t i = e / job->n_lcores, k = e % job->n_lcores;
	struct sw_worker_server s = {.name = name,
		.path = {.ip = sw_ip_v4(sim_ip(i)),
			.udp = (uint16_t)(SIM_UDP + k)}};

	snprintf(name, 8, "s%u", e);
	if (i == w->node->index) /* the server on the worker's own machine */
		s.path = (struct sw_path){.ip = sw_ip_v4(SW_LOOPBACK_IP),
			.udp = (uint16_t)k,
			.port_i = SIM_LOOPBACK};
	return s;
}

static void start_lane(struct sim_worker *w, uint32_t i,
	const struct sw_worker_events *events, struct sw_worker_job *wj)
{
	struct sim_job *job = w->job;
	struct sw_worker *engine = i ? &w->others[i - 1] : &w->engine;
	struct sw_params params = sim_mtu_params(job, w->node->index);
	uint32_t first = job->n_colocated ? job->n_lcores : 0;

	wj->lane_i = (uint8_t)i;
	if (i)
		sw_lane_init(&w->lanes[i - 1], &w->engine);
	if (sw_worker_open(engine, &params, &job->env, events, wj,
		    w->lcores[i]->ports, SIM_PORTS, job->net.now_ns))
		abort();
	if (i) {
		w->lcores[i]->step = sim_lane_step;
		w->lcores[i]->ctx = engine;
	}
	sim_node_start(
		w->lcores[i], first + i, &engine->engine, job->params.stop_gap);
}

void sim_worker_start(struct sim_job *job, uint32_t rank)
{
	static const char *const jobs[SIM_JOBS] = {"sim", "j1", "j2", "j3"};
	struct sim_worker *w = &job->workers[rank];
	struct sw_worker_server servers[SIM_ENGINES];
	struct sw_worker_events events = sim_worker_events(w);
	char node[16], names[SIM_ENGINES][8];
	/* Several jobs on workers' own servers: each has those of its workers.
	 */
	uint32_t apart = job->n_colocated ? job->n_jobs : 1;
	struct sw_worker_job wj = {.job = jobs[sim_job_of(job, rank)],
		.node = node,
		.member = sim_job_rank(job, rank),
		.n_members = sim_job_members(job, sim_job_of(job, rank)),
		.n_local = w->n_local,
		.servers = servers,
		.n_servers = (uint16_t)(job->n_servers / apart * job->n_lcores),
		.n_lanes = (uint8_t)w->n_lanes,
		.lanes = w->lanes,
		.n_lcores = (uint8_t)job->n_lcores,
		.n_ways = SIM_WAYS,
		.secret = job->is_keyed ? &job->entry.secret : NULL,
		.n_colocated =
			(uint16_t)(job->n_colocated / apart * job->n_lcores)};

	if (rank == job->odd_one && job->odd_members)
		wj.n_members = (uint16_t)job->odd_members;
	snprintf(node, sizeof(node), "gpu%u", rank);
	for (uint32_t e = 0; e < wj.n_servers; e++)
		servers[e] = server_of(job, w,
			(e / job->n_lcores * apart + rank % apart) *
					job->n_lcores +
				e % job->n_lcores,
			names[e]);
	memset(&w->is_running, 0,
		sizeof(*w) - offsetof(struct sim_worker, is_running));
	for (uint32_t i = 0; i < w->n_lanes; i++)
		start_lane(w, i, &events, &wj);
	w->is_open = true;
}

void sim_worker_kill(struct sim_job *job, uint32_t rank)
{
	struct sim_worker *w = &job->workers[rank];

	if (!w->is_open)
		return;
	sim_node_stop(w->node);
	for (uint32_t i = 1; i < w->n_lanes; i++)
		sw_worker_close(&w->others[i - 1]);
	sw_worker_close(&w->engine);
	w->is_open = false;
}

/* Return the node for lane @i of a worker on @machine: the lcore of part i of
 * the machine's server, if there is one. */
static struct sim_node *lcore_of(
	struct sim_job *job, uint32_t machine, uint32_t i)
{
	if (job->n_colocated && i < job->n_lcores)
		return job->lcores[machine * job->n_lcores + i];
	return sim_net_add_lcore(&job->net, machine);
}

void sim_job_open(struct sim_job *job)
{
	job->log.line = print_line;
	job->log.ctx = job;
	job->env = (struct sw_env){.log = &job->log,
		.sum = sw_sum_best(SW_SUM_AVX512),
		.ctx = job,
		.mem_ready = mem_ready,
		.mem_drop = mem_drop,
		.mem_get = mem_get,
		.mem_put = mem_put,
		.random = env_random};
	job->params.mode = job->async ? SW_MODE_ASYNC : SW_MODE_SYNC;
	job->most = sim_mtus_most(job);
	sim_groups_list(job);
	sim_oracle_open(job);
	job->net.on_tx = sim_oracle_on_tx;
	job->net.n_chunks = sim_oracle_n_chunks;
	job->net.ctx = job;
	for (uint32_t i = 0; i < job->n_servers; i++)
		sim_net_add(&job->net, SW_PAYLOAD_MAX);
	for (uint32_t r = 0; r < job->n_workers; r++)
		prepare_worker(job, r);
	for (uint32_t e = 0; e < job->n_servers * job->n_lcores; e++)
		job->lcores[e] = e % job->n_lcores
					 ? sim_net_add_lcore(
						   &job->net, e / job->n_lcores)
					 : &job->net.nodes[e / job->n_lcores];
	for (uint32_t r = 0; r < job->n_workers; r++)
		for (uint32_t i = 1; i < job->n_lanes[r]; i++)
			job->workers[r].lcores[i] =
				lcore_of(job, job->workers[r].node->index, i);
	for (uint32_t i = 0; i < job->n_servers; i++)
		sim_server_start(job, i);
	for (uint32_t r = 0; r < job->n_workers; r++)
		if (!(job->absent >> r & 1))
			sim_worker_start(job, r);
}

static void free_buffers(struct sim_worker *w, uint32_t t)
{
	free(w->data[t]);
	for (uint32_t l = 0; l < w->n_local && w->n_local > 1; l++)
		free(w->from[l][t]);
}

void sim_job_close(struct sim_job *job)
{
	for (uint32_t r = 0; r < job->n_workers; r++)
		sim_worker_kill(job, r);
	for (uint32_t i = 0; i < job->n_servers; i++)
		sim_server_kill(job, i);
	sim_net_fini(&job->net);
	for (uint32_t r = 0; r < job->n_workers; r++) {
		for (uint32_t t = 0; t < job->n_tensors; t++)
			free_buffers(&job->workers[r], t);
		sim_groups_close(&job->workers[r]);
		free(job->workers[r].others);
		free(job->workers[r].lanes);
	}
	sim_seen_close(job);
}

static bool is_over(void *ctx)
{
	struct sim_job *job = ctx;
	bool all = true;

	for (uint32_t r = 0; r < job->n_workers; r++) {
		const struct sim_worker *w = &job->workers[r];

		if (sim_mismatch_has_failed(w))
			continue;
		if (w->has_failed)
			return true;
		all = all && sim_worker_has_completed(w) &&
		      (!job->leaves || w->has_left);
	}
	return all;
}

static void freeze(struct sim_job *job)
{
	sim_net_run(
		&job->net, job->net.now_ns + job->freeze_at_ns, is_over, job);
	if (!is_over(job))
		sim_node_freeze(
			&job->net.nodes[job->freeze_node], job->freeze_ns);
}

bool sim_job_run(struct sim_job *job, uint64_t limit_ns)
{
	uint64_t until_ns = job->net.now_ns + limit_ns;
	bool all;

	if (job->freeze_ns)
		freeze(job);
	all = sim_net_run(&job->net, until_ns, is_over, job);
	for (uint32_t r = 0; r < job->n_workers; r++)
		all = all &&
		      (sim_mismatch_has_failed(&job->workers[r]) ||
			      (sim_worker_has_completed(&job->workers[r]) &&
				      !job->workers[r].has_failed));
	return all;
}

void sim_job_pass(struct sim_job *job, uint64_t ns)
{
	sim_net_run(&job->net, job->net.now_ns + ns, NULL, NULL);
}
