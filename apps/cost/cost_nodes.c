/* cost_nodes.c - a server and its workers over a wire in one process.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/cost/cost_nodes.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/base/error.h"
#include "pmd/host/memory.h"

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
	return ++((struct cost_nodes *)ctx)->n_random;
}

static void on_state(
	void *ctx, enum sw_worker_state state, int err, const char *text)
{
	struct cost_nodes *x = ctx;

	if (state == SW_WORKER_RUNNING && !*text)
		x->n_running++;
	if (err)
		fprintf(stderr, "sumwire-lab engine: %s\n", text);
	x->err = x->err ? x->err : err;
}

static void on_declared(void *ctx)
{
	((struct cost_nodes *)ctx)->n_declared++;
}

static void on_done(void *ctx, uint32_t tensor, uint32_t local, uint64_t cookie,
	int err, uint32_t weight)
{
	struct cost_nodes *x = ctx;

	x->n_done++;
	x->err = x->err ? x->err : err;
}

static int open_worker(struct cost_nodes *x, uint32_t rank)
{
	const struct sw_worker_server server = {
		.name = "server", .path = {.ip = x->ends[COST_SERVER].port.ip}};
	const struct sw_worker_events events = {.state = on_state,
		.declared = on_declared,
		.done = on_done,
		.ctx = x};
	const struct sw_worker_job job = {.job = "bench",
		.node = "worker",
		.member = (uint16_t)rank,
		.n_members = (uint16_t)x->shape->n_members,
		.n_local = (uint16_t)x->shape->n_local,
		.servers = &server,
		.n_servers = 1,
		.secret = x->shape->is_keyed ? &x->entry.secret : NULL};
	int err = sw_worker_open(&x->workers[rank], &x->params, &x->env,
		&events, &job, &x->ports[COST_WORKERS], 1,
		sw_loop_then(&x->loops[COST_WORKERS]));

	if (err)
		return err;
	x->n_workers++;
	sw_loop_set(&x->loops[COST_WORKERS], rank,
		sw_worker_engine(&x->workers[rank]));
	return 0;
}

/* Return the data of a rank's tensor. */
static char *data_of(
	const struct cost_nodes *x, uint32_t member, uint32_t local, uint32_t i)
{
	const struct cost_shape *s = x->shape;
	uint64_t rank = member * s->n_local + local;

	return x->memory + (rank * s->n_tensors + i) * s->bytes;
}

/* Return the results of a tensor.  A single local rank has one buffer for
 * both. */
static char *results_of(const struct cost_nodes *x, uint32_t member, uint32_t i)
{
	const struct cost_shape *s = x->shape;
	uint64_t first = s->n_local > 1 ? s->n_members * s->n_local : 0;

	return x->memory + ((first + member) * s->n_tensors + i) * s->bytes;
}

/* Open a stream with a window like libsumwire's. */
static int open_stream(struct cost_nodes *x)
{
	uint16_t ranks[SW_MAX_MEMBERS * COST_LOCAL_MAX];
	uint32_t n = x->shape->n_members * x->shape->n_local;
	struct sw_worker_tensor stream = {.name = "stream",
		.window_log2 = 7,
		.n_ranks = n,
		.ranks = ranks};
	int err = 0;

	for (uint16_t i = 0; i < n; i++)
		ranks[i] = i;
	for (uint32_t w = 0; w < x->shape->n_members && !err; w++)
		err = sw_worker_declare(&x->workers[w], &stream, 1);
	return err;
}

static int declare(struct cost_nodes *x)
{
	const struct cost_shape *s = x->shape;
	struct sw_worker_tensor *list = calloc(s->n_tensors, sizeof(*list));
	char(*names)[16] = calloc(s->n_tensors, sizeof(*names));
	int err = list && names ? 0 : SW_ENOMEM;

	for (uint32_t w = 0; w < s->n_members && !err; w++) {
		for (uint32_t i = 0; i < s->n_tensors; i++) {
			snprintf(names[i], sizeof(names[i]), "t%u", i);
			list[i] = (struct sw_worker_tensor){.name = names[i],
				.n_elems = s->bytes / sizeof(float),
				.dtype = SW_F32,
				.priority = i,
				.base = results_of(x, w, i)};
		}
		err = sw_worker_declare(&x->workers[w], list, s->n_tensors);
	}
	free(list);
	free(names);
	return err;
}

static int set_keys(struct cost_nodes *x)
{
	static const uint8_t bytes[SW_SECRET_BYTES] = "known to everybody";

	x->keyring = (struct sw_keyring){.entries = &x->entry, .n = 1};
	sw_server_set_keys(x->server, &x->keyring);
	return sw_secret_init(&x->entry.secret, bytes) ? 0 : SW_EIO;
}

