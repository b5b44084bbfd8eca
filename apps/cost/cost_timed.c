/* cost_timed.c - the server's CPU time per packet, in two threads.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The server has its own loop, and the workers share one.  They take turns, so
 * nothing is locked.  Each has its own thread, so that on two cores the server
 * has its caches to itself, as on its own machine.
 */
#include "apps/cost/cost_timed.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "apps/cli/clock.h"
#include "engine/base/error.h"

enum {
	NOBODY = COST_ENDS, /* turn at the end of the run */
	SPINS = 1000,       /* reads of the turn before a yield */
	/* rounds with one member; fewer with more, but at least */
	ROUNDS = 200,
	ROUNDS_MIN = 15,
};

struct threads {
	struct cost_nodes nodes;      /* first, for casts */
	uint64_t spent_ns[COST_ENDS]; /* CPU time of turns */
	uint64_t port_ns[COST_ENDS];  /* CPU time of their sends */
	pthread_t thread;             /* the server's thread */
	struct cost_fold fold;
	bool is_fold; /* turns run only these kernels */
	enum cost_kernels kernels;
	uint64_t folded; /* position of these kernels in the round */
	uint32_t round;
	_Atomic uint32_t turn; /* thread that owns all other fields */
};

/* Pin the server to the last CPU that this process may use, and the workers to
 * the first one.  Otherwise the kernel may put a thread that yields beside the
 * other thread, and then they share caches. */
static void pin_thread(uint32_t who)
{
	cpu_set_t all, one;
	int first = CPU_SETSIZE, last = 0;

	if (pthread_getaffinity_np(pthread_self(), sizeof(all), &all))
		return;
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &all)) {
			first = i < first ? i : first;
			last = i;
		}
	CPU_ZERO(&one);
	CPU_SET(who == COST_SERVER ? last : first, &one);
	pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
}

/* Wait for the turn of @whose.  Returns false if the run has ended. */
static bool await_turn(struct threads *x, uint32_t whose)
{
	uint32_t now, n = 0;

	while ((now = atomic_load(&x->turn)) != whose && now != NOBODY)
		if (++n % SPINS == 0)
			sched_yield();
	return now == whose;
}

/* Run one burst of kernels that must be fed; otherwise the whole round. */
static void fold(struct threads *x)
{
	do
		x->folded = sw_cost_fold_some(
			&x->fold, x->kernels, x->round, x->folded);
	while (x->folded && x->kernels != COST_KERNELS_FED);
}

static void take_turn(struct threads *x, uint32_t whose)
{
	uint64_t from = sw_cpu_ns(), end;

	if (x->is_fold)
		fold(x);
	else
		sw_loop_turn(&x->nodes.loops[whose], sw_now_ns());
	end = sw_cpu_ns();
	x->spent_ns[whose] += end - from;
	sw_cost_wire_carry(&x->nodes.ends[whose]);
	x->port_ns[whose] += sw_cpu_ns() - end;
	atomic_store(&x->turn, COST_ENDS - 1 - whose);
}

static void *serve(void *ctx)
{
	struct threads *x = ctx;

	pin_thread(COST_SERVER);
	while (await_turn(x, COST_SERVER))
		take_turn(x, COST_SERVER);
	return NULL;
}

/* Take the workers' turns, and give the server its turns, until *@count is
 * @n. */
static void turn_until(
	struct cost_nodes *nodes, const uint32_t *count, uint32_t n)
{
	struct threads *x = (struct threads *)nodes;

	while (*count < n && !nodes->err) {
		take_turn(x, COST_WORKERS);
		await_turn(x, COST_WORKERS);
	}
}

/* Run only the kernels, in the server's thread.  Returns their CPU time in
 * ns. */
static double fold_round(
	struct threads *x, enum cost_kernels kernels, uint32_t round)
{
	x->spent_ns[COST_SERVER] = 0;
	x->kernels = kernels;
	x->round = round;
	x->is_fold = true;
	do {
		if (kernels == COST_KERNELS_FED)
			sw_cost_fold_feed(&x->fold);
		atomic_store(&x->turn, COST_SERVER);
		await_turn(x, COST_WORKERS);
	} while (x->folded);
	x->is_fold = false;
	return (double)x->spent_ns[COST_SERVER];
}

/* Samples by round. */
struct samples {
	double tensor_us[ROUNDS], server_ns[ROUNDS], worker_ns[ROUNDS];
	double port_ns[ROUNDS], gbit_s[ROUNDS];
	double fold_gbit_s[COST_N_KERNELS][ROUNDS];
	double ratio[COST_N_KERNELS][ROUNDS];
	uint64_t n_packets, n_frames;
};

/* CPU time of a round, in ns. fold 0: these kernels are missing. */
struct spent {
	double server, worker, port, fold[COST_N_KERNELS];
	uint64_t n_packets, n_frames;
};

static void note(const struct cost_shape *s, const struct spent *t, uint32_t i,
	struct samples *out)
{
	double n = (double)s->n_members * s->n_tensors;
	double bits = 8 * n * (double)s->bytes;

