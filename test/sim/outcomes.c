/* outcomes.c - every failure ends at every worker in an error with a name.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test/sim/outcomes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"

struct sim_job *outcome_job(uint32_t n_workers, uint32_t n_servers)
{
	struct sim_job *job = malloc(sizeof(*job));

	if (!job)
		abort();
	sim_job_init(job, 1);
	job->n_workers = n_workers;
	job->n_servers = n_servers;
	job->n_elems[0] = 500 * 336; /* every server has chunks */
	job->n_rounds = 1000000;
	return job;
}

void outcome_end(struct sim_job *job)
{
	sim_job_close(job);
	free(job);
}

void outcome_expect(struct check *c, struct sim_job *job, uint32_t rank,
	int err, const char *text)
{
	const struct sim_worker *w = &job->workers[rank];

	if (!check(c, w->has_failed, "the worker has failed"))
		return;
	check_eq(c, (uint64_t)w->err, (uint64_t)err, "error");
	check_text(c, w->text, text);
	for (uint32_t t = 0; t < job->n_tensors; t++)
		check(c, !w->asked[t], "no push_pull is left open");
}

/* Check that worker @rank failed within @ns after @from_ns. */
static void expect_soon(struct check *c, struct sim_job *job, uint32_t rank,
	uint64_t from_ns, uint64_t ns)
{
	check(c, job->workers[rank].failed_ns <= from_ns + ns, "in time");
}

/* --- silence --- */

/* A machine with worker and server dies: all others name it. */
static void silent_machine(struct check *c)
{
	for (uint32_t victim = 0; victim < 3; victim++) {
		struct sim_job *job = outcome_job(3, 4);
		uint64_t from_ns;

		job->n_colocated = 3; /* plus one CPU machine */
		sim_job_open(job);
		sim_job_pass(job, 5 * SW_MS);
		check(c, job->workers[0].round[0] > 0, "the job was running");
		from_ns = job->net.now_ns;
		sim_worker_kill(job, victim);
		sim_job_pass(job, 15 * SW_S);
		for (uint32_t r = 0; r < 3; r++) {
			const struct sim_worker *w = &job->workers[r];
			char rank[32], server[32];

			if (r == victim)
				continue;
			snprintf(rank, sizeof(rank), "rank %u (node gpu%u)",
				victim, victim);
			snprintf(server, sizeof(server), "server s%u ",
				1 + victim);
			check(c, w->has_failed, "the others failed");
			check(c,
				strstr(w->text, rank) ||
					strstr(w->text, server),
				"they name the machine");
			expect_soon(c, job, r, from_ns, 11 * SW_S);
		}
		outcome_end(job);
	}
}

static void silent_worker(struct check *c)
{
	struct sim_job *job = outcome_job(4, 2);
	uint64_t from_ns;

	sim_job_open(job);
	sim_job_pass(job, 5 * SW_MS);
	check(c, job->workers[0].round[0] > 0, "the job was running");
	sim_worker_kill(job, 2);
	from_ns = job->net.now_ns;
	sim_job_pass(job, job->params.dead_after + SW_S);
	for (uint32_t r = 0; r < 4; r++)
		if (r != 2) {
			outcome_expect(c, job, r, SW_EPEER,
				"rank 2 (node gpu2) silent for 10 s");
			expect_soon(c, job, r, from_ns,
				job->params.dead_after + SW_S);
		}
	outcome_end(job);
}

/* A worker dies while no worker has anything to push. */
static void silent_worker_while_idle(struct check *c)
{
	struct sim_job *job = outcome_job(3, 1);

	job->n_rounds = 1;
	sim_job_open(job);
	check(c, sim_job_run(job, SW_S), "one round");
	sim_worker_kill(job, 0);
	sim_job_pass(job, job->params.dead_after + SW_S);
	for (uint32_t r = 1; r < 3; r++)
		outcome_expect(c, job, r, SW_EPEER,
			"rank 0 (node gpu0) silent for 10 s");
	outcome_end(job);
}

