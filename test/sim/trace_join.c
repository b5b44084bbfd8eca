/* trace_join.c - traces about identity and steps: A14, A19, I5.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "test/sim/hand.h"
#include "test/sim/job.h"
#include "test/sim/traces.h"

enum { A, B, C };

/* Two agents have the same rank: the first keeps its place, and the second gets
 * an error that names the first. */
static void a14_second_agent_same_rank(struct check *c)
{
	struct hand_rig rig;
	struct test_frame got;
	struct sw_fault fault;
	uint32_t peer;

	hand_open_idle(&rig);
	check(c, hand_join(&rig, A, 0, 2, NULL), "A joins");
	peer = rig.r.w[A].session;
	check(c, !hand_join(&rig, C, 0, 2, NULL), "C does not");
	if (check(c, hand_take(&rig, C, SW_ERROR, &got), "C was told")) {
		frame_get(&got, &fault, sizeof(fault));
		check_eq(c, (uint64_t)fault.err, (uint64_t)SW_EBUSY, "error");
		check_text(c, fault.text,
			"agent 0 of job hand is node "
			"gpu0 at ");
	}
	check_eq(c, hand_session(&rig, A)->peer.id, peer, "session of A");
	check(c, hand_join(&rig, B, 1, 2, NULL), "B joins");
	check_eq(c, rig.r.srv->jobs[0].status.state, SW_JOB_RUNNING,
		"state of the job");
	hand_close(&rig);
}

/* A repeated JOIN gets the same session and the same answer, and adds no
 * member. */
static void a14_repeated_join(struct check *c)
{
	struct hand_rig rig;
	struct test_frame join, got;
	uint32_t id;

	hand_open_idle(&rig);
	check(c, hand_join(&rig, A, 0, 2, &join), "A joins");
	id = rig.r.w[A].session;
	for (uint32_t i = 0; i < 5; i++)
		peer_again(&rig.r.w[A], &join);
	check_eq(c, rig.r.srv->stats.sessions_opened, 1, "sessions opened");
	while (hand_take(&rig, A, SW_ACCEPT, &got)) {
		struct sw_accept a;

		frame_get(&got, &a, sizeof(a));
		check_eq(c, a.session, id, "session of an ACCEPT");
	}
	hand_close(&rig);
}

/* A JOIN arrives after the end of its job with a valid cookie. Nobody confirms
 * it, so it takes no place from a live worker. */
static void a14_replayed_join(struct check *c)
{
	struct hand_rig rig;
	struct test_frame join;

	hand_open_idle(&rig);
	check(c, hand_join(&rig, A, 0, 2, &join), "A joins");
	check(c, hand_join(&rig, B, 1, 2, NULL), "B joins");
	peer_leave(&rig.r.w[A], 0, "");
	peer_leave(&rig.r.w[B], 0, "");
	check(c, !rig.r.srv->jobs[0].n_sessions, "the job has ended");
	hand_pass(&rig, SW_S);
	peer_again(&rig.r.w[A], &join);
	check_eq(c, hand_count(&rig, A, SW_ACCEPT), 1, "ACCEPTs");
	hand_empty(&rig);
	check(c, hand_join(&rig, A, 0, 2, NULL), "A joins the next run");
	check(c, hand_join(&rig, B, 1, 2, NULL), "B joins the next run");
	check_eq(c, rig.r.srv->jobs[0].status.state, SW_JOB_RUNNING,
		"state of the job");
	hand_close(&rig);
}

/* The same, and the next run has three members: the unconfirmed terms of a job
 * do not bind it. */
static void a14_replayed_join_of_other_terms(struct check *c)
{
	struct hand_rig rig;
	struct test_frame join;

	hand_open_idle(&rig);
	check(c, hand_join(&rig, A, 0, 1, &join), "A joins");
	peer_leave(&rig.r.w[A], 0, "");
	peer_again(&rig.r.w[A], &join);
	check(c, hand_join(&rig, B, 1, 3, NULL), "B joins a job of three");
	check_eq(c, rig.r.srv->jobs[0].n_members, 3, "members");
	peer_again(&rig.r.w[A], &join);
	check_eq(c, rig.r.srv->jobs[0].n_members, 3, "members");
	check_eq(c, hand_count(&rig, A, SW_ERROR), 1, "refusals");
	hand_close(&rig);
}

