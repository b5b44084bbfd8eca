/* trace_huge.c - the work per turn is independent of the size: 64 GiB.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A server and two workers use memory that has no pages until its first write.
 * The test counts the instructions of every engine call (test/support/steps.h),
 * from the declaration to the end of the job. A walk over the 8 million chunks,
 * or over their state, would take tens of millions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/base/error.h"
#include "engine/server/server_int.h"
#include "engine/worker/link.h"
#include "test/sim/net.h"
#include "test/sim/traces.h"
#include "test/support/steps.h"

enum {
	/* Limit of instructions of one call, which may have a burst of 64
	 * frames; 9,000 suffice. */
	STEPS_MAX = 50000,
	N_WORKERS = 2,
	N_NODES = 1 + N_WORKERS,
	LATE = 2,          /* least number of folded frames */
	RATE = 1000000000, /* a worker's: few frames, counting is slow */
};

#define BYTES (64ULL << 30)

/* An engine with counted calls. */
struct counted {
	struct sw_engine base; /* first: cast back */
	struct sw_engine *engine;
};

struct scene {
	struct sim_net net;
	struct sw_params params;
	struct sw_log log;
	struct sw_env env;
	uint64_t rng;
	struct sw_server *srv;
	struct sw_worker w[N_WORKERS];
	struct counted at[N_NODES];
	void *data[N_WORKERS];
	bool is_counting;
	uint64_t most; /* most instructions of a call */
	uint32_t n_declared, n_done, n_failed, n_left;
	int err; /* error of the last completed call */
};

/* --- counting --- */

static struct scene *scene(void)
{
	static struct scene s;

	return &s;
}

static void begin(void)
{
	if (scene()->is_counting)
		steps_begin(STEPS_MAX);
}

static void end(void)
{
	if (scene()->is_counting)
		scene()->most = sw_max64(scene()->most, steps_end());
}

static void rx(struct sw_engine *base, uint64_t now_ns, uint32_t port_i,
	const struct sw_rx_frame *frames, uint32_t n)
{
	struct sw_engine *e = ((struct counted *)base)->engine;

	begin();
	e->rx(e, now_ns, port_i, frames, n);
	end();
}

static uint64_t tick(struct sw_engine *base, uint64_t now_ns, uint64_t gap_ns)
{
	struct sw_engine *e = ((struct counted *)base)->engine;
	uint64_t at;

	begin();
	at = e->tick(e, now_ns, gap_ns);
	end();
	return at;
}

static uint32_t tx(struct sw_engine *base, uint64_t now_ns, uint32_t port_i,
	struct sw_tx_frame *out, uint32_t max)
{
	struct sw_engine *e = ((struct counted *)base)->engine;
	uint32_t n;

	e->holds_data = base->holds_data;
	begin();
	n = e->tx(e, now_ns, port_i, out, max);
	end();
	return n;
}

static bool is_busy(const struct sw_engine *base)
{
	const struct sw_engine *e = ((const struct counted *)base)->engine;

	return e->is_busy(e);
}

static void between_turns(void *ctx, uint64_t now_ns)
{
	(void)now_ns;
	begin();
	sw_worker_take(ctx);
	end();
}

/* --- environment of the engines --- */

static void *map(void *ctx, uint64_t bytes)
{
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	(void)ctx;
	if (mem == MAP_FAILED)
		return NULL;
	madvise(mem, bytes, MADV_NOHUGEPAGE);
	return mem;
}

static void unmap(void *ctx, void *mem, uint64_t bytes)
{
	sim_net_forget(&((struct scene *)ctx)->net, mem, bytes);
	munmap(mem, bytes);
}

static uint64_t random_word(void *ctx)
{
	return test_random(&((struct scene *)ctx)->rng);
}

static void no_line(void *ctx, enum sw_log_level level, const char *text)
{
	(void)ctx;
	(void)level;
	(void)text;
}

