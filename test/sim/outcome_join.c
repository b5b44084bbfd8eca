/* outcome_join.c - joining, declaring and leaving: messages and timing.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/worker/link.h"
#include "test/sim/outcomes.h"

/* --- waiting for members --- */

static void server_not_there(struct check *c)
{
	struct sim_job *job = outcome_job(2, 1);

	sim_job_open(job);
	sim_server_kill(job, 0);
	sim_job_pass(job, 3 * SW_S);
	check_text(c, job->workers[1].told,
		"waiting for server s0 "
		"(10.0.0.1:5700), which does not "
		"answer");
	sim_job_pass(job, job->params.join_timeout - 4 * SW_S);
	check(c, !job->workers[0].has_failed, "it waits");
	sim_job_pass(job, 2 * SW_S);
	for (uint32_t r = 0; r < 2; r++)
		outcome_expect(c, job, r, SW_ETIMEDOUT,
			"waited 60 s for server s0 (10.0.0.1:5700), which does "
			"not answer");
	outcome_end(job);
}

static void second_server_not_there(struct check *c)
{
	struct sim_job *job = outcome_job(2, 2);

	sim_job_open(job);
	sim_server_kill(job, 1);
	sim_job_pass(job, 3 * SW_S);
	check_text(c, job->workers[0].told,
		"waiting for server s1 (10.0.0.2:5700), which does not answer");
	sim_job_pass(job, job->params.join_timeout);
	for (uint32_t r = 0; r < 2; r++)
		outcome_expect(c, job, r, SW_ETIMEDOUT,
			"for server s1 (10.0.0.2:5700), which does not answer");
	outcome_end(job);
}

/* The server starts later than dead_after: no error, because no peer existed
 * that could be silent. */
static void server_comes_late(struct check *c)
{
	for (uint32_t i = 0; i < 2; i++) {
		struct sim_job *job = outcome_job(2, 2);

		job->n_rounds = 3;
		sim_job_open(job);
		sim_server_kill(job, i);
		sim_job_pass(job, 30 * SW_S);
		sim_server_start(job, i);
		check(c, sim_job_run(job, 5 * SW_S), "the job completes");
		outcome_end(job);
	}
}

static void third_of_four_missing(struct check *c)
{
	struct sim_job *job = outcome_job(4, 2);

	job->absent = 1u << 2;
	sim_job_open(job);
	sim_job_pass(job, 3 * SW_S);
	for (uint32_t r = 0; r < 4; r++)
		if (r != 2)
			check_text(c, job->workers[r].told,
				"waiting for agent 2 of 4 at server s0 "
				"(10.0.0.1:5700); 3 ranks here: agent 0 10.");
	sim_job_pass(job, job->params.join_timeout);
	for (uint32_t r = 0; r < 4; r++)
		if (r != 2)
			outcome_expect(c, job, r, SW_ETIMEDOUT,
				"waited 60 s for agent 2 of 4 at server "
				"s0 (10.0.0.1:5700); 3 ranks here: agent 0 "
				"10.");
	outcome_end(job);
}

static void worker_comes_late(struct check *c)
{
	struct sim_job *job = outcome_job(4, 2);

	job->n_rounds = 3;
	job->absent = 1u << 2;
	sim_job_open(job);
	sim_job_pass(job, 30 * SW_S);
	sim_worker_start(job, 2);
	check(c, sim_job_run(job, 5 * SW_S), "the job completes");
	check(c, !sim_job_wrong(job), "all sums are right");
	outcome_end(job);
}

static enum sim_fate lose_accepts(void *ctx, struct sim_frame *f)
{
	const struct sim_job *job = ctx;

	return f->bytes[3] == SW_ACCEPT && f->to == job->n_servers + 1 &&
			       job->net.now_ns < 13 * SW_S
		       ? SIM_LOST
		       : SIM_PASS;
}

/* A worker that repeats its JOIN is not silent. */
static void answers_are_lost_for_long(struct check *c)
{
	struct sim_job *job = outcome_job(2, 2);

	job->n_rounds = 3;
	job->net.hook = lose_accepts;
	job->net.hook_ctx = job;
	sim_job_open(job);
	check(c, sim_job_run(job, 20 * SW_S), "the job completes");
	check(c, job->net.now_ns > 13 * SW_S, "and has waited");
	outcome_end(job);
}

