/* trace_tuning.c - tuning changes in a running job; all use the newest.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "test/sim/trace_job.h"

enum { ROUNDS = 40 };

static struct sim_job *open_job(uint32_t n_workers, uint32_t n_servers)
{
	struct sim_job *job = new_job(336, ROUNDS);

	job->n_workers = n_workers;
	job->n_servers = n_servers;
	job->n_tensors = job->n_first = 3;
	job->pause_ns = 20 * SW_MS; /* so that retransmissions fall into it */
	return job;
}

static bool has_begun(void *ctx)
{
	struct sim_job *job = ctx;

	return job->workers[0].engine.highest_round >= 5;
}

/* Run until the fifth round. */
static void start(struct check *c, struct sim_job *job)
{
	sim_job_open(job);
	check(c, sim_net_run(&job->net, job->net.now_ns + SW_S, has_begun, job),
		"the job has begun");
}

static void check_used(struct check *c, struct sim_job *job, uint32_t number)
{
	const struct sw_status *st = &job->servers[0]->jobs[0].status;

	check_eq(c, st->number, number, "number at the coordinator");
	for (uint32_t r = 0; r < job->n_workers; r++) {
		const struct sw_worker *w = &job->workers[r].engine;

		check_eq(c, w->tuning.number, number, "number of the tuning");
		check(c,
			number == 0 ||
				w->sched.policy == sw_policy_at(st->policy),
			"policy");
	}
}

/* Any rank may request it; all ranks switch. */
static void tuning_of_all(struct check *c)
{
	struct sim_job *job = open_job(3, 2);

	start(c, job);
	check_eq(c,
		(uint64_t)sw_worker_tune(&job->workers[1].engine,
			&sw_policies[SW_POLICY_BYTESCHEDULER], 1 << 20,
			2 << 20),
		0, "error");
	job->workers[1].node->loop.tick_at_ns = 0;
	check(c, sim_job_run(job, 10 * SW_S), "the job ends");
	check_used(c, job, 1);
	for (uint32_t r = 0; r < 3; r++) {
		const struct sw_worker *w = &job->workers[r].engine;

		check_eq(c, w->stats.tuning_changes, 1, "changes");
		check_eq(c, w->sched.part_bytes, 1 << 20, "partition");
		check_eq(c, w->sched.limit, 2 << 20, "credit");
	}
	end_job(c, job);
}

/* All ranks request at once: the requests have one order, and the last number
 * wins. */
static void tuning_in_one_order(struct check *c)
{
	struct sim_job *job = open_job(4, 1);
	uint32_t n;

	start(c, job);
	for (uint32_t r = 0; r < 4; r++)
		sim_worker_tune(&job->workers[r]);
	check(c, sim_job_run(job, 10 * SW_S), "the job ends");
	n = job->servers[0]->jobs[0].status.number;
	check_eq(c, n, 4, "sets of tuning");
	check_used(c, job, n);
	end_job(c, job);
}

struct loss {
	uint8_t type;
	uint32_t from; /* sending node */
	uint32_t n;    /* frames to lose */
	bool is_on;
};

static enum sim_fate lose(void *ctx, struct sim_frame *f)
{
	struct loss *l = ctx;

	if (!l->is_on || !is_type(f, l->type, l->from) || !l->n)
		return SIM_PASS;
	l->n--;
	return SIM_LOST;
}

/* The request, the state and its acknowledgement are lost several times. */
static void tuning_frames_are_lost(struct check *c)
{
	static const struct loss losses[] = {
		{SW_TUNE, 1, 3, true},      /* from rank 0 */
		{SW_STATUS, 0, 5, true},    /* to any rank */
		{SW_KEEPALIVE, 2, 4, true}, /* from rank 1 */
	};

	for (uint32_t i = 0; i < SW_ARRAY_SIZE(losses); i++) {
		struct sim_job *job = open_job(3, 1);
		struct loss l = losses[i];

		start(c, job);
		job->net.hook = lose;
		job->net.hook_ctx = &l;
		sim_worker_tune(&job->workers[0]);
		check(c, sim_job_run(job, 10 * SW_S), "the job ends");
		check_eq(c, l.n, 0, "frames left to lose");
		check_eq(
			c, job->servers[0]->jobs[0].status.number, 1, "number");
		end_job(c, job);
	}
}

/* Copy of the first frame of a type, for a later replay. */
struct keep {
	uint8_t type;
	uint32_t from;
	struct sim_frame *f;
};

