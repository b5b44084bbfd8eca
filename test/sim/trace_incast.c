/* trace_incast.c - many senders at once before one port of a switch.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The switch queues a limited number of bytes for each receiver, and drops
 * frames that exceed it. Workers know this limit as params.queue_bytes, so
 * grants fit, whoever sends. The first round trip of a server needs no grant
 * and is outside that bound.
 */
#include <stdio.h>

#include "test/sim/trace_job.h"

enum {
	URGENT = 64 << 10,
	FRAME = 8192,
	SWITCH = 256 << 10,
	MANY = 32,
	STRIPES = MANY, /* one for each server */
};

static const uint64_t RATE = 10ULL * 1000 * 1000 * 1000;

static uint64_t time_of(uint64_t bytes)
{
	return bytes * 8 * SW_S / RATE;
}

/* --- at a server --- */

/* 64 workers push 64 KB at once to one server, through a switch with room for
 * @queue bytes.  Returns the frames that were lost. */
static uint64_t incast(struct check *c, uint32_t queue)
{
	struct sim_job *job = new_job(URGENT / 8, 3);
	uint64_t n_lost;

	job->n_workers = SIM_WORKERS;
	job->dtype = SW_I64;
	job->params.payload = FRAME;
	job->net.faults.queue_bytes = queue;
	job->is_in_order = true;
	job->worker_bit_s = job->server_bit_s = RATE;
	sim_job_open(job);
	check(c, sim_job_run(job, 20 * SW_S), "all rounds complete");
	n_lost = job->net.n_lost;
	end_job(c, job);
	return n_lost;
}

/* Workers' initial frames and the server's grants fit the switch: it drops
 * nothing, although they push 4 MiB at once, round after round. */
static void incast_within_the_grants(struct check *c)
{
	struct sw_params p;
	uint64_t bytes;

	sw_params_init(&p);
	bytes = p.queue_bytes +
		SIM_WORKERS * (SW_FLOW_START * SW_QUANTUM + FRAME);
	bytes += bytes / FRAME * 120; /* headers */
	check(c, bytes < SIM_WORKERS * URGENT * 2 / 3, "a good deal less");
	check_eq(c, incast(c, (uint32_t)bytes), 0, "lost");
}

/* A switch too small for the initial frames drops some, and they are
 * retransmitted. */
static void incast_that_overflows_the_switch(struct check *c)
{
	check(c, incast(c, SIM_WORKERS * SW_FLOW_START * SW_QUANTUM / 2) > 0,
		"frames were lost");
}