static int open_nodes(struct cost_nodes *x, bool is_sorted, uint64_t now_ns)
{
	int err;

	sw_params_init(&x->params);
	x->params.is_encrypted = x->shape->is_encrypted;
	x->env = (struct sw_env){.log = &x->log,
		.sum = sw_sum_best(x->level),
		.ctx = x,
		.mem_get = mem_get,
		.mem_put = mem_put,
		.random = next_random};
	sw_cost_wire_init(x->ends, is_sorted);
	for (uint32_t i = 0; i < COST_ENDS; i++) {
		x->ports[i] = &x->ends[i].port;
		sw_loop_init(&x->loops[i], &x->ports[i], 1, x->params.stop_gap,
			now_ns);
	}
	err = sw_server_open(&x->server, &x->params, &x->env,
		&x->ports[COST_SERVER], 1, UINT64_MAX / 2);
	if (!err && x->shape->is_keyed)
		err = set_keys(x);
	if (!err)
		sw_loop_set(
			&x->loops[COST_SERVER], 0, sw_server_engine(x->server));
	for (uint32_t i = 0; i < x->shape->n_members && !err; i++)
		err = open_worker(x, i);
	return err;
}

int sw_cost_nodes_open(struct cost_nodes *x, const struct cost_shape *shape,
	bool is_sorted, uint64_t now_ns)
{
	x->shape = shape;
	x->memory_bytes = shape->bytes * shape->n_tensors * shape->n_members *
			  (shape->n_local + (shape->n_local > 1));
	x->memory = sw_memory_get(x->memory_bytes, SW_NUMA_ANY);
	x->workers = aligned_alloc(64, shape->n_members * sizeof(*x->workers));
	return x->memory && x->workers ? open_nodes(x, is_sorted, now_ns)
				       : SW_ENOMEM;
}

/* Register where each of several local ranks has its data. */
static void name_sources(struct cost_nodes *x)
{
	const struct cost_shape *s = x->shape;
	uint32_t n = s->n_local > 1 ? sw_cost_submits(s) : 0;

	for (uint32_t k = 0; k < n; k++) {
		uint32_t rank = k / s->n_tensors, i = k % s->n_tensors;
		uint32_t member = rank / s->n_local, local = rank % s->n_local;

		sw_worker_source(&x->workers[member], i, local,
			data_of(x, member, local, i));
	}
}

int sw_cost_nodes_start(struct cost_nodes *x)
{
	x->turns(x, &x->n_running, x->shape->n_members);
	if (!x->err)
		x->err = x->shape->is_collective ? open_stream(x) : declare(x);
	x->turns(x, &x->n_declared, x->shape->n_members);
	if (!x->err && !x->shape->is_collective)
		name_sources(x);
	return x->err;
}

static int submit(
	struct cost_nodes *x, uint32_t member, uint32_t local, uint32_t i)
{
	const struct cost_shape *s = x->shape;
	uint32_t n_parts = s->is_gather ? s->n_members * s->n_local : 1;
	uint64_t part = s->bytes / n_parts / sizeof(float) * sizeof(float);
	char *data = data_of(x, member, local, i);
	const struct sw_worker_coll coll = {.local = local,
		.kind = s->is_gather ? SW_ALL_GATHER : SW_ALL_REDUCE,
		.dtype = SW_F32,
		.n_elems = part / sizeof(float),
		.from = data +
			(s->is_gather ? member * s->n_local + local : 0) * part,
		.to = data,
		.from_bytes = part,
		.to_bytes = x->shape->bytes};

	return sw_worker_coll(&x->workers[member], &coll);
}

void sw_cost_nodes_push(struct cost_nodes *x, uint32_t round)
{
	const struct cost_shape *s = x->shape;
	uint32_t n = sw_cost_submits(s);

	x->n_done = 0;
	for (uint32_t k = 0; k < n && !x->err; k++) {
		uint32_t member = k % s->n_members, at = k / s->n_members;
		uint32_t local = at % s->n_local, i = at / s->n_local;
		const struct sw_worker_round ask = {.tensor = i,
			.step = round,
			.local = local,
			.cookie = k};

		x->err = s->is_collective
				 ? submit(x, member, local, i)
				 : sw_worker_begin(&x->workers[member], &ask);
	}
}

void sw_cost_nodes_close(struct cost_nodes *x)
{
	for (uint32_t i = 0; i < x->n_workers; i++)
		sw_worker_close(&x->workers[i]);
	sw_server_close(x->server);
	free(x->workers);
	sw_memory_put(x->memory, x->memory_bytes);
}
