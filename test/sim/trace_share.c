/* trace_share.c - several jobs on one server: shares, isolation (A13c, I9).
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/base/error.h"
#include "engine/server/job.h"
#include "engine/worker/faults.h"
#include "test/sim/trace_job.h"

/* Create endless jobs that share the 10 Gb/s link of one server. */
static struct sim_job *new_jobs(uint32_t n_jobs, uint32_t n_workers)
{
	struct sim_job *job = new_job(40 * 336, 1000000);

	job->n_jobs = n_jobs;
	job->n_workers = n_workers;
	job->n_tensors = job->n_first = 16;
	for (uint32_t t = 0; t < job->n_tensors; t++)
		job->n_elems[t] = 40 * 336;
	job->params.window_bytes = 256 << 10;
	job->params.queue_bytes = 521 << 10; /* 512 and headers */
	return job;
}

static void end_jobs(struct check *c, struct sim_job *job)
{
	check(c, !job->oracle[0], job->oracle);
	sim_job_close(job);
	free(job);
}

static const char *const names[SIM_JOBS] = {"sim", "j1", "j2", "j3"};

static uint64_t folded(struct sim_job *job, uint32_t i)
{
	const struct sw_job *j = sw_job_find(job->servers[0], names[i]);

	return j ? j->shard.n_folded : 0;
}

/* Check that job @i got @want per mille of the chunks folded within @ns, within
 * 3 %, which depends on the phase of the rounds. */
static void expect_share(
	struct check *c, struct sim_job *job, const uint32_t *want, uint64_t ns)
{
	uint64_t from[SIM_JOBS], sum = 0;

	for (uint32_t i = 0; i < job->n_jobs; i++)
		from[i] = folded(job, i);
	sim_job_pass(job, ns);
	for (uint32_t i = 0; i < job->n_jobs; i++)
		sum += folded(job, i) - from[i];
	for (uint32_t i = 0; i < job->n_jobs; i++) {
		uint64_t got = 1000 * (folded(job, i) - from[i]) / sum;

		if (!check(c,
			    got >= want[i] * 97 / 100 &&
				    got <= want[i] * 103 / 100,
			    "the share is its weight's"))
			check_eq(c, got, want[i], "per mille");
	}
	/* The shares must not come from an idle link: bits per ns are Gb/s. */
	check(c, sum * 1344 * 8 >= ns * 8, "8 of 10 Gb/s were folded");
}

static void share(struct check *c, uint32_t n_jobs, uint32_t n_workers,
	const uint32_t *weights, const uint32_t *want)
{
	struct sim_job *job = new_jobs(n_jobs, n_workers);
	struct sw_share shares[SIM_JOBS];

	for (uint32_t i = 0; i < n_jobs; i++)
		shares[i] = (struct sw_share){.job = names[i],
			.weight = weights[i],
			.quota_bytes = UINT64_MAX};
	job->shares = shares;
	job->n_shares = n_jobs;
	job->net.faults.queue_bytes = 16 << 20; /* both directions are slow */
	sim_job_open(job);
	job->net.nodes[0].rate_bits_s = 10ULL * 1000 * 1000 * 1000;
	sim_job_pass(job, 20 * SW_MS);
	expect_share(c, job, want, 200 * SW_MS);
	end_jobs(c, job);
}

static void a13c_equal_jobs_share_equally(struct check *c)
{
	share(c, 2, 4, (uint32_t[]){1, 1}, (uint32_t[]){500, 500});
}

static void a13c_jobs_share_by_weight(struct check *c)
{
	share(c, 2, 4, (uint32_t[]){3, 1}, (uint32_t[]){750, 250});
	share(c, 3, 6, (uint32_t[]){1, 2, 5}, (uint32_t[]){125, 250, 625});
}

/* Three workers of one job and two of the other: jobs share, not members. */
static void a13c_members_do_not_count(struct check *c)
{
	share(c, 2, 5, (uint32_t[]){1, 1}, (uint32_t[]){500, 500});
	share(c, 2, 5, (uint32_t[]){1, 4}, (uint32_t[]){200, 800});
}

/* Check that job 0 has completed all rounds, exactly, and that nothing is left
 * of the other jobs. */
static void expect_first_done(struct check *c, struct sim_job *job)
{
	for (uint32_t r = 0; r < job->n_workers; r += job->n_jobs) {
		check(c, !job->workers[r].has_failed, "it did not fail");
		for (uint32_t t = 0; t < job->n_tensors; t++)
			check_eq(c, job->workers[r].round[t], job->n_rounds,
				"rounds");
	}
	check(c, !sw_job_find(job->servers[0], "j1"), "j1 is closed");
	check_eq(c, job->servers[0]->quota.used_bytes,
		sw_job_find(job->servers[0], "sim")->shard.mem_bytes,
		"memory used");
}

/* A worker of one job dies: its own job fails with an error that names it, and
 * the other job continues. */