static enum sim_fate keep_first(void *ctx, struct sim_frame *f)
{
	struct keep *k = ctx;

	if (k->f || !is_type(f, k->type, k->from))
		return SIM_PASS;
	k->f = malloc(sizeof(*f) + f->len);
	if (!k->f)
		abort();
	memcpy(k->f, f, sizeof(*f) + f->len);
	return SIM_PASS;
}

static bool is_settled(void *ctx)
{
	struct sim_job *job = ctx;

	return job->workers[0].engine.tuning.number &&
	       job->workers[1].engine.tuning.number;
}

/* An old request, acknowledgement and state arrive at the end: no tuning gets a
 * second number, and no rank goes back. */
static void tuning_frames_from_the_past(struct check *c)
{
	static const struct keep keeps[] = {{SW_TUNE, 1, NULL},
		{SW_KEEPALIVE, 2, NULL}, {SW_STATUS, 0, NULL}};

	for (uint32_t i = 0; i < SW_ARRAY_SIZE(keeps); i++) {
		struct sim_job *job = open_job(2, 1);
		struct keep k = keeps[i];

		start(c, job);
		job->net.hook = keep_first;
		job->net.hook_ctx = &k;
		sim_worker_tune(&job->workers[0]);
		check(c,
			sim_net_run(&job->net, job->net.now_ns + SW_S,
				is_settled, job),
			"all use them");
		for (uint32_t n = 0; n < 3 && k.f; n++)
			sim_net_replay(&job->net, k.f);
		check(c, sim_job_run(job, 10 * SW_S), "the job ends");
		check_used(c, job, 1);
		free(k.f);
		end_job(c, job);
	}
}

/* Asynchronous: rank 0 is a hundred rounds ahead of rank 1, which has long
 * pauses. However often the tuning changes, neither waits for the other's
 * rounds. */
static void tuning_of_asynchronous_rounds(struct check *c)
{
	struct sim_job *job = new_job(336, 1000000);
	struct sim_worker *fast = &job->workers[0], *slow = &job->workers[1];

	job->async = 1;
	job->is_in_order = true;
	sim_job_open(job);
	slow->node->turn_ns *= 1000;
	sim_job_pass(job, 100 * SW_MS);
	check(c, fast->round[0] > slow->round[0] + 100, "one is far ahead");
	for (uint32_t n = 1; n <= 5; n++) {
		uint32_t before = fast->round[0];

		sw_worker_tune(&fast->engine,
			&sw_policies[SW_POLICY_BYTESCHEDULER],
			(uint64_t)SW_PART_MIN << n, 0);
		fast->node->loop.tick_at_ns = 0;
		sim_job_pass(job, 200 * SW_MS);
		check(c, fast->round[0] > before + 1000, "it goes on");
		check_eq(
			c, fast->engine.tuning.number, n, "tuning of the fast");
		check_eq(
			c, slow->engine.tuning.number, n, "tuning of the slow");
		check_eq(c, fast->engine.sched.part_bytes,
			(uint64_t)SW_PART_MIN << n, "partition");
	}
	check(c, slow->round[0] < fast->round[0] / 2, "it stays behind");
	check(c, !job->oracle[0], job->oracle);
	sim_job_close(job);
	free(job);
}

/* A value that one worker changes applies at once, to that worker alone. */
static void tuning_of_one_worker(struct check *c)
{
	struct sim_job *job = open_job(2, 1);

	start(c, job);
	check_eq(c,
		(uint64_t)sw_worker_set_tuning(
			&job->workers[0].engine, 4096, 1 << 20),
		0, "error");
	check_eq(c, job->workers[0].engine.sched.part_bytes, 4096, "partition");
	check(c, sim_job_run(job, 10 * SW_S), "the job ends");
	check_eq(c, job->workers[1].engine.sched.limit, 4 << 20, "credit");
	check_used(c, job, 0);
	end_job(c, job);
}

const struct check_case trace_tuning[] = {
	{"tuning_of_all", tuning_of_all},
	{"tuning_in_one_order", tuning_in_one_order},
	{"tuning_frames_are_lost", tuning_frames_are_lost},
	{"tuning_frames_from_the_past", tuning_frames_from_the_past},
	{"tuning_of_asynchronous_rounds", tuning_of_asynchronous_rounds},
	{"tuning_of_one_worker", tuning_of_one_worker},
};

const uint32_t n_trace_tuning = SW_ARRAY_SIZE(trace_tuning);