static void expect_silent_server(struct check *c, uint32_t i, const char *text)
{
	struct sim_job *job = outcome_job(3, 2);

	sim_job_open(job);
	sim_job_pass(job, 5 * SW_MS);
	sim_server_kill(job, i);
	sim_job_pass(job, job->params.dead_after + SW_S);
	for (uint32_t r = 0; r < 3; r++)
		outcome_expect(c, job, r, SW_ESERVER, text);
	outcome_end(job);
}

static void silent_coordinator(struct check *c)
{
	expect_silent_server(c, 0, "server s0 (10.0.0.1) silent for 10 s");
}

static void silent_second_server(struct check *c)
{
	expect_silent_server(c, 1, "server s1 (10.0.0.2) silent for 10 s");
}

/* With keys, a restarted server lacks the session keys, and workers ask it. */
static void restarted_server(struct check *c)
{
	for (uint32_t n = 0; n < 4; n++) {
		struct sim_job *job = outcome_job(3, 2);
		uint32_t i = n % 2;

		job->is_keyed = n / 2;
		sim_job_open(job);
		sim_job_pass(job, (job->is_keyed ? 50 : 5) * SW_MS);
		check_eq(c, job->workers[0].engine.state, SW_WORKER_RUNNING,
			"state");
		sim_server_kill(job, i);
		sim_job_pass(job, 100 * SW_MS);
		sim_server_start(job, i);
		sim_job_pass(job, 2 * SW_S);
		for (uint32_t r = 0; r < 3; r++)
			outcome_expect(c, job, r, SW_ESERVER,
				"no longer knows this agent: it was "
				"restarted");
		check_text(c, job->workers[0].text, i ? "s1" : "s0");
		outcome_end(job);
	}
}

/* A worker stops for longer than dead_after. */
static void stopped_worker(struct check *c)
{
	struct sim_job *job = outcome_job(3, 1);

	sim_job_open(job);
	sim_job_pass(job, 5 * SW_MS);
	sim_node_freeze(job->workers[1].node, 15 * SW_S);
	sim_job_pass(job, 17 * SW_S);
	outcome_expect(c, job, 0, SW_EPEER, "rank 1 (node gpu1) silent");
	outcome_expect(c, job, 2, SW_EPEER, "rank 1 (node gpu1) silent");
	outcome_expect(
		c, job, 1, SW_ESERVER, "server s0 no longer knows this agent");
	outcome_end(job);
}

/* One direction of one link fails for good. */
static void half_a_link(struct check *c)
{
	for (uint32_t up = 0; up < 2; up++) {
		struct sim_job *job = outcome_job(3, 2);
		struct sim_faults *x = &job->net.faults;

		sim_job_open(job);
		sim_job_pass(job, 5 * SW_MS);
		x->cut_from = up ? 1u << 3 : 1u << 1; /* rank 1, server 1 */
		x->cut_to = up ? 1u << 1 : 1u << 3;
		x->cut_until_ns = UINT64_MAX;
		sim_job_pass(job, 2 * job->params.dead_after + 2 * SW_S);
		for (uint32_t r = 0; r < 3; r++)
			outcome_expect(c, job, r, SW_ESERVER,
				"server s1 (10.0.0.2) silent for 10 s");
		outcome_end(job);
	}
}

static enum sim_fate lose_big_frames(void *ctx, struct sim_frame *f)
{
	(void)ctx;
	return f->len > 1000 ? SIM_LOST : SIM_PASS;
}

/* Small frames pass, large frames do not: the error says so to workers that
 * want to join. */
static void big_frames_are_lost(struct check *c)
{
	struct sim_job *job = outcome_job(2, 1);

	job->net.hook = lose_big_frames;
	sim_job_open(job);
	sim_job_pass(job, 40 * SW_S);
	for (uint32_t r = 0; r < 2; r++) {
		check(c, !job->workers[r].has_failed, "the worker waits");
		check_text(c, job->workers[r].told,
			"waiting for server s0 (10.0.0.1:5700), which answers, "
			"but not to packets of 1234 B (payload 1152)");
	}
	outcome_end(job);
}

/* Large frames fail in mid-job: within dead_after, all workers learn which path
 * does not carry them, and no worker is called silent. */