static void on_state(
	void *ctx, enum sw_worker_state state, int err, const char *text)
{
	struct scene *s = ctx;

	(void)err;
	(void)text;
	s->n_failed += state == SW_WORKER_FAILED;
	s->n_left += state == SW_WORKER_LEFT;
}

static void on_declared(void *ctx)
{
	((struct scene *)ctx)->n_declared++;
}

static void on_done(void *ctx, uint32_t tensor, uint32_t local, uint64_t cookie,
	int err, uint32_t weight)
{
	struct scene *s = ctx;

	(void)tensor;
	(void)local;
	(void)cookie;
	(void)weight;
	s->n_done++;
	s->err = err;
}

/* --- the job --- */

static void start(struct scene *s, uint32_t i, struct sw_engine *engine)
{
	s->at[i] = (struct counted){.base = {.stats = engine->stats,
					    .rx = rx,
					    .tick = tick,
					    .tx = tx,
					    .is_busy = is_busy},
		.engine = engine};
	sim_node_start(&s->net.nodes[i], 0, &s->at[i].base, s->params.stop_gap);
}

static void open_worker(struct scene *s, uint32_t i)
{
	struct sim_node *n = &s->net.nodes[1 + i];
	struct sw_worker_server server = {.name = "server",
		.path = {.ip = sw_ip_v4(sim_ip(0)), .udp = SIM_UDP}};
	struct sw_worker_job job = {.job = "job",
		.node = i ? "n1" : "n0",
		.member = (uint16_t)i,
		.n_members = N_WORKERS,
		.n_local = 1,
		.servers = &server,
		.n_servers = 1};
	struct sw_worker_events events = {.state = on_state,
		.declared = on_declared,
		.done = on_done,
		.ctx = s};

	s->data[i] = map(s, BYTES);
	if (!s->data[i] || sw_worker_open(&s->w[i], &s->params, &s->env,
				   &events, &job, n->ports, SIM_PORTS, 0))
		abort();
	n->ports[0]->rate_bit_s = RATE;
	n->step = between_turns;
	n->ctx = &s->w[i];
	start(s, 1 + i, sw_worker_engine(&s->w[i]));
}

static bool is_running(void *ctx)
{
	struct scene *s = ctx;

	return s->w[0].state == SW_WORKER_RUNNING &&
	       s->w[1].state == SW_WORKER_RUNNING;
}

static bool is_declared(void *ctx)
{
	return ((struct scene *)ctx)->n_declared == N_WORKERS;
}

static bool is_folded(void *ctx)
{
	return ((struct scene *)ctx)->srv->stats.push_folded == LATE;
}

static bool has_ended(void *ctx)
{
	return ((struct scene *)ctx)->n_done == N_WORKERS;
}

static bool has_left(void *ctx)
{
	struct scene *s = ctx;

	return s->n_left == N_WORKERS && !s->srv->quota.used_bytes;
}

static void await(struct check *c, struct scene *s, bool (*is_so)(void *ctx),
	const char *what)
{
	check(c, sim_net_run(&s->net, s->net.now_ns + SW_S, is_so, s), what);
}

static void poke(struct scene *s, uint32_t i)
{
	s->net.nodes[1 + i].loop.tick_at_ns = 0;
	sim_node_poke(&s->net.nodes[1 + i]);
}

static void declare(struct check *c, struct scene *s, uint32_t i)
{
	struct sw_worker_tensor t = {.name = "huge",
		.n_elems = BYTES / 4,
		.dtype = SW_I32,
		.base = s->data[i]};
	int err;

	begin();
	err = sw_worker_declare(&s->w[i], &t, 1);
	end();
	check_eq(c, (uint64_t)-err, 0, "declares");
	poke(s, i);
}

static void submit(struct check *c, struct scene *s, uint32_t i, uint32_t step)
{
	int err;

	begin();
	err = sw_worker_push(&s->w[i], 0, step, i);
	end();
	check_eq(c, (uint64_t)-err, 0, "submits");
	poke(s, i);
}

