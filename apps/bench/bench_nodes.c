/* bench_nodes.c - a server and its workers in two threads, and what they cost.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The server has a loop of its own, the workers share one.  They take turns, so
 * that nothing is locked; but each has a thread, so that on two cores the
 * server has its caches for itself, as on a machine of its own.
 */
#include "apps/bench/bench_nodes.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "apps/cli/clock.h"
#include "engine/base/error.h"
#include "engine/loop/loop.h"
#include "engine/server/server.h"
#include "engine/worker/worker.h"
#include "pmd/host/memory.h"
#include "sum/sum.h"

enum {
	SERVER,  /* end of the wire, and */
	WORKERS, /* the other */
	ENDS,
	NOBODY = ENDS,   /* takes a turn any more */
	SPINS = 1000,    /* looks at whose turn it is before a yield */
	WARM_ROUNDS = 2, /* both generations of a cell are made present */
	ROUNDS = 200,    /* of one member; of more the fewer, but */
	ROUNDS_MIN = 10,
};

/* --- the wire --- */

/* A frame is copied as a driver would: so what an end reads lies in the same
 * few hundred KB, however many members and tensors there are. */
struct slot {
	uint32_t payload_len;
	uint16_t from, to; /* endpoints */
	uint8_t head[SW_HEAD_BYTES];
	_Alignas(64) uint8_t payload[SW_PAYLOAD_MAX];
};

/* One end: what lies in its slots was sent by its peer. */
struct end {
	struct sw_port port; /* first: it is cast back */
	struct end *peer;
	uint32_t n, n_given;
	struct slot slots[SW_RX_BURST];
};

static uint32_t wire_rx(
	struct sw_port *port, struct sw_rx_frame *out, uint32_t max)
{
	struct end *e = (struct end *)port;

	for (e->n_given = 0; e->n_given < e->n && e->n_given < max;
		e->n_given++) {
		const struct slot *s = &e->slots[e->n_given];

		out[e->n_given] = (struct sw_rx_frame){.data = s->head,
			.payload = s->payload,
			.len = SW_HEAD_BYTES + s->payload_len,
			.endpoint = s->to,
			.from = {.ip = e->peer->port.ip, .udp = s->from}};
	}
	return e->n_given;
}

/* A burst is all that fits, so it is always the whole. */
static void wire_rx_release(struct sw_port *port)
{
	struct end *e = (struct end *)port;

	e->n -= e->n_given;
}

static uint32_t wire_tx_room(struct sw_port *port)
{
	return SW_RX_BURST - ((struct end *)port)->peer->n;
}

static void wire_tx(struct sw_port *port, const struct sw_tx_frame *f)
{
	struct end *to = ((struct end *)port)->peer;
	struct slot *s = &to->slots[to->n++];

	memcpy(s->head, f->head, SW_HEAD_BYTES);
	if (f->payload_len)
		memcpy(s->payload, f->payload, f->payload_len);
	s->payload_len = f->payload_len;
	s->from = f->endpoint;
	s->to = f->to.udp;
}

static void wire_tx_flush(struct sw_port *port)
{
	(void)port; /* tx was all */
}

static const struct sw_port_ops wire_ops = {.rx = wire_rx,
	.rx_release = wire_rx_release,
	.tx_room = wire_tx_room,
	.tx = wire_tx,
	.tx_flush = wire_tx_flush};

/* --- the nodes --- */

struct nodes {
	const struct bench_shape *shape;
	struct sw_params params;
	struct sw_env env;
	struct sw_log log;
	struct end ends[ENDS];
	struct sw_port *ports[ENDS];
	struct sw_loop loops[ENDS];
	struct sw_server *server;
	struct sw_worker *workers;
	uint32_t n_workers; /* that are open */
	char *memory;
	uint64_t memory_bytes;
	uint64_t n_random; /* nothing here has to be secret */
	uint32_t n_running, n_declared, n_done;
	uint64_t spent_ns[ENDS]; /* CPU time of turns */
	pthread_t thread;        /* the server's */
	_Atomic uint32_t turn;   /* whose it is; all else is that thread's */
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
	return ++((struct nodes *)ctx)->n_random;
}