	out->n_packets = t->n_packets;
	out->n_frames = t->n_frames;
	out->tensor_us[i] = (t->server + t->worker) / 1e3 / n;
	out->server_ns[i] = t->server / (double)t->n_packets;
	out->worker_ns[i] = t->worker / (double)t->n_packets;
	out->port_ns[i] = t->port / (double)t->n_packets;
	out->gbit_s[i] = bits / t->server;
	for (uint32_t k = 0; k < COST_N_KERNELS; k++) {
		out->fold_gbit_s[k][i] = t->fold[k] ? bits / t->fold[k] : 0;
		out->ratio[k][i] = t->fold[k] / t->server;
	}
}

/* Push and pull all tensors of all members, then run only the kernels. */
static void sample(struct threads *x, uint32_t round, struct samples *out)
{
	struct cost_nodes *nodes = &x->nodes;
	const struct cost_shape *s = nodes->shape;
	const struct sw_stats *st = sw_server_stats(nodes->server);
	uint64_t packets = st->push_folded + st->results, from = sw_cpu_ns();
	uint64_t frames = st->rx_frames + st->tx_frames;
	struct spent t = {0};

	x->spent_ns[COST_SERVER] = x->spent_ns[COST_WORKERS] = 0;
	x->port_ns[COST_SERVER] = 0;
	sw_cost_nodes_push(nodes, round);
	from = sw_cpu_ns() - from; /* time to submit */
	turn_until(nodes, &nodes->n_done, sw_cost_submits(s));
	t.server = (double)x->spent_ns[COST_SERVER];
	t.worker = (double)(from + x->spent_ns[COST_WORKERS]);
	t.port = (double)x->port_ns[COST_SERVER];
	t.n_packets = st->push_folded + st->results - packets;
	t.n_frames = st->rx_frames + st->tx_frames - frames;
	/* The first kernels find the caches as the server left them, so take
	 * turns to be first. */
	for (uint32_t i = 0; i < COST_N_KERNELS; i++) {
		uint32_t k = (round + i) % COST_N_KERNELS;

		if (k != COST_KERNELS_ISAL || x->fold.has_isal)
			t.fold[k] = fold_round(x, k, round);
	}
	if (round >= COST_WARM_ROUNDS && !nodes->err)
		note(s, &t, round - COST_WARM_ROUNDS, out);
}

static void sum_up(struct samples *s, uint32_t n, struct cost_time *out)
{
	*out = (struct cost_time){.n_rounds = n,
		.n_packets = s->n_packets,
		.n_frames = s->n_frames};
	for (uint32_t i = 0; i < n; i++)
		out->mean_us += s->tensor_us[i] / n;
	out->tensor_us = sw_quartiles_of(s->tensor_us, n);
	out->server_ns = sw_quartiles_of(s->server_ns, n);
	out->worker_ns = sw_quartiles_of(s->worker_ns, n);
	out->port_ns = sw_quartiles_of(s->port_ns, n);
	out->gbit_s = sw_quartiles_of(s->gbit_s, n);
	for (uint32_t k = 0; k < COST_N_KERNELS; k++)
		out->alone[k] = (struct cost_alone){
			sw_quartiles_of(s->fold_gbit_s[k], n),
			sw_quartiles_of(s->ratio[k], n)};
}

static int run(struct threads *x, struct cost_time *out)
{
	uint32_t n = x->nodes.shape->n_members;
	uint32_t n_rounds = ROUNDS / n < ROUNDS_MIN ? ROUNDS_MIN : ROUNDS / n;
	struct samples s;
	int err = sw_cost_nodes_start(&x->nodes);

	for (uint32_t i = 0; i < n_rounds + COST_WARM_ROUNDS && !err; i++) {
		sample(x, i, &s);
		err = x->nodes.err;
	}
	if (!err)
		sum_up(&s, n_rounds, out);
	return err;
}

/* Run the rounds, with a thread for the server. */
static int run_threads(struct threads *x, struct cost_time *out)
{
	cpu_set_t before;
	int err;

	x->turn = COST_WORKERS;
	if (pthread_create(&x->thread, NULL, serve, x))
		return SW_ENOMEM;
	pthread_getaffinity_np(pthread_self(), sizeof(before), &before);
	pin_thread(COST_WORKERS);
	err = run(x, out);
	atomic_store(&x->turn, NOBODY);
	pthread_join(x->thread, NULL);
	pthread_setaffinity_np(pthread_self(), sizeof(before), &before);
	return err;
}

int sw_cost_time(const struct cost_shape *shape, struct cost_time *out)
{
	struct threads *x = aligned_alloc(64, sizeof(*x));
	int err;

	if (!x)
		return SW_ENOMEM;
	memset(x, 0, sizeof(*x));
	x->nodes.turns = turn_until;
	x->nodes.level = SW_SUM_AVX512;
	err = sw_cost_nodes_open(&x->nodes, shape, false, sw_now_ns());
	for (uint32_t i = 0; i < COST_ENDS; i++)
		x->nodes.ends[i].is_apart = true;
	if (!err)
		err = sw_cost_fold_open(&x->fold, shape, x->nodes.level);
	if (!err)
		err = run_threads(x, out);
	out->has_isal = x->fold.has_isal;
	sw_cost_fold_close(&x->fold);
	sw_cost_nodes_close(&x->nodes);
	free(x);
	return err;
}