/* Start both workers and declare the tensor; count from then on. */
static struct scene *open_scene(struct check *c)
{
	struct scene *s = scene();

	memset(s, 0, sizeof(*s));
	s->rng = 1;
	s->log.line = no_line;
	s->env = (struct sw_env){.log = &s->log,
		.sum = sw_sum_best(SW_SUM_AVX512),
		.ctx = s,
		.mem_get = map,
		.mem_put = unmap,
		.random = random_word};
	sw_params_init(&s->params);
	s->params.payload = SW_PAYLOAD_MAX;
	sim_net_init(&s->net, 1);
	for (uint32_t i = 0; i < N_NODES; i++)
		sim_net_add(&s->net, SW_PAYLOAD_MAX);
	if (sw_server_open(&s->srv, &s->params, &s->env, s->net.nodes[0].ports,
		    SIM_PORTS, UINT64_MAX / 2))
		abort();
	start(s, 0, sw_server_engine(s->srv));
	for (uint32_t i = 0; i < N_WORKERS; i++)
		open_worker(s, i);
	await(c, s, is_running, "the job runs");
	s->is_counting = true;
	for (uint32_t i = 0; i < N_WORKERS; i++)
		declare(c, s, i);
	await(c, s, is_declared, "both have declared it");
	return s;
}

static void close_scene(struct check *c, struct scene *s)
{
	s->is_counting = false;
	check(c, s->most && s->most <= STEPS_MAX,
		"each call does what a count bounds");
	printf("# %llu instructions in a call at most\n",
		(unsigned long long)s->most);
	for (uint32_t i = 0; i < N_NODES; i++)
		sim_node_stop(&s->net.nodes[i]);
	for (uint32_t i = 0; i < N_WORKERS; i++)
		sw_worker_close(&s->w[i]);
	sw_server_close(s->srv);
	for (uint32_t i = 0; i < N_WORKERS; i++)
		munmap(s->data[i], BYTES);
	sim_net_fini(&s->net);
}

/* One worker has pushed a part that the other has not. Then set its state as if
 * it had pushed everything: every chunk waits for a result. */
static struct scene *open_late(struct check *c)
{
	struct scene *s = open_scene(c);
	struct sw_part *p;

	submit(c, s, 0, 7);
	await(c, s, is_folded, "some of it is folded");
	p = &s->w[0].tensors[0].parts[0];
	s->w[0].links[0].n_folded = p->n_folded = p->place.n_local;
	return s;
}

static void huge_fails(struct check *c)
{
	struct scene *s = open_late(c);
	const struct sw_fault why =
		sw_fault_said(SW_EPEER, "training process 7 died");

	begin();
	sw_worker_leave(&s->w[1], &why);
	end();
	poke(s, 1);
	await(c, s, has_left, "both have left, the server holds nothing");
	check_eq(c, s->n_failed, 1, "workers that have failed");
	check_eq(c, s->n_done, 1, "push_pulls that ended");
	check_eq(c, (uint64_t)-s->err, -SW_EPEER, "with that error");
	close_scene(c, s);
}

static void huge_is_called_differently(struct check *c)
{
	struct scene *s = open_late(c);

	submit(c, s, 1, 8);
	await(c, s, has_ended, "both have ended");
	check_eq(c, (uint64_t)-s->err, -SW_EMISMATCH, "with that error");
	for (uint32_t i = 0; i < N_WORKERS; i++) {
		begin();
		sw_worker_leave(&s->w[i], NULL);
		end();
		poke(s, i);
	}
	await(c, s, has_left, "both have left, the server holds nothing");
	close_scene(c, s);
}

const struct check_case trace_huge[] = {
	{"huge_fails", huge_fails},
	{"huge_is_called_differently", huge_is_called_differently},
};

const uint32_t n_trace_huge = SW_ARRAY_SIZE(trace_huge);