static void on_state(
	void *ctx, enum sw_worker_state state, int err, const char *text)
{
	struct nodes *x = ctx;

	if (state == SW_WORKER_RUNNING && !*text)
		x->n_running++;
	if (err)
		fprintf(stderr, "sumwire bench engine: %s\n", text);
	x->err = x->err ? x->err : err;
}

static void on_declared(void *ctx)
{
	((struct nodes *)ctx)->n_declared++;
}

static void on_done(void *ctx, uint32_t tensor, uint32_t local, uint64_t cookie,
	int err, uint32_t weight)
{
	struct nodes *x = ctx;

	x->n_done++;
	x->err = x->err ? x->err : err;
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * SW_S + (uint64_t)t.tv_nsec;
}

/* Wait for one's turn; false: there is none any more. */
static bool await_turn(struct nodes *x, uint32_t whose)
{
	uint32_t now, n = 0;

	while ((now = atomic_load(&x->turn)) != whose && now != NOBODY)
		if (++n % SPINS == 0)
			sched_yield();
	return now == whose;
}

static void take_turn(struct nodes *x, uint32_t whose)
{
	uint64_t from = cpu_ns();

	sw_loop_turn(&x->loops[whose], sw_now_ns());
	x->spent_ns[whose] += cpu_ns() - from;
	atomic_store(&x->turn, ENDS - 1 - whose);
}

static void *serve(void *ctx)
{
	struct nodes *x = ctx;

	while (await_turn(x, SERVER))
		take_turn(x, SERVER);
	return NULL;
}

/* Take turns until *@count is @n, or an error; then it is the workers'. */
static void turn_until(struct nodes *x, const uint32_t *count, uint32_t n)
{
	while (*count < n && !x->err) {
		take_turn(x, WORKERS);
		await_turn(x, WORKERS);
	}
}

static int open_worker(struct nodes *x, uint32_t rank)
{
	const struct sw_worker_server server = {
		.name = "server", .path = {.ip = x->ends[SERVER].port.ip}};
	const struct sw_worker_events events = {.state = on_state,
		.declared = on_declared,
		.done = on_done,
		.ctx = x};
	const struct sw_worker_job job = {.job = "bench",
		.node = "worker",
		.rank = (uint16_t)rank,
		.n_members = (uint16_t)x->shape->n_members,
		.n_local = 1,
		.servers = &server,
		.n_servers = 1};
	int err = sw_worker_open(&x->workers[rank], &x->params, &x->env,
		&events, &job, &x->ports[WORKERS], 1,
		sw_loop_then(&x->loops[WORKERS]));

	if (err)
		return err;
	x->n_workers++;
	sw_loop_set(
		&x->loops[WORKERS], rank, sw_worker_node(&x->workers[rank]));
	return 0;
}

static int open_nodes(struct nodes *x)
{
	int err;

	sw_params_init(&x->params);
	x->env = (struct sw_env){.log = &x->log,
		.sum = sw_sum_best(SW_SUM_AVX512),
		.ctx = x,
		.mem_get = mem_get,
		.mem_put = mem_put,
		.random = next_random};
	for (uint32_t i = 0; i < ENDS; i++) {
		x->ends[i].port = (struct sw_port){.ops = &wire_ops,
			.name = "wire",
			.ip = i + 1,
			.max_payload = SW_PAYLOAD_MAX};
		x->ends[i].peer = &x->ends[ENDS - 1 - i];
		x->ports[i] = &x->ends[i].port;
		sw_loop_init(&x->loops[i], &x->ports[i], 1, x->params.stop_gap,
			sw_now_ns());
	}
	err = sw_server_open(&x->server, &x->params, &x->env, &x->ports[SERVER],
		1, UINT64_MAX / 2);
	if (!err)
		sw_loop_set(&x->loops[SERVER], 0, sw_server_node(x->server));
	for (uint32_t i = 0; i < x->shape->n_members && !err; i++)
		err = open_worker(x, i);
	return err;
}

static int declare(struct nodes *x)
{
	const struct bench_shape *s = x->shape;
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
				.base = x->memory +
					(w * s->n_tensors + i) * s->bytes};
		}
		err = sw_worker_declare(&x->workers[w], list, s->n_tensors);
	}
	free(list);
	free(names);
	return err;
}

