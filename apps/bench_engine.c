/* bench_engine.c - sumwire bench engine: what one tensor costs the engine.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A worker and a server in one thread, joined by the engine's loopback: no
 * port, no process, no wait.  CPU time of the thread, so that other programs
 * hardly disturb it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "apps/args.h"
#include "apps/cmd.h"
#include "apps/daemon.h"
#include "engine/error.h"
#include "engine/loopback.h"
#include "engine/server.h"
#include "engine/worker.h"
#include "pmd/host/memory.h"

enum { SERVER = 1, WORKER = 2, ROUNDS = 200, TENSORS_MAX = SW_TENSORS };

struct bench {
	struct sw_env env;
	struct sw_log log;
	struct sw_loopback port;
	struct sw_port *ports[1];
	struct sw_loop loop;
	struct sw_server server;
	struct sw_worker worker;
	char *memory;
	uint64_t memory_bytes;
	uint64_t n_random; /* nothing here has to be secret */
	uint32_t n_tensors, n_done;
	bool is_running, is_declared;
	int err;
};

static void *mem_get(void *ctx, uint64_t bytes)
{
	return sw_memory_get(bytes, SW_NUMA_ANY);
}

static void mem_put(void *ctx, void *mem, uint64_t bytes)
{
	sw_memory_put(mem, bytes);
}

static uint64_t next_random(void *ctx)
{
	return ++((struct bench *)ctx)->n_random;
}

static void on_state(
	void *ctx, enum sw_worker_state state, int err, const char *text)
{
	struct bench *b = ctx;

	b->is_running |= state == SW_WORKER_RUNNING;
	if (err)
		fprintf(stderr, "sumwire bench engine: %s\n", text);
	b->err = b->err ? b->err : err;
}

static void on_declared(void *ctx)
{
	((struct bench *)ctx)->is_declared = true;
}

static void on_done(void *ctx, uint32_t tensor, uint32_t local, uint64_t cookie,
	int err, uint32_t weight)
{
	struct bench *b = ctx;

	b->n_done++;
	b->err = b->err ? b->err : err;
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * SW_S + (uint64_t)t.tv_nsec;
}

/* Turn until *@flag or an error. */
static void turn_until(struct bench *b, const bool *flag)
{
	while (!*flag && !b->err)
		sw_loop_turn(&b->loop, sw_now_ns());
}

static int open_nodes(struct bench *b, const struct sw_params *params)
{
	const struct sw_worker_server server = {.name = "server",
		.path = {.ip = SW_LOOPBACK_IP, .udp = SERVER}};
	const struct sw_worker_events events = {.state = on_state,
		.declared = on_declared,
		.done = on_done,
		.ctx = b};
	const struct sw_worker_job job = {.job = "bench",
		.node = "worker",
		.n_members = 1,
		.n_local = 1,
		.incarnation = 1,
		.servers = &server,
		.n_servers = 1};
	int err;

	b->log = (struct sw_log){0};
	b->env = (struct sw_env){.log = &b->log,
		.sum = sw_sum_best(SW_SUM_AVX512),
		.ctx = b,
		.mem_get = mem_get,
		.mem_put = mem_put,
		.random = next_random};
	sw_loopback_init(&b->port);
	b->ports[0] = &b->port.port;
	sw_loop_init(&b->loop, b->ports, 1, params->stop_gap, sw_now_ns());
	err = sw_server_open(
		&b->server, params, &b->env, b->ports, 1, UINT64_MAX / 2);
	if (err)
		return err;
	err = sw_worker_open(&b->worker, params, &b->env, &events, &job,
		b->ports, 1, sw_now_ns());
	if (err) {
		sw_server_close(&b->server);
		return err;
	}
	sw_loop_set(&b->loop, SERVER, &b->server.node);
	sw_loop_set(&b->loop, WORKER, &b->worker.node);
	return 0;
}

