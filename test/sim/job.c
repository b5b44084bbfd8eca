/* job.c - a simulated job: servers, workers, and their training loops.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/sim/job.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/bytes.h"

/* --- what the engine is given --- */

static void *mem_get(void *ctx, uint64_t bytes)
{
	((struct sim_job *)ctx)->mem_bytes += bytes;
	return calloc(1, bytes);
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
	return sim_random(&((struct sim_job *)ctx)->rng);
}

static void print_line(void *ctx, enum sw_log_level level, const char *text)
{
	struct sim_job *job = ctx;

	(void)level;
	printf("# %12.6f %s\n", (double)job->net.now_ns / 1e9, text);
}

/* --- one worker's training loop --- */

/* What the node's server was lent is kept, and then the buffers are written, as
 * a process may whose job ended. */
static void keep(struct sim_worker *w)
{
	struct sim_job *job = w->job;
	struct sw_server *srv = job->servers[w->node->index * job->n_lcores];

	if (!job->n_colocated || !job->params.has_crc)
		return;
	sw_loopback_keep(&w->node->loopback);
	if (srv)
		sw_server_keep(srv);
	for (uint32_t t = 0; t < job->n_tensors; t++)
		memset(w->data[t], 0x5a, job->n_elems[t] * job->elem_bytes);
}

static void on_state(
	void *ctx, enum sw_worker_state state, int err, const char *text)
{
	struct sim_worker *w = ctx;

	w->is_running |= state == SW_WORKER_RUNNING;
	w->has_left |= state == SW_WORKER_LEFT;
	if (state != SW_WORKER_FAILED) {
		if (text[0])
			snprintf(w->told, sizeof(w->told), "%s", text);
		return;
	}
	keep(w);
	w->has_failed = true;
	w->failed_ns = w->job->net.now_ns;
	w->err = err;
	snprintf(w->text, sizeof(w->text), "%s", text);
}

static void on_declared(void *ctx)
{
	struct sim_worker *w = ctx;
	struct sim_job *job = w->job;

	w->n_admitted = w->n_declared;
	for (uint32_t t = 0; t < w->n_admitted; t++) {
		job->by_key[sim_job_of(job, w->rank)]
			   [w->engine.tensors[w->index[t]].key] = t;
		for (uint32_t l = 0; l < w->n_local; l++)
			sw_worker_source(
				&w->engine, w->index[t], l, w->from[l][t]);
	}
}

static void on_done(void *ctx, uint32_t tensor, uint32_t local, uint64_t cookie,
	int err, uint32_t weight)
{
	struct sim_worker *w = ctx;
	uint32_t t = (uint32_t)cookie;

	(void)tensor;
	w->asked[t] &= ~(1u << local);
	w->done_ns[t] = w->job->net.now_ns;
	if (err) {
		w->n_errors++;
		w->last_err = err;
		return;
	}
	if (w->asked[t])
		return; /* the others are told now, too */
	if (!w->job->is_edited)
		sim_oracle_check(w, t, weight);
	sim_oracle_knobs(w, t);
	w->round[t]++;
	if (sim_chance(&w->job->rng, 200000))
		w->pause_until_ns = w->job->net.now_ns +
				    sim_below(&w->job->rng, w->job->pause_ns);
}

static struct sw_worker_tensor declaration(
	struct sim_worker *w, uint32_t t, char *name)
{
	struct sim_job *job = w->job;
	struct sw_worker_tensor d = {.name = sim_job_name(job, t, name),
		.n_elems = job->n_elems[t],
		.dtype = job->dtype,
		.priority = t * (job->priority_step ? job->priority_step : 1),
		.base = w->data[t],
		.is_async = sim_job_is_async(job, t)};

	if (job->is_by_use)
		d.priority = SW_PRIORITY_BY_USE;
	if (t == 0 && w->rank == job->odd_one) {
		d.n_elems += job->odd_elems;
		d.priority += job->odd_priority;
		d.dtype = job->has_odd_dtype ? SW_F32 : d.dtype;
	}
	return d;
}

/* Every worker declares in another order, and maybe in two batches. */
static void declare(struct sim_worker *w)
{
	struct sw_worker_tensor list[SIM_TENSORS];
	char names[SIM_TENSORS][SW_NAME_MAX];
	struct sim_job *job = w->job;
	uint32_t first = w->n_declared;
	uint32_t n = (first ? job->n_tensors : job->n_first) - first;
	uint32_t from = (uint32_t)sim_below(&job->rng, n);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t t = first + (from + i) % n;

		w->index[t] = w->engine.n_tensors + i;
		list[i] = declaration(w, t, names[i]);
	}
	w->n_declared += n;
	if (sw_worker_declare(&w->engine, list, n))
		abort();
	w->node->loop.tick_at_ns = 0;
}

