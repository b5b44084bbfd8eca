/* trace_lost.c - members and local ranks die; other groups continue.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "engine/base/error.h"
#include "engine/worker/faults.h"
#include "engine/worker/stream.h"
#include "test/sim/trace_job.h"

enum { A, B, C, D, LOG2 = SW_WINDOW_MIN_LOG2, N_COLLS = 20 };

/* Open workers A to D, a separate server, a tensor that is summed for ever, and
 * groups that call all-reduces. */
static struct sim_job *open_groups(uint32_t n, const uint64_t members[])
{
	struct sim_job *job = new_job(4000, UINT32_MAX);

	job->n_workers = 4;
	job->n_servers = 2;
	job->n_groups = n;
	job->params.dead_after = SW_S;
	for (uint32_t g = 0; g < n; g++) {
		job->groups[g].members = members[g];
		job->groups[g].window_log2 = LOG2;
		job->groups[g].n_colls = N_COLLS;
		job->groups[g].depth = 1;
		for (uint32_t i = 0; i < N_COLLS; i++)
			job->groups[g].colls[i] =
				(struct sim_coll){.kind = SW_ALL_REDUCE,
					.dtype = SW_I32,
					.n_elems = 60000};
	}
	return job;
}

static void start(struct check *c, struct sim_job *job)
{
	sim_job_open(job);
	sim_job_pass(job, 2 * SW_MS);
	check(c, job->workers[A].round[0] > 0, "the job runs");
}

static uint32_t n_done(const struct sim_job *job, uint32_t worker, uint32_t g)
{
	return job->workers[worker].of_group[g].n_done;
}

/* Check that all members of group @g have completed all calls without error. */
static void expect_through(struct check *c, struct sim_job *job, uint32_t g)
{
	for (uint32_t w = 0; w < job->n_workers; w++) {
		if (!(job->groups[g].members >> w & 1))
			continue;
		check_eq(c, n_done(job, w, g), N_COLLS, "collectives");
		check_eq(c, (uint32_t)-job->workers[w].of_group[g].err, 0,
			"error");
	}
}

/* Check that tensor @index is dead at @worker, for @why. */
static void expect_dead(struct check *c, const struct sim_job *job,
	uint32_t worker, uint32_t index, const char *why)
{
	const struct sw_worker *w = &job->workers[worker].engine;
	char text[SW_TEXT_MAX];
	const char *said = sw_worker_why(w, index, text);

	check_eq(c, (uint32_t)-sw_worker_death(w, index), (uint32_t)-SW_EPEER,
		"death");
	check_text(c, said ? said : "", why);
}

static void end(struct check *c, struct sim_job *job)
{
	check(c, !job->oracle[0], job->oracle);
	sim_job_close(job);
	free(job);
}

/* D dies: the group of A and B continues, and no call of D's tensors and groups
 * stays open. */
static void a_member_dies(struct check *c)
{
	static const uint64_t members[] = {
		0xf, 1 << A | 1 << B, 1 << C | 1 << D};
	struct sim_job *job = open_groups(3, members);

	start(c, job);
	sim_worker_kill(job, D);
	check(c, n_done(job, A, 1) < N_COLLS, "the group is not through");
	sim_job_pass(job, 3 * SW_S);
	expect_through(c, job, 1);
	for (uint32_t w = A; w <= C; w++) {
		const struct sim_worker *who = &job->workers[w];

		check(c, !who->has_failed, "the job goes on");
		expect_dead(c, job, w, who->index[0],
			"rank 3 (node gpu3) silent for 1 s");
		expect_dead(c, job, w, who->of_group[0].index,
			"rank 3 (node gpu3) silent for 1 s");
		check_eq(c, n_done(job, w, 0), who->of_group[0].n_submitted,
			"all have ended");
	}
	expect_dead(c, job, C, job->workers[C].of_group[2].index, "rank 3 ");
	/* B dies as well: now every group has lost a member. */
	sim_worker_kill(job, B);
	sim_job_pass(job, 3 * SW_S);
	for (uint32_t w = A; w <= C; w += 2) {
		check(c, job->workers[w].has_failed, "the job has ended");
		check_text(c, job->workers[w].text,
			"rank 1 (node gpu1) silent for 1 s");
	}
	end(c, job);
}

