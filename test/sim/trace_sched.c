/* trace_sched.c - latency of an urgent tensor under load.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * All ports are paced to R. An urgent tensor of S bytes that becomes ready
 * while many tensors of the lowest priority are in flight waits for
 *
 *     P / R              the part that may overdraw the credit,
 *     2 (20 us + F / R)  queues below the scheduler, at the worker and at
 *                        the server (F: a frame), and
 *     S / R / 31         the turns that other tensors get meanwhile,
 *
 * however long the queue behind it.
 */
#include <stdlib.h>

#include "engine/base/bytes.h"
#include "engine/loop/pace.h"
#include "engine/worker/link.h"
#include "test/sim/job.h"
#include "test/sim/traces.h"

enum {
	URGENT = 64 << 10,
	LOAD = 64 << 20,
	FRAME = 8192,
	SAMPLES = 40,
	POLLS_NS = 3000, /* turns of polling loops on the path, 500 ns each */
};

static const uint64_t RATE = 10ULL * 1000 * 1000 * 1000;

static uint64_t time_of(uint64_t bytes, uint64_t rate)
{
	return bytes * 8 * SW_S / rate;
}

static struct sim_job *open_job(const struct sw_policy *policy, uint32_t urgent,
	uint32_t load, uint64_t server_bit_s)
{
	struct sim_job *job = malloc(sizeof(*job));

	if (!job)
		abort();
	sim_job_init(job, 1);
	job->n_workers = 1;
	job->n_tensors = job->n_first = 2;
	job->n_rounds = 0; /* the test submits every push */
	job->n_elems[0] = urgent / 4;
	job->n_elems[1] = load / 4;
	job->priority_step = 1000;
	job->params.payload = FRAME;
	job->params.policy = policy;
	job->worker_bit_s = RATE;
	job->server_bit_s = server_bit_s;
	sim_job_open(job);
	sim_job_pass(job, 20 * SW_MS);
	return job;
}

static void close_job(struct check *c, struct sim_job *job)
{
	for (uint32_t r = 0; r < job->n_workers; r++)
		check_eq(c, job->workers[r].n_wrong, 0, "wrong elements");
	check_eq(c, job->n_bad_pushes + job->n_bad_results, 0, "bad frames");
	sim_job_close(job);
	free(job);
}

static bool is_urgent_done(void *ctx)
{
	struct sim_job *job = ctx;

	for (uint32_t r = 0; r < job->n_workers; r++)
		if (job->workers[r].asked[0])
			return false;
	return true;
}

/* Push the urgent tensor at all workers now; return how long it takes. */
static uint64_t sample(struct sim_job *job)
{
	uint64_t from = job->net.now_ns;

	for (uint32_t r = 0; r < job->n_workers; r++)
		sim_worker_submit(&job->workers[r], 0, 0);
	sim_net_run(&job->net, from + SW_S, is_urgent_done, job);
	return job->net.now_ns - from;
}

/* Return the longest of @n samples, at any phase of the load. */
static uint64_t longest(struct sim_job *job, uint32_t n)
{
	uint64_t worst = 0;

	for (uint32_t i = 0; i < n; i++) {
		worst = sw_max64(worst, sample(job));
		sim_job_pass(job, 500 * SW_US + i * 1711);
	}
	return worst;
}

static uint64_t bound(uint64_t server_bit_s)
{
	return 2 * SW_PACE_DEPTH_NS + time_of(FRAME, RATE) +
	       time_of(FRAME, server_bit_s) + time_of(URGENT, RATE) / 31 +
	       POLLS_NS;
}

static void urgent_while_pushes_are_under_way(struct check *c)
{
	struct sim_job *job = open_job(
		&sw_policies[SW_POLICY_BYTESCHEDULER], URGENT, LOAD, RATE);
	uint64_t alone = longest(job, SAMPLES), loaded;

	check(c, alone >= time_of(URGENT, RATE) - SW_PACE_DEPTH_NS,
		"pacing holds");
	sim_worker_submit(&job->workers[0], 1, 0);
	sim_job_pass(job, 5 * SW_MS);
	loaded = longest(job, SAMPLES);
	check(c, job->workers[0].asked[1], "the load lasted");
	check(c, loaded > alone, "there was a load");
	check(c, loaded <= alone + bound(RATE), "the bound holds");
	check(c, loaded <= 3 * alone, "3 times the time without load");
	sim_job_pass(job, SW_S);
	check(c, !job->workers[0].asked[1], "the load ends");
	close_job(c, job);
}

/* The server sends at half the rate, so 64 MB of sums wait there. */
static void urgent_while_results_are_under_way(struct check *c)
{
	struct sim_job *job = open_job(
		&sw_policies[SW_POLICY_BYTESCHEDULER], URGENT, LOAD, RATE / 2);
	uint64_t alone = longest(job, SAMPLES), loaded;

	sim_worker_submit(&job->workers[0], 1, 0);
	sim_job_pass(job, time_of(LOAD, RATE) + SW_MS);
	check(c, !sw_bitmap_is_empty(&job->servers[0]->jobs[0].shard.ready[0]),
		"sums wait");
	loaded = longest(job, SAMPLES);
	check(c, job->workers[0].asked[1], "the load lasted");
	check(c, loaded <= alone + bound(RATE / 2), "the bound holds");
	check(c, loaded <= 3 * alone, "3 times the time without load");
	sim_job_pass(job, SW_S);
	close_job(c, job);
}

