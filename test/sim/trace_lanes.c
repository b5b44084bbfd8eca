/* trace_lanes.c - workers of several lcores, each with a part of the servers.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "engine/error.h"
#include "test/sim/trace_job.h"

enum { CHUNK = 1344 / 4 };

/* Two workers, the first of three lanes, the second of one; four servers. */
static struct sim_job *lanes_job(uint32_t n_chunks, uint32_t n_rounds)
{
	struct sim_job *job = new_job(n_chunks * CHUNK, n_rounds);

	job->n_servers = 4;
	job->n_lanes[0] = 3;
	return job;
}

static const struct sw_stats *stats_of(const struct sim_job *job, uint32_t lane)
{
	const struct sim_worker *w = &job->workers[0];

	return lane ? &w->others[lane - 1].stats : &w->engine.stats;
}

/* Each lane pushes the chunks of its servers, and no other; the other worker
 * knows nothing of it. */
static void lanes_divide_the_servers(struct check *c)
{
	struct sim_job *job = lanes_job(16 * 64, 5);

	sim_job_open(job);
	check(c, sim_job_run(job, SW_S), "the job completes");
	check_eq(c, stats_of(job, 0)->push_folded, 5 * 8 * 64,
		"pushes of lane 0, which has two servers");
	check_eq(c, stats_of(job, 1)->push_folded, 5 * 4 * 64, "of lane 1");
	check_eq(c, stats_of(job, 2)->push_folded, 5 * 4 * 64, "of lane 2");
	end_job(c, job);
}

/* A tensor of one chunk is one lane's; the other lanes hear nothing of it. */
static void lanes_small_tensors(struct check *c)
{
	struct sim_job *job = lanes_job(1, 20);

	job->n_tensors = job->n_first = SIM_TENSORS;
	for (uint32_t t = 0; t < SIM_TENSORS; t++)
		job->n_elems[t] = 1 + t % 5;
	sim_job_open(job);
	check(c, sim_job_run(job, SW_S), "the job completes");
	check_eq(c,
		stats_of(job, 0)->push_folded + stats_of(job, 1)->push_folded +
			stats_of(job, 2)->push_folded,
		20 * SIM_TENSORS, "pushes of all lanes");
	end_job(c, job);
}

/* Local ranks are counted once, in lane 0, and summed in each; broadcasts. */
static void lanes_local_ranks(struct check *c)
{
	struct sim_job *job = lanes_job(6 * 64 + 1, 8);

	job->n_local[0] = 4;
	job->n_local[1] = 2;
	job->n_lanes[1] = 4;
	job->copies = 500000;
	sim_job_open(job);
	check(c, sim_job_run(job, SW_S), "the job completes");
	end_job(c, job);
}

/* A lane that does not poll holds up its own chunks; when it goes on, no peer
 * has been accused and nothing is lost. */
static void lanes_one_stalls(struct check *c)
{
	struct sim_job *job = lanes_job(16 * 64, 1000000);
	const struct sim_worker *w = &job->workers[0];
	uint32_t round;

	sim_job_open(job);
	sim_job_pass(job, 20 * SW_MS);
	check(c, w->round[0] > 0, "the job was running");
	sim_node_freeze(w->lcores[1], 300 * SW_MS);
	sim_job_pass(job, 100 * SW_MS);
	round = w->round[0];
	sim_job_pass(job, 100 * SW_MS);
	check_eq(c, w->round[0], round, "rounds while it stood");
	check_eq(c, stats_of(job, 0)->poll_gaps, 0, "gaps of lane 0");
	sim_job_pass(job, 110 * SW_MS);
	check(c, w->round[0] > round, "it went on");
	for (uint32_t r = 0; r < 2; r++)
		check(c,
			!job->workers[r].has_failed && !job->workers[r].n_wrong,
			"nobody failed, no sum was wrong");
	sim_job_close(job);
	free(job);
}

/* The job of worker 0, whose lane 1 has server 1, fails with @text; worker 1
 * hears it from the coordinator, and all lanes leave. */
static void expect_failed(
	struct check *c, struct sim_job *job, int err, const char *text)
{
	for (uint32_t r = 0; r < 2; r++) {
		const struct sim_worker *w = &job->workers[r];

		if (!check(c, w->has_failed, "the worker has failed"))
			return;
		check_eq(c, (uint64_t)w->err, (uint64_t)err, "error");
		check_text(c, w->text, text);
		check(c, w->has_left, "it has left");
		check(c, !w->asked[0], "no push_pull is left open");
	}
	for (uint32_t i = 1; i < job->n_lanes[0]; i++)
		check(c, job->workers[0].others[i - 1].state == SW_WORKER_LEFT,
			"its lanes have left");
}