static void big_frames_are_lost_later(struct check *c)
{
	struct sim_job *job = outcome_job(2, 1);

	sim_job_open(job);
	sim_job_pass(job, 50 * SW_MS);
	check(c, job->workers[0].round[0] > 0, "the job was running");
	job->net.hook = lose_big_frames;
	sim_job_pass(job, job->params.dead_after);
	for (uint32_t r = 0; r < 2; r++)
		outcome_expect(c, job, r, SW_EIO,
			"packets of 1426 B (payload 1344) no longer pass "
			"from ");
	outcome_end(job);
}

/* --- no progress --- */

/* All workers are alive, but rank 1 does not push. */
static void stalled_tensor(struct check *c)
{
	struct sim_job *job = outcome_job(3, 1);

	job->workers[1].pause_until_ns = UINT64_MAX;
	sim_job_open(job);
	sim_job_pass(job, 29 * SW_S);
	check_eq(c, job->workers[0].told[0], 0, "warned before its time");
	sim_job_pass(job, 2 * SW_S);
	check_text(c, job->workers[0].told,
		"waiting 30 s for rank 1 of 3, tensor fc1.weight");
	check_text(c, job->workers[2].told,
		"waiting 30 s for rank 1 of 3, tensor fc1.weight");
	check(c, !job->workers[0].has_failed, "it goes on waiting");
	sim_job_pass(job, 567 * SW_S);
	check(c, !job->workers[0].has_failed, "up to the limit");
	sim_job_pass(job, 5 * SW_S);
	for (uint32_t r = 0; r < 3; r++)
		outcome_expect(c, job, r, SW_ESTALL,
			"waited 600 s for rank 1 of 3, tensor fc1.weight");
	outcome_end(job);
}

/* Rank 1 pushes late: a warning, no error. */
static void slow_but_there(struct check *c)
{
	struct sim_job *job = outcome_job(2, 1);

	job->n_rounds = 2;
	job->workers[1].pause_until_ns = 100 * SW_S;
	sim_job_open(job);
	check(c, sim_job_run(job, 200 * SW_S), "the job completes");
	check_text(c, job->workers[0].told, "waiting 90 s for rank 1");
	check(c, !sim_job_wrong(job), "all sums are right");
	outcome_end(job);
}

static void idle_is_quiet(struct check *c)
{
	struct sim_job *job = outcome_job(4, 2);
	uint64_t n;

	job->n_rounds = 3;
	sim_job_open(job);
	check(c, sim_job_run(job, SW_S), "the job completes");
	sim_job_pass(job, SW_S);
	n = job->net.n_frames;
	sim_job_pass(job, 60 * SW_S);
	/* One keepalive a second in each direction of each of eight links. */
	check(c, job->net.n_frames - n <= 2 * 8 * 61, "only keepalives");
	check(c, job->net.n_frames - n >= 2 * 8 * 59, "and those");
	for (uint32_t r = 0; r < 4; r++)
		check(c, !job->workers[r].has_failed, "nobody is accused");
	outcome_end(job);
}

static const struct check_case cases[] = {
	{"silent_machine", silent_machine},
	{"silent_worker", silent_worker},
	{"silent_worker_while_idle", silent_worker_while_idle},
	{"silent_coordinator", silent_coordinator},
	{"silent_second_server", silent_second_server},
	{"restarted_server", restarted_server},
	{"stopped_worker", stopped_worker},
	{"half_a_link", half_a_link},
	{"big_frames_are_lost", big_frames_are_lost},
	{"big_frames_are_lost_later", big_frames_are_lost_later},
	{"stalled_tensor", stalled_tensor},
	{"slow_but_there", slow_but_there},
	{"idle_is_quiet", idle_is_quiet},
};

int main(int argc, char **argv)
{
	const char *filter = argc > 1 ? argv[1] : NULL;
	uint32_t passed = 0, failed = 0;

	check_run(cases, SW_ARRAY_SIZE(cases), filter, &passed, &failed);
	check_run(outcome_join_cases, n_outcome_join_cases, filter, &passed,
		&failed);
	return check_end(passed, failed);
}
