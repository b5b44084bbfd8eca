/* trace_join.c - traces about who is who and at which step: A14, A19, I5.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "engine/bytes.h"
#include "engine/error.h"
#include "test/sim/hand.h"
#include "test/sim/job.h"
#include "test/sim/traces.h"

enum { A, B, C };

/* Two agents have been given one rank: the first keeps its place, the second
 * is told who has it. */
static void a14_second_agent_same_rank(struct check *c)
{
	struct hand_rig rig;
	struct hand_got got;
	struct sw_fault fault;
	uint32_t peer;

	hand_open_idle(&rig);
	check(c, hand_join(&rig, A, 0, 2, NULL), "A joins");
	peer = rig.w[A].peer;
	check(c, !hand_join(&rig, C, 0, 2, NULL), "C does not");
	if (check(c, hand_take(&rig, C, SW_ERROR, &got), "C was told")) {
		memcpy(&fault, got.payload, sizeof(fault));
		check_eq(c, (uint64_t)fault.err, (uint64_t)SW_EBUSY, "error");
		check_text(c, fault.text,
			"rank 0 of job hand is held by node "
			"gpu0, which is alive");
	}
	check_eq(c, hand_session(&rig, A)->id, peer, "session of A");
	check(c, hand_join(&rig, B, 1, 2, NULL), "B joins");
	check_eq(c, rig.srv.jobs[0].state, SW_JOB_RUNNING, "state of the job");
	hand_close(&rig);
}

/* A JOIN comes again: the same session, the same answer, no new member. */
static void a14_repeated_join(struct check *c)
{
	struct hand_rig rig;
	struct hand_frame join;
	struct hand_got got;
	uint32_t id;

	hand_open_idle(&rig);
	check(c, hand_join(&rig, A, 0, 2, &join), "A joins");
	id = rig.w[A].peer;
	for (uint32_t i = 0; i < 5; i++)
		hand_again(&rig, A, &join);
	check_eq(c, rig.srv.stats.sessions_opened, 1, "sessions opened");
	while (hand_take(&rig, A, SW_ACCEPT, &got)) {
		struct sw_accept a;

		memcpy(&a, got.payload, sizeof(a));
		check_eq(c, a.session, id, "session of an ACCEPT");
	}
	hand_close(&rig);
}

static void leave(struct hand_rig *rig, uint32_t i)
{
	struct sw_fault fault = {.rank = (uint16_t)i, .key = SW_KEY_NONE};
	struct sw_header h = {.type = SW_LEAVE,
		.class = SW_CLASS_CTL,
		.session = rig->w[i].peer,
		.payload_len = sizeof(fault)};

	hand_send(rig, i, &h, &fault, NULL);
}

/* A JOIN comes late, its cookie still being valid, when its job has ended:
 * nobody is behind it, so it holds no place against the living. */
static void a14_replayed_join(struct check *c)
{
	struct hand_rig rig;
	struct hand_frame join;

	hand_open_idle(&rig);
	check(c, hand_join(&rig, A, 0, 2, &join), "A joins");
	check(c, hand_join(&rig, B, 1, 2, NULL), "B joins");
	leave(&rig, A);
	leave(&rig, B);
	check(c, !rig.srv.jobs[0].is_used, "the job has ended");
	hand_pass(&rig, SW_S);
	hand_again(&rig, A, &join);
	check_eq(c, hand_count(&rig, A, SW_ACCEPT), 1, "ACCEPTs");
	hand_empty(&rig);
	check(c, hand_join(&rig, A, 0, 2, NULL), "A joins the next run");
	check(c, hand_join(&rig, B, 1, 2, NULL), "B joins the next run");
	check_eq(c, rig.srv.jobs[0].state, SW_JOB_RUNNING, "state of the job");
	hand_close(&rig);
}

/* The same, and the next run has three members: the terms of a job that nobody
 * confirmed bind nobody. */
static void a14_replayed_join_of_other_terms(struct check *c)
{
	struct hand_rig rig;
	struct hand_frame join;

	hand_open_idle(&rig);
	check(c, hand_join(&rig, A, 0, 1, &join), "A joins");
	leave(&rig, A);
	hand_again(&rig, A, &join);
	check(c, hand_join(&rig, B, 1, 3, NULL), "B joins a job of three");
	check_eq(c, rig.srv.jobs[0].n_members, 3, "members");
	check_eq(c, rig.srv.stats.sessions_dropped, 1, "sessions dropped");
	hand_again(&rig, A, &join);
	check_eq(c, rig.srv.jobs[0].n_members, 3, "members");
	check_eq(c, hand_count(&rig, A, SW_ERROR), 1, "refusals");
	hand_close(&rig);
}

/* A member counts when its worker has spoken under its session id, not when a
 * JOIN has come: the job does not run, and whoever is not there harms nobody.
 */
static void a14_replayed_join_does_not_count(struct check *c)
{
	struct hand_rig rig;
	struct hand_frame join;

	hand_open_idle(&rig);
	check(c, hand_join(&rig, A, 0, 2, &join), "A joins");
	leave(&rig, A);
	hand_again(&rig, A, &join);
	check(c, hand_join(&rig, B, 1, 2, NULL), "B joins");
	check_eq(c, rig.srv.jobs[0].state, SW_JOB_FORMING, "state of the job");
	check_eq(c, rig.srv.jobs[0].joined, 2, "members");
	for (uint32_t i = 0; i < 11; i++) {
		hand_pass(&rig, SW_S);
		hand_speak(&rig, B);
	}
	check_eq(c, rig.srv.jobs[0].state, SW_JOB_FORMING, "state of the job");
	check_eq(c, rig.srv.stats.sessions_dropped, 1, "sessions dropped");
	hand_empty(&rig);
	check(c, hand_join(&rig, A, 0, 2, NULL), "A joins");
	check_eq(c, rig.srv.jobs[0].state, SW_JOB_RUNNING, "state of the job");
	hand_close(&rig);
}