static void lanes_server_dies(struct check *c)
{
	struct sim_job *job = lanes_job(16 * 64, 1000000);

	sim_job_open(job);
	sim_job_pass(job, 20 * SW_MS);
	sim_server_kill(job, 1);
	sim_job_pass(job, job->params.dead_after + 3 * SW_S);
	expect_failed(c, job, SW_ESERVER, "server s1 ");
	sim_job_close(job);
	free(job);
}

static void lanes_server_restarts(struct check *c)
{
	struct sim_job *job = lanes_job(16 * 64, 1000000);

	sim_job_open(job);
	sim_job_pass(job, 20 * SW_MS);
	sim_server_kill(job, 1);
	sim_server_start(job, 1);
	sim_job_pass(job, 4 * SW_S);
	expect_failed(
		c, job, SW_ESERVER, "server s1 does not know us any more");
	sim_job_close(job);
	free(job);
}

/* The quota of a server that lane 1 has: its refusal is the job's. */
static void lanes_over_quota(struct check *c)
{
	struct sim_job *job = lanes_job(16 * 64, 1);

	sim_job_open(job);
	job->servers[1]->quota_bytes = 1000;
	sim_job_pass(job, 4 * SW_S);
	expect_failed(c, job, SW_EREFUSED, "quota: the tensors need");
	sim_job_close(job);
	free(job);
}

/* A member dies: the coordinator tells lane 0, which ends the others. */
static void lanes_member_dies(struct check *c)
{
	struct sim_job *job = lanes_job(16 * 64, 1000000);
	const struct sim_worker *w = &job->workers[0];

	sim_job_open(job);
	sim_job_pass(job, 20 * SW_MS);
	sim_worker_kill(job, 1);
	sim_job_pass(job, job->params.dead_after + 3 * SW_S);
	check(c, w->has_failed && w->has_left, "the other has failed and left");
	check_text(c, w->text, "rank 1 (node gpu1) silent for 10 s");
	for (uint32_t i = 1; i < 3; i++)
		check(c, w->others[i - 1].state == SW_WORKER_LEFT,
			"its lanes have left");
	sim_job_close(job);
	free(job);
}

/* Whoever has lanes dies, and comes again. */
static void lanes_worker_comes_again(struct check *c)
{
	struct sim_job *job = lanes_job(16 * 64, 3);

	sim_job_open(job);
	sim_job_pass(job, SW_MS);
	for (uint32_t r = 0; r < 2; r++)
		sim_worker_kill(job, r);
	sim_job_pass(job, job->params.dead_after + SW_S);
	for (uint32_t r = 0; r < 2; r++)
		sim_worker_start(job, r);
	check(c, sim_job_run(job, SW_S), "the second run completes");
	check_eq(c, job->workers[0].n_wrong, 0, "wrong elements");
	sim_job_close(job);
	free(job);
}

/* A member does not push: the stall is named although none of the chunks is
 * lane 0's. */
static void lanes_stall_is_named(struct check *c)
{
	struct sim_job *job = lanes_job(1, 2);

	job->n_tensors = job->n_first = 2;
	job->n_elems[0] = 64 * CHUNK; /* server 0's stripe, lane 0 */
	job->n_elems[1] = 64 * CHUNK; /* server 1's, lane 1 */
	job->is_in_order = true;
	job->odd_one = 1;
	job->odd_rounds = 1;
	job->params.stall_warn = SW_S;
	job->params.stall_limit = 3 * SW_S;
	sim_job_open(job);
	sim_job_pass(job, 2 * SW_S + SW_S / 2);
	check_text(c, job->workers[0].told, "for rank 1, tensor");
	sim_job_pass(job, 5 * SW_S);
	check(c, job->workers[0].has_failed, "worker 0 gave up");
	check_eq(
		c, (uint64_t)job->workers[0].err, (uint64_t)SW_ESTALL, "error");
	check_text(c, job->workers[0].text, "for rank 1, tensor");
	sim_job_close(job);
	free(job);
}

const struct check_case trace_lanes[] = {
	{"lanes_divide_the_servers", lanes_divide_the_servers},
	{"lanes_small_tensors", lanes_small_tensors},
	{"lanes_local_ranks", lanes_local_ranks},
	{"lanes_one_stalls", lanes_one_stalls},
	{"lanes_server_dies", lanes_server_dies},
	{"lanes_server_restarts", lanes_server_restarts},
	{"lanes_over_quota", lanes_over_quota},
	{"lanes_member_dies", lanes_member_dies},
	{"lanes_worker_comes_again", lanes_worker_comes_again},
	{"lanes_stall_is_named", lanes_stall_is_named},
};

const uint32_t n_trace_lanes = SW_ARRAY_SIZE(trace_lanes);