/* A JOIN alone does not make a member: its worker must send a frame under its
 * session id. Until then the job does not run, and the absent worker does not
 * harm others. */
static void a14_replayed_join_does_not_count(struct check *c)
{
	struct hand_rig rig;
	struct test_frame join;

	hand_open_idle(&rig);
	check(c, hand_join(&rig, A, 0, 2, &join), "A joins");
	peer_leave(&rig.r.w[A], 0, "");
	peer_again(&rig.r.w[A], &join);
	check(c, hand_join(&rig, B, 1, 2, NULL), "B joins");
	check_eq(c, rig.r.srv->jobs[0].status.state, SW_JOB_FORMING,
		"state of the job");
	check_eq(c, rig.r.srv->jobs[0].status.joined, 2, "members");
	for (uint32_t i = 0; i < 11; i++) {
		hand_pass(&rig, SW_S);
		peer_keepalive(&rig.r.w[B]);
	}
	check_eq(c, rig.r.srv->jobs[0].status.state, SW_JOB_FORMING,
		"state of the job");
	check_eq(c, rig.r.srv->stats.sessions_dropped, 1, "sessions dropped");
	hand_empty(&rig);
	check(c, hand_join(&rig, A, 0, 2, NULL), "A joins");
	check_eq(c, rig.r.srv->jobs[0].status.state, SW_JOB_RUNNING,
		"state of the job");
	hand_close(&rig);
}

/* Two JOINs for one place, from an earlier and a later start, arrive in either
 * order: the one whose worker sends counts. No clock decides, because clocks go
 * back. */
static void a14_who_speaks_first(struct check *c)
{
	struct hand_rig rig;
	struct test_frame first, got;
	struct sw_fault fault;

	hand_open_idle(&rig);
	check(c, hand_join(&rig, A, 0, 2, &first), "A joins");
	peer_leave(&rig.r.w[A], 0, "");
	check(c, hand_join(&rig, B, 1, 2, NULL), "B joins");
	peer_again(&rig.r.w[A], &first); /* no worker is behind it */
	check(c, hand_join(&rig, C, 0, 2, NULL), "C joins in A's place");
	check_eq(c, rig.r.srv->jobs[0].status.state, SW_JOB_RUNNING,
		"state of the job");
	hand_empty(&rig);
	peer_again(&rig.r.w[A], &first);
	check_eq(c, hand_count(&rig, A, SW_ACCEPT), 0, "ACCEPTs");
	if (check(c, hand_take(&rig, A, SW_ERROR, &got), "it was refused")) {
		frame_get(&got, &fault, sizeof(fault));
		check_eq(c, (uint64_t)fault.err, (uint64_t)SW_EBUSY, "error");
		check_text(c, fault.text, "is node gpu2");
	}
	hand_close(&rig);
}

/* A rank leaves a job that is forming and joins again, on a machine whose clock
 * went back, or on another machine. */
static void a14_rank_comes_again(struct check *c)
{
	struct hand_rig rig;

	hand_open_idle(&rig);
	check(c, hand_join(&rig, A, 0, 3, NULL), "A joins");
	for (uint32_t i = 0; i < 3; i++) {
		check(c, hand_join(&rig, B, 1, 3, NULL), "B joins");
		peer_leave(&rig.r.w[B], 0, "");
		check_eq(c, rig.r.srv->jobs[0].status.joined, 1, "members");
		check(c, hand_join(&rig, C, 1, 3, NULL), "C joins");
		peer_leave(&rig.r.w[C], 0, "");
		peer_keepalive(&rig.r.w[A]);
	}
	check(c, hand_join(&rig, B, 1, 3, NULL), "B joins");
	check(c, hand_join(&rig, C, 2, 3, NULL), "C joins as another");
	check_eq(c, rig.r.srv->jobs[0].status.state, SW_JOB_RUNNING,
		"state of the job");
	hand_close(&rig);
}

