/* job.c - a simulated job: servers, workers, tensors, and the oracle.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/sim/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the oracle --- */

static int32_t digit(const struct sim_job *job, uint32_t tensor, uint32_t round,
	uint32_t elem)
{
	uint64_t x = job->seed ^ (uint64_t)tensor << 48 ^
		     (uint64_t)round << 24 ^ elem;

	return 1 + (int32_t)(sim_random(&x) % 3);
}

static void fill(struct sim_worker *w, uint32_t tensor, uint32_t round)
{
	for (uint32_t i = 0; i < w->job->n_elems[tensor]; i++)
		w->data[tensor][i] = digit(w->job, tensor, round, i)
				     << 2 * w->rank;
}

static void check(struct sim_worker *w, uint32_t tensor, uint32_t round)
{
	int32_t ones = 0;

	for (uint32_t r = 0; r < w->job->n_workers; r++)
		ones |= 1 << 2 * r;
	for (uint32_t i = 0; i < w->job->n_elems[tensor]; i++)
		if (w->data[tensor][i] !=
			ones * digit(w->job, tensor, round, i))
			w->n_wrong++;
}

/* --- what the engine is given --- */

static void *mem_get(void *ctx, uint64_t bytes)
{
	(void)ctx;
	return calloc(1, bytes);
}

static void mem_put(void *ctx, void *mem, uint64_t bytes)
{
	(void)ctx;
	(void)bytes;
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
	printf("# %10.6f %s\n", (double)job->net.now_ns / 1e9, text);
}

/* --- one worker's training loop --- */

static void on_state(
	void *ctx, enum sw_worker_state state, int err, const char *text)
{
	struct sim_worker *w = ctx;

	w->is_running |= state == SW_WORKER_RUNNING;
	if (state != SW_WORKER_FAILED)
		return;
	w->has_failed = true;
	w->err = err;
	snprintf(w->text, sizeof(w->text), "%s", text);
}

static void on_declared(void *ctx)
{
	((struct sim_worker *)ctx)->is_declared = true;
}

static void on_done(void *ctx, uint32_t tensor, uint64_t cookie, int err,
	uint32_t weight)
{
	struct sim_worker *w = ctx;
	uint32_t t = (uint32_t)cookie;

	(void)tensor;
	w->is_open[t] = false;
	if (err) {
		w->n_errors++;
		return;
	}
	w->n_wrong += weight != w->job->n_workers;
	check(w, t, w->round[t]);
	w->round[t]++;
	if (sim_chance(&w->job->rng, 200000))
		w->pause_until_ns =
			w->job->net.now_ns +
			sim_below(&w->job->rng, w->job->pause_ns);
}

static void declare(struct sim_worker *w)
{
	static const char *const names[SIM_TENSORS] = {
		"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias",
		"fc3.weight", "fc3.bias", "fc4.weight", "fc4.bias"};
	struct sw_worker_tensor list[SIM_TENSORS];
	struct sim_job *job = w->job;
	uint32_t n = job->n_tensors, from = (uint32_t)sim_below(&job->rng, n);

	/* Every worker declares in another order. */
	for (uint32_t i = 0; i < n; i++) {
		uint32_t t = (from + i) % n;
		uint32_t extra = t == 0 && w->rank == 0 ? job->wrong_elems : 0;

		w->index[t] = w->engine.n_tensors + i;
		list[i] = (struct sw_worker_tensor){.name = names[t],
			.n_elems = job->n_elems[t] + extra,
			.dtype = job->dtype,
			.priority = t,
			.base = w->data[t]};
	}
	if (sw_worker_declare(&w->engine, list, n))
		w->has_failed = true;
}

static void submit(struct sim_worker *w, uint32_t t)
{
	uint32_t step = w->round[t] + (w->rank ? 0 : w->job->wrong_step);

	fill(w, t, w->round[t]);
	w->is_open[t] = true;
	if (sw_worker_push(&w->engine, w->index[t], step, t))
		w->has_failed = true;
	w->node->loop.tick_at_ns = 0;
}

/* Submit what may be, in an order of this worker's own. */
static void step(void *ctx, uint64_t now_ns)
{
	struct sim_worker *w = ctx;
	struct sim_job *job = w->job;
	uint32_t from = (uint32_t)sim_below(&job->rng, job->n_tensors);

	if (!w->is_running || w->has_failed)
		return;
	if (!w->engine.n_tensors) {
		declare(w);
		w->node->loop.tick_at_ns = 0;
	}
	if (!w->is_declared || now_ns < w->pause_until_ns)
		return;
	for (uint32_t i = 0; i < job->n_tensors; i++) {
		uint32_t t = (from + i) % job->n_tensors;

		if (!w->is_open[t] && w->round[t] < job->n_rounds &&
			sim_chance(&job->rng, 700000))
			submit(w, t);
	}
}

/* --- the job --- */

static void draw_faults(struct sim_job *job)
{
	struct sim_faults *x = &job->net.faults;
	uint64_t *rng = &job->rng;

	x->loss = (uint32_t)sim_below(rng, 4) * (uint32_t)sim_below(rng, 100000);
	x->dup = (uint32_t)sim_below(rng, 3) * (uint32_t)sim_below(rng, 50000);
	x->jitter_ns = sim_below(rng, 3) * sim_below(rng, 100 * SW_US);
	x->corrupt = (uint32_t)sim_below(rng, 2) * (uint32_t)sim_below(rng, 20000);
	x->truncate = (uint32_t)sim_below(rng, 2) * (uint32_t)sim_below(rng, 10000);
	x->nap = (uint32_t)sim_below(rng, 3) * (uint32_t)sim_below(rng, 2000);
	x->nap_ns = sim_below(rng, 2) ? 5 * SW_MS : 300 * SW_MS;
	if (sim_below(rng, 8) == 0) { /* a long job with very late replays */
		x->loss %= 100000;
		x->late = 20000;
		x->late_ns = 300 * SW_S;
		job->pause_ns = 60 * SW_S;
	} else {
		x->late = (uint32_t)sim_below(rng, 20000);
		x->late_ns = 200 * SW_MS;
		job->pause_ns = sim_below(rng, 20 * SW_MS);
	}
}