void sim_worker_submit(struct sim_worker *w, uint32_t t, uint32_t local)
{
	struct sim_job *job = w->job;
	uint32_t odd = w->rank == job->odd_one ? job->odd_step : 0;
	uint32_t i = sim_job_of(job, w->rank);
	uint32_t root = sim_oracle_root(job, i, t, w->round[t]);
	struct sw_worker_round round = {.tensor = w->index[t],
		.step = w->round[t] + odd,
		.local = local,
		.cookie = t};

	if (root < SIM_WORKERS) {
		round.op = SW_OPERATION_COPY;
		for (uint32_t r = i; r < root; r += job->n_jobs)
			round.root += job->n_local[r];
		round.root += t % job->n_local[root];
	}
	sim_oracle_fill(w, t, local);
	w->asked[t] |= 1u << local;
	w->node->wake_ns = sw_min64(w->node->wake_ns,
		sw_max64(w->job->net.now_ns, w->node->gap_until_ns));
	if (sw_worker_begin(&w->engine, &round))
		abort();
	w->node->loop.tick_at_ns = 0;
}

static uint32_t rounds_of(const struct sim_worker *w)
{
	const struct sim_job *job = w->job;

	return w->rank == job->odd_one && job->odd_rounds ? job->odd_rounds
							  : job->n_rounds;
}

static bool has_completed(const struct sim_worker *w)
{
	for (uint32_t t = 0; t < w->job->n_tensors; t++)
		if (w->round[t] < rounds_of(w))
			return false;
	return true;
}

/* Submit what may be, in an order of this worker's own. */
static void submit_some(struct sim_worker *w)
{
	struct sim_job *job = w->job;
	uint32_t n = w->n_admitted;
	uint32_t from = 0;

	if (!job->is_in_order)
		from = (uint32_t)sim_below(&job->rng, n);
	for (uint32_t i = 0; i < n * w->n_local; i++) {
		uint32_t t = (from + i) % n, local = i / n;

		if (job->is_reversed && w->rank % 2)
			t = n - 1 - t;
		if (!(w->asked[t] >> local & 1) && w->round[t] < rounds_of(w) &&
			(job->is_in_order || sim_chance(&job->rng, 700000)))
			sim_worker_submit(w, t, local);
	}
}

void sim_worker_tune(struct sim_worker *w)
{
	uint64_t *rng = &w->job->rng;
	const struct sw_policy *policy =
		sw_policy_at((uint32_t)sim_below(rng, SW_N_POLICIES));
	uint64_t part = 0, credit = 0;

	if (policy->is_tunable) {
		part = SW_PART_MIN << sim_below(rng, 8);
		credit = SW_CREDIT_MIN << sim_below(rng, 12);
	}
	if (sw_worker_tune(&w->engine, policy, part, credit))
		abort();
	w->node->loop.tick_at_ns = 0;
}

/* --- lanes: each hears the others after a turn of its own --- */

static void hear(struct sw_worker *engine, struct sim_node *node)
{
	if (sw_worker_hear(engine))
		node->loop.tick_at_ns = 0;
}

static void hear_others(struct sim_worker *w)
{
	hear(&w->engine, w->node);
	for (uint32_t i = 1; i < w->n_lanes; i++)
		if (!sw_spsc_is_empty(&w->lanes[i - 1].orders_out))
			sim_node_poke(w->lcores[i]);
}

static void lane_step(void *ctx, uint64_t now_ns)
{
	struct sw_worker *engine = ctx;
	struct sim_worker *w = engine->events.ctx;

	(void)now_ns;
	hear(engine, w->lcores[engine->lane_i]);
	if (!sw_spsc_is_empty(&engine->lanes->news_out))
		sim_node_poke(w->node);
}

struct sw_stats sim_worker_stats(const struct sim_worker *w)
{
	struct sw_stats sum = w->engine.stats;

	for (uint32_t i = 1; i < w->n_lanes; i++)
		sw_stats_add(&sum, &w->others[i - 1].stats);
	return sum;
}

static void step(void *ctx, uint64_t now_ns)
{
	struct sim_worker *w = ctx;
	struct sim_job *job = w->job;

	hear_others(w);
	if (!w->is_running || w->has_failed || w->has_left)
		return;
	if (!w->n_declared ||
		(w->n_declared < job->n_tensors && w->round[0] > 0))
		declare(w);
	/* While a batch waits for its admission nothing new may be pushed;
	 * what was pushed before goes on. */
	if (w->n_admitted != w->n_declared || now_ns < w->pause_until_ns)
		return;
	submit_some(w);
	if (job->tunes && !has_completed(w) &&
		sim_chance(&job->rng, job->tunes))
		sim_worker_tune(w);
	if (job->leaves && has_completed(w)) {
		keep(w);
		sw_worker_leave(&w->engine, 0, NULL);
		w->node->loop.tick_at_ns = 0;
	}
	hear_others(w);
}

/* --- the job --- */

