/* trace_stream_load.c - concurrent streams, and what they take of a server.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Times are virtual; payload, window and policy are the product's. The test
 * does not check elements.
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

/* Ports are paced to 95 % of their links, as pace.h does; the switch has room
 * for all frames and does not delay any. */
static struct sim_job *open_streams(uint32_t n_workers, uint32_t k)
{
	struct sim_job *job = new_job(1, 0);

	job->n_workers = job->n_colocated = n_workers;
	job->n_servers = n_workers + k;
	job->n_groups = 2;
	job->is_edited = true; /* all use the same zeros as buffers */
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

/* Call it at all members now. @to has room for each member's result. */
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
			.from_bytes = UINT64_MAX,
			.to_bytes = UINT64_MAX,
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

/* Return the longest of @n samples, at any phase of the load. */
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
	uint8_t *large = calloc(2, LOAD); /* zeros, then results */
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

/* The longest of many, under 256 MB: at most three times as long as alone. */
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

/* The bulk call holds all credit and has sent nothing: it returns all credit
 * except one piece to the urgent call. */
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

/* --- memory --- */

enum { AGENTS = 8, COLLS = 100, WINDOWS = 12 };

static bool is_bulk_done(void *ctx)
{
	return is_done(ctx, BULK);
}

/* Return the stream's memory at all servers; *n: number of servers that have
 * it. */
static uint64_t stream_bytes(const struct sim_job *job, uint32_t *n)
{
	uint64_t bytes = 0;

	*n = 0;
	for (uint32_t i = 0; i < job->n_servers; i++) {
		const struct sw_stensor *t =
			sw_shard_tensor(&job->servers[i]->jobs[0].shard,
				job->group_keys[BULK] - 1);

		*n += t != NULL;
		bytes += t ? t->mem_bytes : 0;
	}
	return bytes;
}

static uint64_t n_folded(const struct sim_job *job)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < job->n_servers; i++)
		n += job->servers[i]->stats.push_folded;
	return n;
}

/* Run @n collectives of @bytes each, of all kinds in turn, up to four at a
 * time. */
static void take_many(
	struct check *c, struct sim_job *job, uint32_t n, uint64_t bytes)
{
	uint8_t *memory = calloc(2, bytes);

	if (!memory)
		abort();
	for (uint32_t i = 0; i < n; i++) {
		enum sw_coll_kind kind =
			1 + (enum sw_coll_kind)(i % (SW_N_COLL_KINDS - 1));
		bool is_by_part =
			kind == SW_REDUCE_SCATTER || kind == SW_ALL_GATHER;

		call(job, BULK, kind, bytes / 4 / (is_by_part ? AGENTS : 1),
			memory, memory + bytes, 0);
		if (i % 4 == 3 || i + 1 == n)
			check(c,
				sim_net_run(&job->net,
					job->net.now_ns + 100 * SW_S,
					is_bulk_done, job),
				"collectives complete");
	}
	free(memory);
}

/* A stream takes as much memory of a server as its window, from its declaration
 * on, whatever is summed. Run a hundred collectives of 12 windows per server;
 * with SIM_WHOLE in the environment collectives of 1 GiB, with libsumwire's
 * payload and window, which takes minutes. */
static void memory_is_the_window(struct check *c)
{
	bool is_whole = getenv("SIM_WHOLE") != NULL;
	struct sim_job *job = open_streams(AGENTS, 0);
	uint64_t held, n_gets, each, folded, bytes, chunks;
	uint32_t n;

	if (!is_whole) {
		job->params.payload = 1344;
		job->groups[BULK].window_log2 = SW_WINDOW_MIN_LOG2;
	}
	job->worker_bit_s = job->server_bit_s = 0;
	each = (1ULL << job->groups[BULK].window_log2) *
	       (3 * job->params.payload + 64);
	bytes = (uint64_t)WINDOWS * AGENTS * job->params.payload
		<< job->groups[BULK].window_log2;
	bytes = is_whole ? 1ULL << 30 : bytes;
	chunks = bytes / job->params.payload;
	start(job);
	held = job->mem_bytes;
	n_gets = job->n_mem_gets;
	check_eq(c, stream_bytes(job, &n),
		AGENTS *
			(each + AGENTS *
					(4 + 8 * sw_bitmap_words(
							 1u
							 << job->groups[BULK]
								    .window_log2))),
		"bytes of the stream at all servers");
	check_eq(c, n, AGENTS, "servers that have it");
	folded = n_folded(job);
	take_many(c, job, COLLS, bytes);
	sim_job_pass(job, SW_S);
	check_eq(c, job->mem_bytes, held, "bytes that all engines hold");
	check_eq(c, job->n_mem_gets, n_gets, "times that one took memory");
	check_eq(c, n_folded(job) - folded, COLLS * chunks * AGENTS,
		"contributions");
	printf("# %s: %u collectives of %llu B, %llu B at each server\n",
		c->name, COLLS, (unsigned long long)bytes,
		(unsigned long long)each);
	sim_job_close(job);
	free(job);
}

/* --- the cost of asking for results --- */

/* Count frames so far, from workers (first) and from servers. */
static void note_frames(const struct sim_job *job, int64_t sent[2])
{
	sent[0] = sent[1] = 0;
	for (uint32_t i = 0; i < job->n_workers; i++)
		sent[0] +=
			(int64_t)sim_worker_stats(&job->workers[i]).tx_frames;
	for (uint32_t i = 0; i < job->n_servers; i++)
		sent[1] += (int64_t)job->servers[i]->stats.tx_frames;
}

/* Four agents and a server: givers push each chunk; receivers ask for many at
 * once and acknowledge results. */
static void count_frames(
	struct check *c, enum sw_coll_kind kind, uint32_t n_chunks)
{
	enum { PARTS = 4 };
	struct sim_job *job = open_streams(PARTS, 1);
	uint64_t bytes = (uint64_t)n_chunks * PAYLOAD;
	uint64_t each = kind == SW_ALL_GATHER ? bytes / PARTS : bytes;
	uint8_t *memory = calloc(1 + PARTS, bytes);
	int64_t before[2], after[2];

	if (!memory)
		abort();
	start(job);
	note_frames(job, before);
	call(job, BULK, kind, each / 4, memory, memory + bytes, bytes);
	sim_job_pass(job, SW_S / 4);
	note_frames(job, after);
	check(c, is_done(job, BULK), "all have it");
	printf("# %s: %s of %u chunks: workers send %lld frames, servers "
	       "%lld\n",
		c->name, sw_coll_name(kind), n_chunks,
		(long long)(after[0] - before[0]),
		(long long)(after[1] - before[1]));
	check(c, after[0] - before[0] < 3 * (int64_t)n_chunks,
		"one frame asks for many results");
	sim_job_close(job);
	free(job);
	free(memory);
}

static void frames_of_who_only_gets(struct check *c)
{
	count_frames(c, SW_BCAST, 8192);
	count_frames(c, SW_ALL_GATHER, 8192);
}

const struct check_case trace_stream_load[] = {
	{"frames_of_who_only_gets", frames_of_who_only_gets},
	{"gather_under_reduce_scatter", gather_under_reduce_scatter},
	{"bulk_gives_credit_back", bulk_gives_credit_back},
	{"memory_is_the_window", memory_is_the_window},
};
const uint32_t n_trace_stream_load = SW_ARRAY_SIZE(trace_stream_load);