void sim_job_draw(struct sim_job *job, uint64_t seed)
{
	uint64_t *rng = &job->rng;

	memset(job, 0, sizeof(*job));
	job->seed = seed;
	job->rng = seed * 2 + 1;
	sw_params_init(&job->params);
	sim_net_init(&job->net, seed);
	job->dtype = SW_I32;
	job->n_workers = 1 + (uint32_t)sim_below(rng, 5);
	if (sim_below(rng, 20) == 0)
		job->n_workers = SIM_WORKERS;
	job->n_servers = 1 + (uint32_t)sim_below(rng, 3);
	job->n_tensors = 1 + (uint32_t)sim_below(rng, 4);
	job->n_rounds = 2 + (uint32_t)sim_below(rng, 6);
	for (uint32_t t = 0; t < job->n_tensors; t++)
		job->n_elems[t] = 1 + (uint32_t)sim_below(rng,
					      sim_below(rng, 4) ? 4000 : 60000);
	job->params.payload = sim_below(rng, 3) ? 1344 : 8192;
	job->params.has_crc = true;
	job->params.window_bytes =
		job->params.payload * (1 + (uint32_t)sim_below(rng, 64));
	draw_faults(job);
}

static void open_server(struct sim_job *job, uint32_t i)
{
	struct sim_node *n = sim_net_add(&job->net, SW_PAYLOAD_MAX);

	job->servers[i] = malloc(sizeof(*job->servers[i]));
	if (!job->servers[i] ||
		sw_server_open(job->servers[i], &job->params, &job->env,
			n->ports, 1, 1ULL << 30))
		abort();
	sim_node_start(n, &job->servers[i]->node, job->params.stop_gap);
}

static void open_worker(struct sim_job *job, uint32_t rank)
{
	struct sim_worker *w = &job->workers[rank];
	struct sw_worker_server servers[SIM_SERVERS];
	struct sw_worker_events events = {.state = on_state,
		.declared = on_declared,
		.done = on_done,
		.ctx = w};
	struct sw_worker_job wj = {.job = "sim",
		.node = "sim",
		.rank = (uint16_t)rank,
		.n_members = (uint16_t)job->n_workers,
		.n_local = 1,
		.incarnation = 1,
		.servers = servers,
		.n_servers = job->n_servers};

	for (uint32_t i = 0; i < job->n_servers; i++)
		servers[i] = (struct sw_worker_server){.name = "s",
			.path = {.ip = sim_ip(i), .udp = 5700}};
	w->job = job;
	w->rank = rank;
	w->node = sim_net_add(&job->net, SW_PAYLOAD_MAX);
	w->node->step = step;
	w->node->ctx = w;
	for (uint32_t t = 0; t < job->n_tensors; t++)
		w->data[t] = calloc(job->n_elems[t] + job->wrong_elems, 4);
	if (sw_worker_open(&w->engine, &job->params, &job->env, &events, &wj, 1,
		    job->net.now_ns))
		abort();
	sim_node_start(w->node, &w->engine.node, job->params.stop_gap);
}

void sim_job_open(struct sim_job *job)
{
	job->log = (struct sw_log){.line = print_line,
		.ctx = job,
		.level = job->log.level};
	job->env = (struct sw_env){.log = job->log.level ? &job->log : NULL,
		.sum = sw_sum_best(SW_SUM_AVX512),
		.ctx = job,
		.mem_get = mem_get,
		.mem_put = mem_put,
		.random = env_random};
	for (uint32_t i = 0; i < job->n_servers; i++)
		open_server(job, i);
	for (uint32_t r = 0; r < job->n_workers; r++)
		open_worker(job, r);
}

void sim_job_close(struct sim_job *job)
{
	for (uint32_t r = 0; r < job->n_workers; r++) {
		sw_worker_close(&job->workers[r].engine);
		for (uint32_t t = 0; t < job->n_tensors; t++)
			free(job->workers[r].data[t]);
	}
	for (uint32_t i = 0; i < job->n_servers; i++) {
		sw_server_close(job->servers[i]);
		free(job->servers[i]);
	}
	sim_net_fini(&job->net);
}

static bool has_completed(const struct sim_worker *w)
{
	for (uint32_t t = 0; t < w->job->n_tensors; t++)
		if (w->round[t] < w->job->n_rounds)
			return false;
	return true;
}

static bool is_over(void *ctx)
{
	struct sim_job *job = ctx;
	bool all = true;

	for (uint32_t r = 0; r < job->n_workers; r++) {
		if (job->workers[r].has_failed)
			return true;
		all = all && has_completed(&job->workers[r]);
	}
	return all;
}

bool sim_job_run(struct sim_job *job, uint64_t limit_ns)
{
	bool all = sim_net_run(
		&job->net, job->net.now_ns + limit_ns, is_over, job);

	for (uint32_t r = 0; r < job->n_workers; r++)
		all = all && has_completed(&job->workers[r]);
	return all;
}

uint64_t sim_job_wrong(const struct sim_job *job)
{
	uint64_t n = 0;

	for (uint32_t r = 0; r < job->n_workers; r++)
		n += job->workers[r].n_wrong;
	return n;
}
