/* trace_stream_load.c - streams beside streams, and what they take of a server.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Counted in the simulator's own clock, with the product's payload, window and
 * policy; nobody looks at elements here.
 */
#include <stdio.h>

#include "engine/sched/policy.h"
#include "engine/worker/stream.h"
#include "test/sim/trace_job.h"

enum {
	LOG2 = 9, /* libsumwire's window */
	PAYLOAD = 8192,
	GATHERED = 64 << 10,
	LOAD = 256 << 20,
	SAMPLES = 12,
	BULK = 0, /* groups */
	URGENT = 1,
};

static const uint64_t RATE = 10ULL * 1000 * 1000 * 1000;

/* Ports are paced to 95 % of their links, as pace.h does it; the switch has
 * room for all and delays nobody. */
static struct sim_job *open_streams(uint32_t n_workers, uint32_t k)
{
	struct sim_job *job = new_job(1, 0);

	job->n_workers = job->n_colocated = n_workers;
	job->n_servers = n_workers + k;
	job->n_groups = 2;
	job->is_edited = true; /* buffers of zeros, of nobody's own */
	job->params.payload = PAYLOAD;
	job->worker_bit_s = job->server_bit_s = RATE / 100 * 95;
	job->groups[BULK].priority = 1000;
	for (uint32_t g = 0; g < 2; g++) {
		job->groups[g].members = (1u << n_workers) - 1;
		job->groups[g].window_log2 = LOG2;
	}
	return job;
}

static void start(struct sim_job *job)
{
	sim_job_open(job);
	for (uint32_t i = 0; i < job->net.n_nodes; i++)
		job->net.nodes[i].rate_bits_s = RATE;
	sim_job_pass(job, 50 * SW_MS);
}

/* All members call it now.  @to has room for each member's result. */
static void call(struct sim_job *job, uint32_t group, enum sw_coll_kind kind,
	uint64_t n_elems, const uint8_t *from, uint8_t *to, uint64_t stride)
{
	for (uint32_t r = 0; r < job->n_workers; r++) {
		struct sim_worker *w = &job->workers[r];
		struct sim_of_group *of = &w->of_group[group];
		struct sw_worker_coll ask = {.stream = of->index,
			.kind = kind,
			.dtype = SW_F32,
			.n_elems = n_elems,
			.from = from,
			.to = to + r * stride,
			.cookie = SIM_COOKIE_COLL | group << 16};

		of->n_submitted++;
		if (sw_worker_coll(&w->engine, &ask))
			abort();
		w->node->loop.tick_at_ns = 0;
		sim_node_poke(w->node);
	}
}

static bool is_done(const struct sim_job *job, uint32_t group)
{
	for (uint32_t r = 0; r < job->n_workers; r++)
		if (job->workers[r].of_group[group].n_done <
			job->workers[r].of_group[group].n_submitted)
			return false;
	return true;
}

static bool has_gathered(void *ctx)
{
	return is_done(ctx, URGENT);
}

/* --- a small all_gather under a large reduce_scatter --- */

static uint64_t gather(struct sim_job *job, uint8_t *memory)
{
	uint64_t from = job->net.now_ns, n = GATHERED / 4 / job->n_workers;

	call(job, URGENT, SW_ALL_GATHER, n, memory, memory + GATHERED,
		GATHERED);
	sim_net_run(&job->net, from + SW_S, has_gathered, job);
	return job->net.now_ns - from;
}

/* The longest of so many, at any phase of what else goes on. */
static uint64_t longest(struct sim_job *job, uint8_t *memory)
{
	uint64_t worst = 0;

	for (uint32_t i = 0; i < SAMPLES; i++) {
		worst = sw_max64(worst, gather(job, memory));
		sim_job_pass(job, 500 * SW_US + i * 1711);
	}
	return worst;
}

static uint64_t n_results(const struct sim_job *job)
{
	uint64_t n = 0;

	for (uint32_t r = 0; r < job->n_workers; r++)
		n += sim_worker_stats(&job->workers[r]).results;
	return n;
}

static void gather_under_load(struct check *c, uint32_t n_workers, uint32_t k)
{
	struct sim_job *job = open_streams(n_workers, k);
	uint8_t *small = calloc(n_workers + 1, GATHERED);
	uint8_t *large = calloc(2, LOAD); /* zeros, and results */
	uint64_t alone, loaded, before;

	if (!small || !large)
		abort();
	start(job);
	alone = longest(job, small);
	call(job, BULK, SW_REDUCE_SCATTER, LOAD / 4 / n_workers, large,
		large + LOAD, LOAD / n_workers);
	sim_job_pass(job, 5 * SW_MS);
	before = n_results(job);
	loaded = longest(job, small);
	printf("# %s: %u agents, k = %u: %.1f us alone, %.1f under load\n",
		c->name, n_workers, k, (double)alone / 1e3,
		(double)loaded / 1e3);
	check_eq(
		c, job->workers[0].of_group[BULK].n_done, 0, "load that ended");
	check(c, n_results(job) > before + 200, "the load went on");
	check(c, loaded <= 3 * alone, "3 times the time without load");
	sim_job_close(job);
	free(job);
	free(small);
	free(large);
}

/* The longest of many, under 256 MB: three times as long as alone. */
static void gather_under_reduce_scatter(struct check *c)
{
	for (uint32_t n = 2; n <= 8; n *= 2)
		for (uint32_t k = 0; k < 3; k++)
			gather_under_load(c, n, k);
}

/* --- credit --- */

struct first_pushes {
	uint32_t keys[4], n;
};

static enum sim_fate note_push(void *ctx, struct sim_frame *f)
{
	struct first_pushes *x = ctx;

	if (f->bytes[3] == SW_PUSH && x->n < SW_ARRAY_SIZE(x->keys))
		x->keys[x->n++] = sw_load32(f->bytes + 16);
	return SIM_PASS;
}

/* The bulk has all credit, and none of it has left: but for one piece it gives
 * it back to what is urgent. */
static void bulk_gives_credit_back(struct check *c)
{
	struct sim_job *job = open_streams(2, 1);
	uint8_t *memory = calloc(8, GATHERED);
	struct first_pushes x = {.n = 0};

	if (!memory)
		abort();
	job->n_servers = 1;
	job->n_colocated = 0;
	job->params.part_bytes = job->params.credit_bytes = 4 * PAYLOAD;
	start(job);
	job->net.hook = note_push;
	job->net.hook_ctx = &x;
	call(job, BULK, SW_ALL_REDUCE, GATHERED / 4, memory, memory, GATHERED);
	call(job, URGENT, SW_ALL_REDUCE, 2 * PAYLOAD / 4, memory,
		memory + 2 * GATHERED, GATHERED);
	sim_job_pass(job, 10 * SW_MS);
	check(c, is_done(job, BULK) && is_done(job, URGENT),
		"both are through");
	for (uint32_t i = 1; i < SW_ARRAY_SIZE(x.keys); i++)
		check_eq(c, x.keys[i], job->group_keys[URGENT] - 1,
			"key of a push");
	sim_job_close(job);
	free(job);
	free(memory);
}

const struct check_case trace_stream_load[] = {
	{"gather_under_reduce_scatter", gather_under_reduce_scatter},
	{"bulk_gives_credit_back", bulk_gives_credit_back},
};
const uint32_t n_trace_stream_load = SW_ARRAY_SIZE(trace_stream_load);