static int declare(struct bench *b, uint64_t bytes)
{
	struct sw_worker_tensor *list = calloc(b->n_tensors, sizeof(*list));
	char(*names)[16] = calloc(b->n_tensors, sizeof(*names));
	int err = list && names && b->memory ? 0 : SW_ENOMEM;

	for (uint32_t i = 0; i < b->n_tensors && !err; i++) {
		snprintf(names[i], sizeof(names[i]), "t%u", i);
		list[i] = (struct sw_worker_tensor){.name = names[i],
			.n_elems = bytes / sizeof(float),
			.dtype = SW_F32,
			.priority = i,
			.base = b->memory + i * bytes};
	}
	if (!err)
		err = sw_worker_declare(&b->worker, list, b->n_tensors);
	free(list);
	free(names);
	return err;
}

/* CPU nanoseconds of one round of all tensors. */
static uint64_t round_ns(struct bench *b, uint32_t step)
{
	uint64_t from = cpu_ns();

	b->n_done = 0;
	for (uint32_t i = 0; i < b->n_tensors && !b->err; i++)
		b->err = sw_worker_push(&b->worker, i, step, i);
	while (b->n_done < b->n_tensors && !b->err)
		sw_loop_turn(&b->loop, sw_now_ns());
	return cpu_ns() - from;
}

static int run(struct bench *b, uint64_t bytes)
{
	uint64_t best = UINT64_MAX, sum = 0;

	turn_until(b, &b->is_running);
	if (!b->err)
		b->err = declare(b, bytes);
	turn_until(b, &b->is_declared);
	for (uint32_t i = 0; i < ROUNDS && !b->err; i++) {
		uint64_t ns = round_ns(b, i);

		best = ns < best ? ns : best;
		sum += ns;
	}
	if (b->err)
		return b->err;
	printf("%u tensors of %llu bytes: %.3f us of engine each (mean of %u "
	       "rounds; best %.3f), worker and server together\n",
		b->n_tensors, (unsigned long long)bytes,
		(double)sum / 1e3 / ROUNDS / b->n_tensors, ROUNDS,
		(double)best / 1e3 / b->n_tensors);
	return 0;
}

int sw_cmd_bench_engine(int argc, char **argv)
{
	uint64_t bytes = 256;
	uint32_t n_tensors = 1000;
	const struct sw_arg rows[] = {
		{"--size", SW_ARG_BYTES, {.u64 = &bytes}, 64, 1 << 20,
			"of a tensor, a multiple of 64"},
		{"--tensors", SW_ARG_U32, {.u32 = &n_tensors}, 1, TENSORS_MAX,
			"pushed together"}};
	const struct sw_args args = {.name = "bench engine",
		.summary = "measure the CPU time that a tensor costs the "
			   "engine, without ports and processes",
		.rows = rows,
		.n_rows = sizeof(rows) / sizeof(rows[0])};
	struct sw_params params;
	struct bench *b;
	int err = sw_args_parse(&args, argc, argv);

	if (err)
		return err == SW_ARGS_HELP ? 0 : 2;
	if (bytes % 64) {
		fprintf(stderr,
			"sumwire bench engine: --size %llu is not a multiple "
			"of 64\n",
			(unsigned long long)bytes);
		return 2;
	}
	b = calloc(1, sizeof(*b));
	if (!b)
		return 1;
	sw_params_init(&params);
	b->n_tensors = n_tensors;
	b->memory_bytes = bytes * n_tensors;
	b->memory = sw_memory_get(b->memory_bytes, SW_NUMA_ANY);
	err = open_nodes(b, &params);
	if (!err) {
		err = run(b, bytes);
		sw_worker_close(&b->worker);
		sw_server_close(&b->server);
	}
	if (err)
		fprintf(stderr, "sumwire bench engine: %s\n",
			sw_error_text(err));
	sw_memory_put(b->memory, b->memory_bytes);
	free(b);
	return err ? 1 : 0;
}