static void worker_dies_while_another_is_awaited(struct check *c)
{
	struct sim_job *job = outcome_job(3, 1);

	job->absent = 1u << 2;
	sim_job_open(job);
	sim_job_pass(job, SW_S);
	sim_worker_kill(job, 1);
	sim_job_pass(job, job->params.dead_after + SW_S);
	sim_job_pass(job, job->params.join_timeout);
	outcome_expect(c, job, 0, SW_ETIMEDOUT,
		"waited 60 s for agents 1, 2 of 3 at server s0 "
		"(10.0.0.1:5700); "
		"agent 1 left (gpu1, 10.");
	outcome_end(job);
}

/* --- mismatches --- */

static void other_number_of_agents(struct check *c)
{
	struct sim_job *job = outcome_job(3, 1);

	job->odd_one = 1;
	job->odd_members = 2;
	sim_job_open(job);
	sim_job_pass(job, SW_S);
	/* The later of rank 1 and the others gets an error that names both. */
	for (uint32_t r = 0; r < 3; r++)
		if (job->workers[r].has_failed) {
			check_eq(c, (uint64_t)job->workers[r].err,
				(uint64_t)SW_EMISMATCH, "error");
			check_text(c, job->workers[r].text,
				r == 1 ? "agents = 2, job sim has 3"
				       : "agents = 3, job sim has 2");
		}
	check(c, job->workers[0].has_failed || job->workers[1].has_failed,
		"somebody was told");
	outcome_end(job);
}

static void expect_mismatch(
	struct check *c, struct sim_job *job, const char *a, const char *b)
{
	job->n_servers = job->n_tensors = job->n_first = 2;
	job->odd_one = 1;
	sim_job_open(job);
	sim_job_pass(job, SW_S);
	for (uint32_t r = 0; r < 3; r++) {
		const struct sim_worker *w = &job->workers[r];
		char text[SW_TEXT_MAX];
		const char *why = sw_worker_why(&w->engine, w->index[0], text);

		check(c, !w->has_failed, "the job goes on");
		check_eq(c, w->dead_in[0], 1, "the first call fails");
		check_text(c, why ? why : "", "tensor fc1.weight: rank ");
		check_text(c, why ? why : "", a);
		check_text(c, why ? why : "", b);
		check_text(c, why ? why : "", "rank 1 declare");
		check(c, w->round[1] > 0, "the other tensor is summed");
	}
	outcome_end(job);
}

static void declares_another_size(struct check *c)
{
	struct sim_job *job = outcome_job(3, 1);

	job->odd_elems = 7;
	expect_mismatch(c, job, "168000 x i32", "168007 x i32");
}

static void declares_another_dtype(struct check *c)
{
	struct sim_job *job = outcome_job(3, 1);

	job->has_odd_dtype = true;
	expect_mismatch(c, job, "168000 x i32", "168000 x f32");
}

static void declares_another_priority(struct check *c)
{
	struct sim_job *job = outcome_job(3, 1);

	job->odd_priority = 5;
	expect_mismatch(c, job, "priority 0", "priority 5");
}

static void quota_is_refused(struct check *c)
{
	struct sim_job *job = outcome_job(2, 2);

	job->n_elems[0] = 4 << 20;
	job->quota_bytes = 4 << 20;
	sim_job_open(job);
	sim_job_pass(job, SW_S);
	for (uint32_t r = 0; r < 2; r++)
		outcome_expect(
			c, job, r, SW_EREFUSED, "quota: the tensors need ");
	check_text(c, job->workers[0].text, "4 of 4 MiB are left");
	outcome_end(job);
}

/* --- leaving --- */

static void leaves_early(struct check *c)
{
	struct sim_job *job = outcome_job(3, 2);

	job->leaves = true;
	job->odd_one = 1;
	job->odd_rounds = 2;
	job->n_rounds = 5;
	sim_job_open(job);
	check(c, !sim_job_run(job, 2 * SW_S), "the job does not complete");
	sim_job_pass(job, 2 * SW_S);
	check(c, job->workers[1].has_left && !job->workers[1].has_failed,
		"rank 1 has left in peace");
	check_eq(c, job->workers[1].round[0], 2, "rounds of rank 1");
	for (uint32_t r = 0; r < 3; r += 2) {
		outcome_expect(c, job, r, SW_EPEER,
			"rank 1 (node gpu1) left; round 3 of "
			"tensor fc1.weight cannot complete");
		check_eq(c, job->workers[r].round[0], 2, "rounds");
	}
	outcome_end(job);
}