/* A reports why and leaves: the others do not wait for dead_after. */
static void a_member_leaves(struct check *c)
{
	static const uint64_t members[] = {1 << A | 1 << B, 1 << C | 1 << D};
	struct sim_job *job = open_groups(2, members);

	start(c, job);
	sw_worker_fail(&job->workers[A].engine, SW_EPEER, SW_KEY_NONE,
		"rank 0: process 7 died");
	sim_node_poke(job->workers[A].node);
	sim_job_pass(job, 500 * SW_MS);
	expect_dead(c, job, B, job->workers[B].of_group[0].index,
		"rank 0: process 7 died");
	expect_through(c, job, 1);
	end(c, job);
}

/* Every group has the member, so the job ends. */
static void a_member_of_all_groups_dies(struct check *c)
{
	static const uint64_t members[] = {0xf, 1 << C | 1 << D};
	struct sim_job *job = open_groups(2, members);

	start(c, job);
	sim_worker_kill(job, D);
	sim_job_pass(job, 3 * SW_S);
	for (uint32_t w = A; w <= C; w++)
		check_text(c, job->workers[w].text,
			"rank 3 (node gpu3) silent for 1 s");
	end(c, job);
}

/* B has two local ranks, of which the second dies. The first continues in its
 * group with C. Calls that A and D wait for end, although B has none of them
 * open. */
static void a_local_rank_dies(struct check *c)
{
	static const uint64_t members[] = {
		0xf, 1 << B | 1 << C, 1 << A | 1 << B | 1 << D};
	struct sim_job *job = open_groups(3, members);
	const char *why = "rank 1 (node gpu1): training process 7: died";

	job->n_local[B] = 2;
	job->groups[1].here[B] = 1;
	job->groups[2].here[B] = 2;
	sim_groups_list(job);
	start(c, job);
	sim_rank_kill(&job->workers[B]);
	sim_job_pass(job, 500 * SW_MS);
	expect_through(c, job, 1);
	for (uint32_t w = A; w <= D; w++) {
		const struct sim_worker *who = &job->workers[w];

		check(c, !who->has_failed, "the job goes on");
		expect_dead(c, job, w, who->index[0], why);
		expect_dead(c, job, w, who->of_group[0].index, why);
		if (w == A || w == D) /* B has released its stream */
			expect_dead(c, job, w, who->of_group[2].index, why);
	}
	end(c, job);
}

/* The rank is in all groups of its worker, so the worker leaves. */
static void a_local_rank_of_all_groups_dies(struct check *c)
{
	static const uint64_t members[] = {0xf, 1 << C | 1 << D};
	struct sim_job *job = open_groups(2, members);

	job->n_local[B] = 2;
	sim_groups_list(job);
	start(c, job);
	sim_rank_kill(&job->workers[B]);
	sim_job_pass(job, 500 * SW_MS);
	check_text(c, job->workers[B].text,
		"rank 1 (node gpu1): training process 7");
	expect_dead(c, job, A, job->workers[A].of_group[0].index,
		"rank 1 (node gpu1): training process 7: died");
	expect_through(c, job, 1);
	end(c, job);
}

const struct check_case trace_lost[] = {
	{"lost_a_member_dies", a_member_dies},
	{"lost_a_member_leaves", a_member_leaves},
	{"lost_a_member_of_all_groups_dies", a_member_of_all_groups_dies},
	{"lost_a_local_rank_dies", a_local_rank_dies},
	{"lost_a_local_rank_of_all_groups_dies",
		a_local_rank_of_all_groups_dies},
};

const uint32_t n_trace_lost = SW_ARRAY_SIZE(trace_lost);
