/* trace_lanes.c - workers with several lcores that divide the servers.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include "engine/base/error.h"
#include "engine/worker/wtensor.h"
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

/* Each lane pushes exactly the chunks of its servers; the other worker does not
 * notice. */
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

/* A tensor of one chunk belongs to one lane; the other lanes get no message
 * about it. */
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

/* Lane 0 counts local ranks once, and each lane sums them; also broadcasts. */
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

/* A lane that does not poll delays its own chunks only. When it resumes, no
 * peer was declared dead and nothing is lost. */
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
	check_eq(c, w->lcores[0]->loop.stats.poll_gaps, 0, "gaps of lane 0");
	/* It may poll for twice as long as it stood: its late ACKs are samples
	 * of the round-trip time. */
	for (uint32_t i = 0; i < 70 && w->round[0] < round + 100; i++)
		sim_job_pass(job, 10 * SW_MS);
	check(c, w->round[0] > round, "it went on");
	for (uint32_t r = 0; r < 2; r++)
		check(c,
			!job->workers[r].has_failed && !job->workers[r].n_wrong,
			"nobody failed, no sum was wrong");
	sim_job_close(job);
	free(job);
}

/* Check that the job of worker 0, whose lane 1 has server 1, fails with @text,
 * that worker 1 hears it from the coordinator, and that all lanes leave. */
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
		c, job, SW_ESERVER, "server s1 no longer knows this agent");
	sim_job_close(job);
	free(job);
}

/* The quota of a server of lane 1: its refusal fails the job. */
static void lanes_over_quota(struct check *c)
{
	struct sim_job *job = lanes_job(16 * 64, 1);

	sim_job_open(job);
	job->servers[1]->quota.bytes = 1000;
	sim_job_pass(job, 4 * SW_S);
	expect_failed(c, job, SW_EREFUSED, "quota: the tensors need");
	sim_job_close(job);
	free(job);
}

/* A member dies: the coordinator tells lane 0, which ends the other lanes. */
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

/* A worker with lanes dies and starts again. */
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

/* A member does not push: the stall is reported, although no chunk belongs to
 * lane 0. */
static void lanes_stall_is_named(struct check *c)
{
	struct sim_job *job = lanes_job(1, 2);

	job->n_tensors = job->n_first = 2;
	job->n_elems[0] = 64 * CHUNK; /* stripe of server 0, lane 0 */
	job->n_elems[1] = 64 * CHUNK; /* stripe of server 1, lane 1 */
	job->is_in_order = true;
	job->odd_one = 1;
	job->odd_rounds = 1;
	job->params.stall_warn = SW_S;
	job->params.stall_limit = 3 * SW_S;
	sim_job_open(job);
	sim_job_pass(job, 2 * SW_S + SW_S / 2);
	check_text(c, job->workers[0].told, "for rank 1 of 2, tensor");
	sim_job_pass(job, 5 * SW_S);
	check(c, job->workers[0].has_failed, "worker 0 gave up");
	check_eq(
		c, (uint64_t)job->workers[0].err, (uint64_t)SW_ESTALL, "error");
	check_text(c, job->workers[0].text, "for rank 1 of 2, tensor");
	sim_job_close(job);
	free(job);
}

static const struct sw_worker *lane_of(const struct sim_job *job, uint32_t lane)
{
	const struct sim_worker *w = &job->workers[0];

	return lane ? &w->others[lane - 1] : &w->engine;
}

/* Count the chunks of a tensor that a lane has started and charged to its
 * credit. */
static uint32_t n_charged(
	const struct sim_job *job, uint32_t lane, uint32_t tensor)
{
	const struct sw_wtensor *t =
		&lane_of(job, lane)->tensors[job->workers[0].index[tensor]];
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->n_chunks; i++)
		n += t->chunks[i].is_charged;
	return n;
}

/* A large tensor uses up the credit of each lane, without an ACK. A more urgent
 * tensor takes credit back in each lane: as much as its chunks need, from
 * chunks not yet sent. */
static void lanes_take_back(struct check *c)
{
	struct sim_job *job = new_job(2 * 64 * CHUNK, 0);
	uint32_t before[2], i;

	job->n_workers = 1;
	job->n_servers = 2;
	job->n_lanes[0] = 2;
	job->n_tensors = job->n_first = 2;
	job->n_elems[1] = 16 * 64 * CHUNK;
	job->params.credit_bytes = 1 << 20;
	sim_job_open(job);
	sim_job_pass(job, 20 * SW_MS);
	job->net.faults.cut_from = 3; /* no server answers */
	job->net.faults.cut_to = 4;
	job->net.faults.cut_at_ns = job->net.now_ns;
	job->net.faults.cut_until_ns = job->net.now_ns + 10 * SW_MS;
	sim_worker_submit(&job->workers[0], 1, 0);
	sim_job_pass(job, SW_MS);
	for (i = 0; i < 2; i++) {
		before[i] = n_charged(job, i, 1);
		check(c, lane_of(job, i)->sched.credit <= 0, "no credit left");
		check(c, before[i] >= 300, "all of it by the load");
	}
	sim_worker_submit(&job->workers[0], 0, 0);
	sim_job_pass(job, SW_MS);
	for (i = 0; i < 2; i++) {
		uint32_t after = n_charged(job, i, 1);

		check_eq(c, n_charged(job, i, 0), 64, "urgent chunks started");
		/* A part of 12 chunks may overdraw, and each lane has such a
		 * part. */
		check(c, after + 64 <= before[i] + 12, "the load gave way");
		check(c, after + 64 >= before[i] - 12, "by no more than that");
	}
	sim_job_pass(job, SW_S);
	check(c, !job->workers[0].asked[0] && !job->workers[0].asked[1],
		"both end");
	check_eq(c, job->workers[0].n_wrong, 0, "wrong elements");
	check_eq(c, job->n_bad_pushes + job->n_bad_results, 0, "bad frames");
	for (i = 0; i < 2; i++)
		check_eq(c, (uint64_t)lane_of(job, i)->sched.credit,
			lane_of(job, i)->sched.limit, "credit at the end");
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
	{"lanes_take_back", lanes_take_back},
};

const uint32_t n_trace_lanes = SW_ARRAY_SIZE(trace_lanes);