/* Both: the server's results fall behind, so credit returns only with ACKs,
 * sixteen frames at a time. */
static void urgent_while_credit_comes_late(struct check *c)
{
	struct sim_job *job = open_job(
		&sw_policies[SW_POLICY_BYTESCHEDULER], URGENT, LOAD, RATE / 2);
	uint64_t alone = longest(job, SAMPLES), loaded;

	sim_worker_submit(&job->workers[0], 1, 0);
	sim_job_pass(job, 5 * SW_MS);
	loaded = longest(job, SAMPLES);
	check(c, job->workers[0].engine.sched.n_heap, "pushes went on");
	check(c, loaded <= alone + bound(RATE / 2), "the bound holds");
	check(c, loaded <= 2 * alone, "twice the time without load");
	sim_job_pass(job, SW_S);
	close_job(c, job);
}

/* With fifo it waits for all earlier tensors. */
static void urgent_with_fifo(struct check *c)
{
	struct sim_job *job =
		open_job(&sw_policies[SW_POLICY_FIFO], URGENT, LOAD, RATE);
	uint64_t alone = longest(job, 3);

	sim_worker_submit(&job->workers[0], 1, 0);
	sim_job_pass(job, 5 * SW_MS);
	check(c, sample(job) > 100 * alone, "it waited");
	check(c, !job->workers[0].asked[1], "for the load");
	close_job(c, job);
}

/* The order of fifo ends at the sender: after the push, an urgent tensor
 * overtakes the results that wait at the server, as under other policies. */
static void urgent_results_overtake_with_fifo(struct check *c)
{
	struct sim_job *job =
		open_job(&sw_policies[SW_POLICY_FIFO], URGENT, LOAD, RATE / 2);
	uint64_t alone = longest(job, 3);

	sim_worker_submit(&job->workers[0], 1, 0);
	sim_job_pass(job, time_of(LOAD, RATE) + SW_MS);
	check(c, !sw_bitmap_is_empty(&job->servers[0]->jobs[0].shard.ready[0]),
		"sums wait");
	check(c, sample(job) <= alone + bound(RATE / 2), "it overtook");
	check(c, job->workers[0].asked[1], "the load lasted");
	sim_job_pass(job, SW_S);
	check(c, !job->workers[0].asked[1], "the load ends");
	close_job(c, job);
}

/* Conversely: an endless urgent load does not starve the rest. */
static void the_least_urgent_does_not_starve(struct check *c)
{
	struct sim_job *job = open_job(
		&sw_policies[SW_POLICY_BYTESCHEDULER], LOAD, URGENT, RATE);
	struct sim_worker *w = &job->workers[0];
	uint64_t from;

	sim_worker_submit(w, 0, 0);
	sim_job_pass(job, SW_MS);
	from = job->net.now_ns;
	sim_worker_submit(w, 1, 0);
	while (w->asked[1] && w->asked[0])
		sim_job_pass(job, 10 * SW_US);
	check(c, w->asked[0], "the urgent one is still under way");
	/* Two tensors are ready: it gets one of 64 parts that start, one of 64
	 * chunks that are pushed and one of 64 results. */
	check(c,
		w->done_ns[1] - from <
			time_of(64ULL * (URGENT + 2 * FRAME), RATE) + SW_MS,
		"one of 64");
	sim_job_pass(job, SW_S);
	close_job(c, job);
}

/* Members without priorities declare in different orders, in two batches; in
 * the end all have the same priorities, each once. */
static void by_first_use(struct check *c)
{
	struct sim_job *job = malloc(sizeof(*job));
	uint32_t seen = 0;

	if (!job)
		abort();
	sim_job_init(job, 3);
	job->n_workers = 4;
	job->n_servers = 2;
	job->n_tensors = 8;
	job->n_first = 5;
	job->n_rounds = 3;
	job->is_by_use = true;
	sim_job_open(job);
	check(c, sim_job_run(job, SW_S), "complete");
	for (uint32_t t = 0; t < job->n_tensors; t++) {
		struct sim_worker *w = job->workers;
		uint32_t first = w->engine.tensors[w->index[t]].decl.priority;

		seen |= 1u << first;
		for (; w < job->workers + job->n_workers; w++)
			check_eq(c,
				w->engine.tensors[w->index[t]].decl.priority,
				first, "priority");
	}
	check_eq(c, seen, 0xff, "priorities");
	close_job(c, job);
}

const struct check_case trace_sched[] = {
	{"urgent_while_pushes_are_under_way",
		urgent_while_pushes_are_under_way},
	{"urgent_while_results_are_under_way",
		urgent_while_results_are_under_way},
	{"urgent_while_credit_comes_late", urgent_while_credit_comes_late},
	{"urgent_with_fifo", urgent_with_fifo},
	{"urgent_results_overtake_with_fifo",
		urgent_results_overtake_with_fifo},
	{"by_first_use", by_first_use},
	{"the_least_urgent_does_not_starve", the_least_urgent_does_not_starve},
};
const uint32_t n_trace_sched = sizeof(trace_sched) / sizeof(trace_sched[0]);