/* The JOIN of an earlier start comes after that of a later one, which has not
 * spoken yet: the later stays. */
static void a14_earlier_start_is_refused(struct check *c)
{
	struct hand_rig rig;
	struct hand_frame first, second;
	struct hand_got got;
	struct sw_fault fault;
	uint32_t id;

	hand_open_idle(&rig);
	check(c, hand_join(&rig, A, 0, 2, &first), "A joins");
	leave(&rig, A);
	check(c, hand_join(&rig, A, 0, 2, &second), "A starts again");
	leave(&rig, A);
	hand_again(&rig, A, &second); /* nobody has spoken */
	id = rig.srv.sessions[0]->id;
	hand_empty(&rig);
	hand_again(&rig, A, &first);
	check_eq(c, rig.srv.sessions[0]->id, id, "session of A");
	check_eq(c, hand_count(&rig, A, SW_ACCEPT), 0, "ACCEPTs");
	if (check(c, hand_take(&rig, A, SW_ERROR, &got), "it was refused")) {
		memcpy(&fault, got.payload, sizeof(fault));
		check_eq(c, (uint64_t)fault.err, (uint64_t)SW_EBUSY, "error");
		check_text(c, fault.text,
			"rank 0 of job hand was taken by a later start, on "
			"node gpu0");
	}
	hand_close(&rig);
}

/* A cookie dies: a JOIN that is replayed after that is nobody's. */
static void a14_join_with_an_old_cookie(struct check *c)
{
	struct hand_rig rig;
	struct hand_frame join;

	hand_open_idle(&rig);
	check(c, hand_join(&rig, A, 0, 2, &join), "A joins");
	leave(&rig, A);
	hand_pass(&rig, 2 * rig.params.cookie_life);
	hand_empty(&rig);
	hand_again(&rig, A, &join);
	check_eq(c, rig.srv.stats.sessions_opened, 1, "sessions opened");
	check_eq(c, rig.w[A].n_in, 0, "answers");
	hand_close(&rig);
}

/* Before there is a session no answer is larger than its question. */
static void i5_no_answer_larger_than_its_question(struct check *c)
{
	struct hand_rig rig;
	struct sw_header h = {
		.type = SW_PUSH, .session = 5 << 16 | 9, .payload_len = 4};

	hand_open_idle(&rig);
	check(c, !hand_join(&rig, A, 9, 2, NULL), "no such rank");
	for (uint32_t i = 0; i < rig.w[A].n_in; i++)
		check(c, rig.w[A].in[i].h.payload_len <= sizeof(struct sw_join),
			"the refusal is small");
	hand_empty(&rig);
	hand_send(&rig, A, &h, "abcd", NULL);
	for (uint32_t i = 0; i < rig.w[A].n_in; i++)
		check(c, rig.w[A].in[i].h.payload_len <= 4, "LEFT is small");
	check_eq(c, rig.srv.n_sessions, 0, "sessions");
	check(c, !rig.srv.jobs[0].is_used, "no job");
	hand_close(&rig);
}

/* Rank 1 has skipped a step, as a conditional model does: an error by name at
 * both, not the exact sum of two steps. */
static void a19_mixed_steps(struct check *c)
{
	struct sim_job *job = malloc(sizeof(*job));

	if (!job)
		abort();
	sim_job_init(job, 1);
	job->n_servers = 2;
	job->odd_one = 1;
	job->odd_step = 1;
	sim_job_open(job);
	check(c, !sim_job_run(job, SW_S), "the job does not complete");
	sim_job_pass(job, SW_S / 2);
	for (uint32_t r = 0; r < 2; r++) {
		const struct sim_worker *w = &job->workers[r];

		check(c, w->has_failed, "the worker has failed");
		check_text(c, w->text, "tensor fc1.weight: rank ");
		check_text(c, w->text, " pushes step ");
		check_text(c, w->text, " has pushed step ");
		check_eq(c, w->round[0], 0, "rounds");
	}
	check_eq(c,
		job->servers[0]->stats.chunks_done +
			job->servers[1]->stats.chunks_done,
		0, "sums completed");
	sim_job_close(job);
	free(job);
}

const struct check_case trace_join[] = {
	{"a14_second_agent_same_rank", a14_second_agent_same_rank},
	{"a14_repeated_join", a14_repeated_join},
	{"a14_replayed_join", a14_replayed_join},
	{"a14_replayed_join_of_other_terms", a14_replayed_join_of_other_terms},
	{"a14_replayed_join_does_not_count", a14_replayed_join_does_not_count},
	{"a14_earlier_start_is_refused", a14_earlier_start_is_refused},
	{"a14_join_with_an_old_cookie", a14_join_with_an_old_cookie},
	{"a19_mixed_steps", a19_mixed_steps},
	{"i5_no_answer_larger_than_its_question",
		i5_no_answer_larger_than_its_question},
};

const uint32_t n_trace_join = SW_ARRAY_SIZE(trace_join);