static void i9_a_death_harms_no_other_job(struct check *c)
{
	struct sim_job *job = new_jobs(2, 4);

	job->n_rounds = 100;
	sim_job_open(job);
	sim_job_pass(job, 2 * SW_MS);
	check(c, job->workers[1].round[0] > 0, "j1 was running");
	check(c, job->workers[0].round[0] < 100, "so was the other");
	sim_worker_kill(job, 1);
	sim_job_pass(job, 12 * SW_S);
	check_text(c, job->workers[3].text, "rank 0 (node gpu1) silent");
	expect_first_done(c, job);
	end_jobs(c, job);
}

/* One job requests more memory than its quota: the server refuses it before it
 * begins. */
static void i9_a_job_over_quota_harms_no_other(struct check *c)
{
	const struct sw_share share = {
		.job = "j1", .weight = 1, .quota_bytes = 1 << 20};
	struct sim_job *job = new_jobs(2, 4);

	job->n_rounds = 100;
	job->shares = &share;
	job->n_shares = 1;
	sim_job_open(job);
	sim_job_pass(job, 5 * SW_S);
	for (uint32_t r = 1; r < 4; r += 2) {
		check_eq(c, job->workers[r].round[0], 0, "rounds");
		check_text(c, job->workers[r].text,
			"quota of job j1: the tensors need 2 MiB, 1 of 1 MiB "
			"are left");
	}
	expect_first_done(c, job);
	end_jobs(c, job);
}

/* --- an idle job --- */

enum { CHUNKS = 6200 }; /* 8 MB */

static bool has_round(const struct sim_job *job, uint32_t first)
{
	return job->workers[first].round[0] && job->workers[first + 2].round[0];
}

static bool has_round_of_b(void *ctx)
{
	return has_round(ctx, 1);
}

/* Return the duration of a round of both members of job @first. */
static uint64_t run_round(struct check *c, struct sim_job *job, uint32_t first)
{
	uint64_t from_ns = job->net.now_ns;

	for (uint32_t r = first; r < 4; r += 2)
		sim_worker_submit(&job->workers[r], 0, 0);
	if (first)
		check(c,
			sim_net_run(
				&job->net, from_ns + SW_S, has_round_of_b, job),
			"the round ends");
	else
		sim_job_pass(job, SW_S / 10);
	check(c, has_round(job, first), "the round has ended");
	return job->net.now_ns - from_ns;
}

/* Return the duration of job B's round at a distant server, after a round of
 * A. */
static uint64_t time_of_b(struct check *c, bool is_beside)
{
	struct sim_job *job = new_job(CHUNKS * 336, 0);
	uint64_t ns;

	job->n_jobs = 2;
	job->n_workers = 4;
	job->is_by_hand = true;
	job->params.window_bytes = 512 << 10;
	job->params.queue_bytes = 521 << 10;
	job->net.faults.queue_bytes = 16 << 20;
	job->net.latency_ns = 50 * SW_US;
	sim_job_open(job);
	sim_job_pass(job, 20 * SW_MS);
	if (is_beside)
		run_round(c, job, 0);
	check_eq(c, job->servers[0]->grants.used, 0, "grants held at rest");
	check_eq(c, job->servers[0]->grants.windows, 0, "flows with a backlog");
	ns = run_round(c, job, 1);
	end_jobs(c, job);
	return ns;
}

static void a13c_a_job_at_rest_holds_no_grants(struct check *c)
{
	uint64_t alone = time_of_b(c, false), beside = time_of_b(c, true);

	if (!check(c, beside <= alone + alone / 50, "B is as fast beside A"))
		check_eq(c, beside, alone, "ns");
}

/* A tensor dies before all its chunks are pushed: the server does not wait for
 * them. */
static void a13c_a_dead_tensor_has_no_backlog(struct check *c)
{
	struct sim_job *job = new_job(CHUNKS * 336, 0);
	struct sw_worker *w;

	job->is_by_hand = true;
	job->params.window_bytes = 64 << 10;
	sim_job_open(job);
	sim_job_pass(job, 20 * SW_MS);
	w = &job->workers[0].engine;
	sim_worker_submit(&job->workers[0], 0, 0);
	sim_job_pass(job, 200 * SW_US);
	check(c, job->servers[0]->grants.windows > 0, "there is a backlog");
	sw_tensor_kill(
		w, &w->tensors[0], 1, &(struct sw_fault){.err = SW_EMISMATCH});
	sim_job_pass(job, 100 * SW_MS);
	check_eq(c, job->servers[0]->grants.used, 0, "grants held");
	check_eq(c, job->servers[0]->grants.windows, 0, "flows with a backlog");
	sim_job_close(job);
	free(job);
}

const struct check_case trace_share[] = {
	{"a13c_a_job_at_rest_holds_no_grants",
		a13c_a_job_at_rest_holds_no_grants},
	{"a13c_a_dead_tensor_has_no_backlog",
		a13c_a_dead_tensor_has_no_backlog},
	{"a13c_equal_jobs_share_equally", a13c_equal_jobs_share_equally},
	{"a13c_jobs_share_by_weight", a13c_jobs_share_by_weight},
	{"a13c_members_do_not_count", a13c_members_do_not_count},
	{"i9_a_death_harms_no_other_job", i9_a_death_harms_no_other_job},
	{"i9_a_job_over_quota_harms_no_other",
		i9_a_job_over_quota_harms_no_other},
};

const uint32_t n_trace_share = SW_ARRAY_SIZE(trace_share);