/* More job names than places for jobs, all unconfirmed: the server opens no
 * job, and others can join. */
static void a14_names_of_strangers(struct check *c)
{
	struct hand_rig rig;
	char name[16];

	hand_open_idle(&rig);
	rig.job = name;
	rig.is_mute = true;
	for (uint32_t i = 0; i < 3 * SW_MAX_JOBS; i++) {
		snprintf(name, sizeof(name), "name%u", i);
		rig.r.w[C].path.udp++;
		check(c, hand_join(&rig, C, 0, 1 + i % 3, NULL),
			"C is offered");
		hand_empty(&rig);
	}
	check(c, !rig.r.srv->jobs[0].n_sessions, "no job");
	rig.job = "hand";
	rig.is_mute = false;
	check(c, hand_join(&rig, A, 0, 2, NULL), "A joins");
	check(c, hand_join(&rig, B, 1, 2, NULL), "B joins");
	check_eq(c, rig.r.srv->jobs[0].status.state, SW_JOB_RUNNING,
		"state of the job");
	peer_keepalive(&rig.r.w[A]);
	peer_keepalive(&rig.r.w[B]);
	hand_pass(&rig, 6 * SW_S);
	peer_keepalive(&rig.r.w[A]);
	peer_keepalive(&rig.r.w[B]);
	hand_pass(&rig, 5 * SW_S);
	check_eq(c, rig.r.srv->stats.sessions_dropped, 3 * SW_MAX_JOBS,
		"JOINs forgotten");
	check_eq(c, rig.r.srv->jobs[0].status.state, SW_JOB_RUNNING,
		"state of the job");
	hand_close(&rig);
}

/* A stranger floods JOINs: the server answers some of them, and refuses others
 * at the same address only. */
static void a14_flood_of_joins(struct check *c)
{
	struct hand_rig rig;
	struct test_frame join;

	hand_open(&rig, 2, 10);
	rig.is_mute = true;
	rig.job = "churn";
	check(c, hand_join(&rig, C, 0, 2, &join), "C is offered a session");
	hand_empty(&rig);
	for (uint32_t i = 0; i < 10000; i++) {
		peer_again(&rig.r.w[C], &join);
		rig.in[C].n = 0;
	}
	check_eq(c, rig.r.srv->stats.joins_limited, 10001 - SW_JOIN_BURST,
		"JOINs dropped");
	check_eq(c, rig.r.srv->stats.sessions_opened, 2, "sessions opened");
	hand_push(&rig, A, 1, 0, 3);
	hand_push(&rig, B, 1, 0, 4);
	check_eq(c, hand_count(&rig, A, SW_RESULT), 1, "results for A");
	hand_close(&rig);
}

/* A cookie expires: the server ignores a JOIN that is replayed later. */
static void a14_join_with_an_old_cookie(struct check *c)
{
	struct hand_rig rig;
	struct test_frame join;

	hand_open_idle(&rig);
	check(c, hand_join(&rig, A, 0, 2, &join), "A joins");
	peer_leave(&rig.r.w[A], 0, "");
	hand_pass(&rig, 2 * rig.r.params.cookie_life);
	hand_empty(&rig);
	peer_again(&rig.r.w[A], &join);
	check_eq(c, rig.r.srv->stats.sessions_opened, 1, "sessions opened");
	check_eq(c, rig.in[A].n, 0, "answers");
	hand_close(&rig);
}

/* Before a session exists, no answer is larger than its request. */
static void i5_no_answer_larger_than_its_question(struct check *c)
{
	struct hand_rig rig;
	struct sw_header h = {
		.type = SW_PUSH, .session = 5 << 16 | 9, .payload_len = 4};

	hand_open_idle(&rig);
	check(c, !hand_join(&rig, A, 9, 2, NULL), "no such rank");
	for (uint32_t i = 0; i < rig.in[A].n; i++)
		check(c, rig.in[A].f[i].h.payload_len <= sizeof(struct sw_join),
			"the refusal is small");
	hand_empty(&rig);
	peer_send(&rig.r.w[A], h, "abcd");
	for (uint32_t i = 0; i < rig.in[A].n; i++)
		check(c, rig.in[A].f[i].h.payload_len <= 4, "LEFT is small");
	check_eq(c, rig.r.srv->n_sessions, 0, "sessions");
	check(c, !rig.r.srv->jobs[0].n_sessions, "no job");
	hand_close(&rig);
}