void sim_job_init(struct sim_job *job, uint64_t seed)
{
	memset(job, 0, sizeof(*job));
	job->seed = seed;
	job->rng = seed * 2 + 1;
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

static void start_engine(struct sim_job *job, uint32_t e, uint32_t lcore)
{
	struct sim_node *n = job->lcores[e];
	uint32_t n_queues =
		job->net.steering == SW_STEER_HANDOFF ? 1 : job->n_lcores;

	job->servers[e] = malloc(sizeof(*job->servers[e]));
	if (!job->servers[e] ||
		sw_server_open(job->servers[e], &job->params, &job->env,
			n->ports, SIM_PORTS, job->quota_bytes) ||
		sw_server_share(job->servers[e], job->shares, job->n_shares))
		abort();
	job->servers[e]->n_lcores = job->n_lcores;
	if (lcore < n_queues)
		n->ports[0]->rate_bit_s = job->server_bit_s / n_queues;
	sim_node_start(n, lcore, &job->servers[e]->node, job->params.stop_gap);
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
		free(*srv);
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
	w->node->step = step;
	w->node->ctx = w;
	for (uint32_t t = 0; t < job->n_tensors; t++) {
		elems = job->n_elems[t] + job->odd_elems;
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

/* Engine @e as a worker's list has it. */
static struct sw_worker_server server_of(const struct sim_job *job,
	const struct sim_worker *w, uint32_t e, char name[8])
{
	uint32_t i = e / job->n_lcores, k = e % job->n_lcores;
	struct sw_worker_server s = {.name = name,
		.path = {.ip = sim_ip(i), .udp = (uint16_t)(SIM_UDP + k)}};

	snprintf(name, 8, "s%u", e);
	if (i == w->node->index) /* its own machine's */
		s.path = (struct sw_path){.ip = SW_LOOPBACK_IP,
			.udp = (uint16_t)k,
			.port_i = SIM_LOOPBACK};
	return s;
}

static void start_lane(struct sim_worker *w, uint32_t i,
	const struct sw_worker_events *events, struct sw_worker_job *wj)
{
	struct sim_job *job = w->job;
	struct sw_worker *engine = i ? &w->others[i - 1] : &w->engine;
	uint32_t first = job->n_colocated ? job->n_lcores : 0;

	wj->lane_i = (uint8_t)i;
	if (i)
		sw_lane_init(&w->lanes[i - 1]);
	if (sw_worker_open(engine, &job->params, &job->env, events, wj,
		    w->lcores[i]->ports, SIM_PORTS, job->net.now_ns))
		abort();
	if (i) {
		w->lcores[i]->step = lane_step;
		w->lcores[i]->ctx = engine;
	}
	sim_node_start(
		w->lcores[i], first + i, &engine->node, job->params.stop_gap);
}

void sim_worker_start(struct sim_job *job, uint32_t rank)
{
	static const char *const jobs[SIM_JOBS] = {"sim", "j1", "j2", "j3"};
	struct sim_worker *w = &job->workers[rank];
	struct sw_worker_server servers[SIM_ENGINES];
	struct sw_worker_events events = {.state = on_state,
		.declared = on_declared,
		.done = on_done,
		.ctx = w};
	char node[16], names[SIM_ENGINES][8];
	struct sw_worker_job wj = {.job = jobs[sim_job_of(job, rank)],
		.node = node,
		.rank = sim_job_rank(job, rank),
		.n_members = sim_job_members(job, sim_job_of(job, rank)),
		.n_local = w->n_local,
		.incarnation = job->net.now_ns,
		.servers = servers,
		.n_servers = job->n_servers * job->n_lcores,
		.n_lanes = (uint8_t)w->n_lanes,
		.lanes = w->lanes,
		.n_lcores = (uint8_t)job->n_lcores,
		.n_ways = SIM_WAYS,
		.n_colocated = (uint16_t)(job->n_colocated * job->n_lcores)};

	if (rank == job->odd_one && job->odd_members)
		wj.n_members = (uint16_t)job->odd_members;
	snprintf(node, sizeof(node), "gpu%u", rank);
	for (uint32_t e = 0; e < wj.n_servers; e++)
		servers[e] = server_of(job, w, e, names[e]);
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

void sim_job_open(struct sim_job *job)
{
	job->log.line = print_line;
	job->log.ctx = job;
	job->env = (struct sw_env){.log = &job->log,
		.sum = sw_sum_best(SW_SUM_AVX512),
		.ctx = job,
		.mem_get = mem_get,
		.mem_put = mem_put,
		.random = env_random};
	job->params.is_async = job->async;
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
			job->workers[r].lcores[i] = sim_net_add_lcore(
				&job->net, job->workers[r].node->index);
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
		free(job->workers[r].others);
		free(job->workers[r].lanes);
	}
}

static bool is_over(void *ctx)
{
	struct sim_job *job = ctx;
	bool all = true;

	for (uint32_t r = 0; r < job->n_workers; r++) {
		const struct sim_worker *w = &job->workers[r];

		if (w->has_failed)
			return true;
		all = all && has_completed(w) && (!job->leaves || w->has_left);
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
		all = all && has_completed(&job->workers[r]) &&
		      !job->workers[r].has_failed;
	return all;
}

void sim_job_pass(struct sim_job *job, uint64_t ns)
{
	sim_net_run(&job->net, job->net.now_ns + ns, NULL, NULL);
}