/* Open a job of @n_workers and @n_servers at a switch with 256 KiB per port. */
static struct sim_job *open_job(uint32_t n_workers, uint32_t n_servers,
	uint32_t bytes, uint32_t payload)
{
	struct sim_job *job = new_job(bytes / 8, 0);

	job->n_workers = n_workers;
	job->n_servers = n_servers;
	job->dtype = SW_I64;
	job->params.payload = payload;
	job->params.queue_bytes = job->net.faults.queue_bytes = SWITCH;
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

static void slow_down(struct sim_node *n)
{
	n->rate_bits_s = n->port.rate_bit_s = RATE;
}

/* Four workers push 4 MiB each to a server of 4 lcores with an equally fast
 * link: the lcores share the bytes that fit the switch. */
static void incast_at_lcores(struct check *c)
{
	struct sim_job *job = open_job(4, 1, 4 << 20, FRAME);

	job->n_lcores = 4;
	sim_job_open(job);
	slow_down(&job->net.nodes[0]);
	for (uint32_t r = 0; r < 4; r++)
		slow_down(job->workers[r].node);
	sim_job_pass(job, 20 * SW_MS);
	for (uint32_t r = 0; r < 4; r++)
		sim_worker_submit(&job->workers[r], 0, 0);
	sim_job_pass(job, 200 * SW_MS);
	for (uint32_t r = 0; r < 4; r++)
		check_eq(
			c, job->workers[r].asked[0], 0, "rounds that are open");
	check_eq(c, job->net.n_overflown[SW_PUSH], 0, "lost pushes");
	close_job(c, job);
}

/* --- at a worker --- */

/* 32 servers have the results of 16 MiB for a worker at once; its link has a
 * tenth of the rate of the other worker, which pushes last. */
static void results_for_a_slow_worker(struct check *c, uint32_t payload)
{
	struct sim_job *job = open_job(2, MANY, 16 << 20, payload);
	struct sim_worker *slow = &job->workers[0];
	uint64_t from;

	sim_job_open(job);
	slow_down(slow->node);
	sim_job_pass(job, 20 * SW_MS);
	sim_worker_submit(slow, 0, 0);
	sim_job_pass(job, 200 * SW_MS);
	check_eq(c, job->net.n_lost, 0, "lost pushes");
	from = job->net.now_ns;
	sim_worker_submit(&job->workers[1], 0, 0);
	sim_job_pass(job, 200 * SW_MS);
	check_eq(c, slow->asked[0], 0, "rounds that are open");
	check_eq(c, job->net.n_overflown[SW_RESULT], 0, "lost results");
	printf("# %u B: %.1f %% of the link\n", payload,
		100.0 * (double)time_of(16 << 20) /
			(double)(slow->done_ns[0] - from));
	check(c, slow->done_ns[0] - from <= time_of(18 << 20),
		"its link is kept busy");
	close_job(c, job);
}

static void incast_at_a_worker(struct check *c)
{
	results_for_a_slow_worker(c, FRAME);
}

static void incast_at_a_worker_small_frames(struct check *c)
{
	results_for_a_slow_worker(c, 1344);
}

/* Results of one tensor, at two servers, wait for the other worker. Results of
 * a second tensor, at the other two, get enough grants. */
static void incast_beside_a_straggler(struct check *c)
{
	struct sim_job *job = open_job(2, 4, 1 << 20, FRAME);
	struct sim_worker *w = job->workers;
	uint64_t from;

	job->n_tensors = job->n_first = 2;
	job->n_elems[1] = job->n_elems[0];
	sim_job_open(job);
	slow_down(job->workers[0].node);
	slow_down(job->workers[1].node);
	sim_job_pass(job, 20 * SW_MS);
	sim_worker_submit(&w[0], 0, 0);
	sim_job_pass(job, 20 * SW_MS);
	from = job->net.now_ns;
	sim_worker_submit(&w[0], 1, 0);
	sim_worker_submit(&w[1], 1, 0);
	sim_job_pass(job, 200 * SW_MS);
	check_eq(c, w[0].asked[0], 1, "what waits");
	check_eq(c, w[0].asked[1] + w[1].asked[1], 0, "rounds that are open");
	printf("# straggler: %llu and %llu us, %llu at the link's rate\n",
		(unsigned long long)(w[0].done_ns[1] - from) / 1000,
		(unsigned long long)(w[1].done_ns[1] - from) / 1000,
		(unsigned long long)time_of(1 << 20) / 1000);
	check(c, w[0].done_ns[1] - from <= 10 * time_of(1 << 20),
		"its results are not held up");
	sim_worker_submit(&w[1], 0, 0);
	sim_job_pass(job, 200 * SW_MS);
	check_eq(c, w[0].asked[0] + w[1].asked[0], 0, "rounds that are open");
	check_eq(c, job->net.n_overflown[SW_RESULT], 0, "lost results");
	close_job(c, job);
}

static bool are_done(void *ctx)
{
	struct sim_job *job = ctx;

	for (uint32_t r = 0; r < job->n_workers; r++)
		if (job->workers[r].asked[0])
			return false;
	return true;
}

/* k = 0: each of 32 nodes receives the pushes and results of 31 others. */
static void colocated(struct check *c, uint32_t payload)
{
	struct sim_job *job =
		open_job(MANY, MANY, STRIPES * 64 * payload, payload);
	uint64_t from;

	job->n_colocated = MANY;
	job->params.queue_bytes = SWITCH / 2;
	sim_job_open(job);
	for (uint32_t i = 0; i < MANY; i++)
		slow_down(&job->net.nodes[i]);
	sim_job_pass(job, 100 * SW_MS);
	for (uint32_t round = 0; round < 2; round++) {
		from = job->net.now_ns;
		for (uint32_t r = 0; r < MANY; r++)
			sim_worker_submit(&job->workers[r], 0, 0);
		check(c, sim_net_run(&job->net, from + SW_S, are_done, job),
			"the round completes");
		printf("# %u B: %.1f %% of equation 6, lost: %llu results, "
		       "%llu pushes\n",
			payload,
			100.0 * 2 * 31 / 32 *
				(double)time_of(STRIPES * 64 * payload) /
				(double)(job->net.now_ns - from),
			(unsigned long long)job->net.n_overflown[SW_RESULT],
			(unsigned long long)job->net.n_overflown[SW_PUSH]);
	}
	check_eq(c, job->net.n_overflown[SW_RESULT], 0, "lost results");
	close_job(c, job);
}

static void incast_at_colocated_nodes(struct check *c)
{
	colocated(c, FRAME);
}

static void incast_at_colocated_nodes_small_frames(struct check *c)
{
	colocated(c, 1344);
}

const struct check_case trace_incast[] = {
	{"incast_within_the_grants", incast_within_the_grants},
	{"incast_that_overflows_the_switch", incast_that_overflows_the_switch},
	{"incast_at_lcores", incast_at_lcores},
	{"incast_at_a_worker", incast_at_a_worker},
	{"incast_at_a_worker_small_frames", incast_at_a_worker_small_frames},
	{"incast_beside_a_straggler", incast_beside_a_straggler},
	{"incast_at_colocated_nodes", incast_at_colocated_nodes},
	{"incast_at_colocated_nodes_small_frames",
		incast_at_colocated_nodes_small_frames},
};
const uint32_t n_trace_incast = sizeof(trace_incast) / sizeof(trace_incast[0]);