/* Rank 1 sums another step of the first of two tensors. */
static struct sim_job *odd_step(void)
{
	struct sim_job *job = malloc(sizeof(*job));

	if (!job)
		abort();
	sim_job_init(job, 1);
	job->n_servers = job->n_tensors = job->n_first = job->n_rounds = 2;
	job->odd_one = 1;
	job->odd_step = 1;
	return job;
}

/* The odd step dooms both tensors: check that the first round of each fails at
 * both ranks. */
static void check_dead(struct check *c, const struct sim_job *job)
{
	for (uint32_t r = 0; r < 2; r++) {
		const struct sim_worker *w = &job->workers[r];
		char text[SW_TEXT_MAX];
		const char *why = sw_worker_why(&w->engine, w->index[0], text);

		check(c, !w->has_failed, "the job goes on");
		check_eq(c, w->dead_in[0], 1, "the first round fails");
		check_eq(c, w->dead_in[1], 1, "and that of the other tensor");
		check_text(c, why ? why : "", "tensor fc1.weight: rank ");
		check_text(c, why ? why : "", " pushes step 0");
		check_text(c, why ? why : "", " pushes step 1");
	}
	check_eq(c,
		job->servers[0]->stats.chunks_done +
			job->servers[1]->stats.chunks_done,
		0, "sums completed");
}

/* Rank 1 has skipped a step, as a conditional model does: both get an error by
 * name instead of the exact sum of two steps. */
static void a19_mixed_steps(struct check *c)
{
	struct sim_job *job = odd_step();

	sim_job_open(job);
	check(c, sim_job_run(job, SW_S), "all calls end");
	check_dead(c, job);
	sim_job_close(job);
	free(job);
}

static enum sim_fate lose_ends(void *ctx, struct sim_frame *f)
{
	uint32_t *n = ctx;

	return f->bytes[3] == SW_END && (*n)++ < 12 ? SIM_LOST : SIM_PASS;
}

/* A lost answer of the server is repeated on request. */
static void a19_is_told_again(struct check *c)
{
	struct sim_job *job = odd_step();
	uint32_t n_lost = 0;

	job->net.hook = lose_ends;
	job->net.hook_ctx = &n_lost;
	sim_job_open(job);
	check(c, sim_job_run(job, 10 * SW_S), "all calls end");
	check(c, n_lost >= 12, "frames were lost");
	check_dead(c, job);
	sim_job_pass(job, SW_S);
	check_eq(c,
		sw_server_open_chunks(job->servers[0]) +
			sw_server_open_chunks(job->servers[1]),
		0, "nothing is left open");
	sim_job_close(job);
	free(job);
}

const struct check_case trace_join[] = {
	{"a14_second_agent_same_rank", a14_second_agent_same_rank},
	{"a14_repeated_join", a14_repeated_join},
	{"a14_replayed_join", a14_replayed_join},
	{"a14_replayed_join_of_other_terms", a14_replayed_join_of_other_terms},
	{"a14_replayed_join_does_not_count", a14_replayed_join_does_not_count},
	{"a14_who_speaks_first", a14_who_speaks_first},
	{"a14_rank_comes_again", a14_rank_comes_again},
	{"a14_names_of_strangers", a14_names_of_strangers},
	{"a14_flood_of_joins", a14_flood_of_joins},
	{"a14_join_with_an_old_cookie", a14_join_with_an_old_cookie},
	{"a19_mixed_steps", a19_mixed_steps},
	{"a19_is_told_again", a19_is_told_again},
	{"i5_no_answer_larger_than_its_question",
		i5_no_answer_larger_than_its_question},
};

const uint32_t n_trace_join = SW_ARRAY_SIZE(trace_join);