/* --- what it costs --- */

struct samples {
	double all_us[ROUNDS], packet_ns[ROUNDS];
	uint64_t n_packets, n_frames;
};

/* All members push all tensors, and get them. */
static void sample(struct nodes *x, uint32_t round, struct samples *out)
{
	const struct bench_shape *s = x->shape;
	const struct sw_stats *st = sw_server_stats(x->server);
	uint32_t n = s->n_members * s->n_tensors;
	uint64_t before = st->push_folded + st->results, from = cpu_ns();
	uint64_t frames = st->rx_frames + st->tx_frames;

	x->n_done = 0;
	x->spent_ns[SERVER] = x->spent_ns[WORKERS] = 0;
	for (uint32_t i = 0; i < n && !x->err; i++)
		x->err = sw_worker_push(&x->workers[i % s->n_members],
			i / s->n_members, round, i);
	from = cpu_ns() - from; /* what it took to submit */
	turn_until(x, &x->n_done, n);
	if (round < WARM_ROUNDS || x->err)
		return;
	out->n_packets = st->push_folded + st->results - before;
	out->n_frames = st->rx_frames + st->tx_frames - frames;
	out->all_us[round - WARM_ROUNDS] =
		(double)(from + x->spent_ns[SERVER] + x->spent_ns[WORKERS]) /
		1e3 / n;
	out->packet_ns[round - WARM_ROUNDS] =
		(double)x->spent_ns[SERVER] / (double)out->n_packets;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void sum_up(struct samples *s, uint32_t n, struct bench_cost *out)
{
	*out = (struct bench_cost){.n_rounds = n,
		.n_packets = s->n_packets,
		.n_frames = s->n_frames};
	for (uint32_t i = 0; i < n; i++)
		out->mean_us += s->all_us[i] / n;
	qsort(s->all_us, n, sizeof(double), compare);
	qsort(s->packet_ns, n, sizeof(double), compare);
	out->best_us = s->all_us[0];
	out->packet_ns = s->packet_ns[n / 2];
	out->packet_best_ns = s->packet_ns[0];
}

static int run(struct nodes *x, struct bench_cost *out)
{
	uint32_t n = x->shape->n_members;
	uint32_t n_rounds = ROUNDS / n < ROUNDS_MIN ? ROUNDS_MIN : ROUNDS / n;
	struct samples s;

	turn_until(x, &x->n_running, n);
	if (!x->err)
		x->err = declare(x);
	turn_until(x, &x->n_declared, n);
	for (uint32_t i = 0; i < n_rounds + WARM_ROUNDS && !x->err; i++)
		sample(x, i, &s);
	if (!x->err)
		sum_up(&s, n_rounds, out);
	return x->err;
}

static void close_nodes(struct nodes *x)
{
	if (x->turn != NOBODY) {
		atomic_store(&x->turn, NOBODY);
		pthread_join(x->thread, NULL);
	}
	for (uint32_t i = 0; i < x->n_workers; i++)
		sw_worker_close(&x->workers[i]);
	sw_server_close(x->server);
	free(x->workers);
	sw_memory_put(x->memory, x->memory_bytes);
	free(x);
}

int sw_bench_nodes(const struct bench_shape *shape, struct bench_cost *out)
{
	struct nodes *x = aligned_alloc(64, sizeof(*x));
	int err;

	if (!x)
		return SW_ENOMEM;
	memset(x, 0, sizeof(*x));
	x->shape = shape;
	x->turn = NOBODY;
	x->memory_bytes = shape->bytes * shape->n_tensors * shape->n_members;
	x->memory = sw_memory_get(x->memory_bytes, SW_NUMA_ANY);
	x->workers = aligned_alloc(64, shape->n_members * sizeof(*x->workers));
	err = x->memory && x->workers ? open_nodes(x) : SW_ENOMEM;
	if (!err) {
		x->turn = WORKERS;
		err = pthread_create(&x->thread, NULL, serve, x) ? SW_ENOMEM
								 : 0;
		if (err)
			x->turn = NOBODY;
	}
	if (!err)
		err = run(x, out);
	close_nodes(x);
	return err;
}