/* Return the bytes held by engines, without the workers' memory for tensors. */
static uint64_t bytes_of_servers(const struct sim_job *job)
{
	uint64_t n = job->mem_bytes;

	for (uint32_t r = 0; r < job->n_workers; r++)
		for (uint32_t i = 0; i < job->workers[r].engine.n_tensors; i++)
			n -= job->workers[r].engine.tensors[i].mem_bytes;
	return n;
}

/* The first worker to finish leaves while the others still wait for the same
 * sums. */
static void all_leave_in_peace(struct check *c)
{
	struct sim_job *job = outcome_job(4, 2);

	job->leaves = true;
	job->n_rounds = 3;
	job->net.faults.loss = 300000;
	sim_job_open(job);
	check(c, sim_job_run(job, 20 * SW_S), "the job completes");
	check(c, !sim_job_wrong(job), "all sums are right");
	sim_job_pass(job, 12 * SW_S);
	check_eq(c, bytes_of_servers(job), 0, "bytes that servers hold");
	for (uint32_t i = 0; i < 2; i++)
		check(c,
			!job->servers[i]->jobs[0].n_sessions &&
				!job->servers[i]->quota.used_bytes,
			"no job is left");
	outcome_end(job);
}

static void start_all(struct sim_job *job)
{
	for (uint32_t r = 0; r < job->n_workers; r++) {
		sim_worker_kill(job, r);
		sim_worker_start(job, r);
	}
}

static void runs_again_on_the_same_servers(struct check *c)
{
	struct sim_job *job = outcome_job(3, 2);

	job->leaves = true;
	job->n_rounds = 3;
	sim_job_open(job);
	for (uint32_t i = 0; i < 5; i++) {
		check(c, sim_job_run(job, 2 * SW_S), "a run completes");
		start_all(job);
	}
	check(c, sim_job_run(job, 2 * SW_S), "the last run completes");
	outcome_end(job);
}

/* Kill all workers and start them again. Their places stay taken until the
 * server declares the old workers dead, and the new workers log who holds
 * them. */
static void runs_again_after_a_kill(struct check *c)
{
	struct sim_job *job = outcome_job(3, 2);

	job->leaves = true;
	sim_job_open(job);
	sim_job_pass(job, 20 * SW_MS);
	job->n_rounds = 3;
	for (uint32_t r = 0; r < 3; r++)
		sim_worker_kill(job, r);
	start_all(job);
	sim_job_pass(job, 5 * SW_S);
	check_text(c, job->workers[1].told,
		"agent 1 of job sim is node "
		"gpu1 at ");
	check(c, sim_job_run(job, 10 * SW_S), "the second run completes");
	outcome_end(job);
}

const struct check_case outcome_join_cases[] = {
	{"server_not_there", server_not_there},
	{"second_server_not_there", second_server_not_there},
	{"server_comes_late", server_comes_late},
	{"third_of_four_missing", third_of_four_missing},
	{"worker_comes_late", worker_comes_late},
	{"answers_are_lost_for_long", answers_are_lost_for_long},
	{"worker_dies_while_another_is_awaited",
		worker_dies_while_another_is_awaited},
	{"other_number_of_agents", other_number_of_agents},
	{"declares_another_size", declares_another_size},
	{"declares_another_dtype", declares_another_dtype},
	{"declares_another_priority", declares_another_priority},
	{"quota_is_refused", quota_is_refused},
	{"leaves_early", leaves_early},
	{"all_leave_in_peace", all_leave_in_peace},
	{"runs_again_on_the_same_servers", runs_again_on_the_same_servers},
	{"runs_again_after_a_kill", runs_again_after_a_kill},
};

const uint32_t n_outcome_join_cases = SW_ARRAY_SIZE(outcome_join_cases);
