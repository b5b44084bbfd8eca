/* trace_async.c - traces of asynchronous tensors: A12.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/sums/async.h"
#include "test/sim/hand.h"
#include "test/sim/trace_job.h"

enum { A, B, C };

/* 1. A pushes 2, gets an answer and pushes 3; 3 overtakes a duplicate of 2. No
 * delta is lost and none is added twice, however late it arrives. */
static void a12_deltas_again_and_late(struct check *c)
{
	struct hand_rig rig;
	struct test_frame second, third;

	hand_open_async(&rig, 2, 100);
	hand_push(&rig, A, 2, 0, 1);
	second = rig.sent;
	hand_expect(c, &rig, A, 2, 1);
	hand_push(&rig, A, 3, 0, 10);
	third = rig.sent;
	peer_again(&rig.r.w[A], &second);
	peer_again(&rig.r.w[A], &third);
	hand_empty(&rig);
	hand_push(&rig, A, 4, 0, 100);
	peer_again(&rig.r.w[A], &second);
	hand_expect(c, &rig, A, 4, 111);
	check_eq(c, rig.r.srv->stats.push_folded, 5, "folds");
	check_eq(c, rig.r.srv->stats.push_again, 3, "pushes that came again");
	check_eq(c, rig.r.srv->stats.rx_round, 0, "violations");
	hand_close(&rig);
}

/* A server that folded any newer delta and set last = 4 would lose 3 for
 * ever. */
static void a12_a_gap_is_not_folded(struct check *c)
{
	struct hand_rig rig;

	hand_open_async(&rig, 2, 100);
	hand_push(&rig, A, 2, 0, 1);
	hand_push(&rig, A, 4, 0, 100);
	check_eq(c, rig.r.srv->stats.rx_round, 1, "violations");
	hand_empty(&rig);
	hand_push(&rig, A, 3, 0, 10);
	hand_expect(c, &rig, A, 3, 11);
	hand_push(&rig, A, 4, 0, 100);
	hand_expect(c, &rig, A, 4, 111);
	hand_close(&rig);
}

/* B never pushes, and A is not delayed. */
static void a12_nobody_is_waited_for(struct check *c)
{
	struct hand_rig rig;

	hand_open_async(&rig, 2, 100);
	for (uint32_t r = 2; r < 50; r++) {
		struct test_frame got;

		hand_push(&rig, A, r, 0, 1);
		check(c, hand_take(&rig, A, SW_RESULT, &got), "at once");
		check_eq(c, (uint32_t)frame_value(&got), r - 1, "the value");
		peer_ack_one(&rig.r.w[A], 0, got.h.psn);
	}
	hand_push(&rig, B, 2, 0, 1000);
	hand_expect(c, &rig, B, 2, 1048);
	hand_close(&rig);
}

/* A lost answer is rebuilt while others push: it is one value with its CRC, and
 * never older than the one before. */
static void a12_a_lost_answer_is_built_anew(struct check *c)
{
	struct hand_rig rig;
	struct test_frame first, again;

	hand_open_async(&rig, 2, 100);
	hand_push(&rig, A, 2, 0, 1);
	check(c, hand_take(&rig, A, SW_RESULT, &first), "the answer left");
	for (uint32_t r = 2; r < 5; r++)
		hand_push(&rig, B, r, 0, 1000);
	hand_empty(&rig);
	hand_pass(&rig, SW_S / 2); /* no ACK */
	check(c, hand_take(&rig, A, SW_RESULT, &again), "it came again");
	check_eq(c, again.h.round, 2, "round");
	check(c,
		rig_is_intact(&rig.r, &again) &&
			frame_is_all(&again, frame_value(&again)),
		"it is one value");
	check_eq(c, (uint32_t)frame_value(&again), 3001, "the value of now");
	check(c, again.h.step > first.h.step, "more updates are in it");
	hand_close(&rig);
}

/* The answer waits behind a full port; it carries the value at its
 * departure. */
static void a12_an_answer_is_copied_when_it_leaves(struct check *c)
{
	struct hand_rig rig;

	hand_open_async(&rig, 2, 100);
	rig.is_stuck = true;
	hand_push(&rig, A, 2, 0, 1);
	hand_push(&rig, B, 2, 0, 10);
	rig.is_stuck = false;
	hand_pass(&rig, SW_MS);
	hand_expect(c, &rig, A, 2, 11);
	hand_expect(c, &rig, B, 2, 11);
	hand_close(&rig);
}

/* 3. The answer to round r + 1 overtakes the answer to round r, which must not
 * set the worker's parameters back. */
static void a12_answers_do_not_go_back(struct check *c)
{
	struct sim_job *job = new_job(2 * 336, 12);
	struct replay k = {.net = &job->net};

	job->async = 1;
	job->net.hook = replay_results;
	job->net.hook_ctx = &k;
	sim_job_open(job);
	check(c, sim_job_run(job, SW_S), "the job ends");
	sim_job_pass(job, SW_MS);
	check(c, job->workers[0].engine.stats.result_again >= 16,
		"RESULTs came that were not waited for");
	replay_fini(&k);
	end_job(c, job);
}

/* A node with a loop a hundred times slower does not delay the other: the fast
 * one completes all rounds while the slow one has completed few. */
static void a12_the_slow_hold_nobody(struct check *c)
{
	struct sim_job *job = new_job(100 * 336, 200);

	job->async = 1;
	sim_job_open(job);
	job->net.nodes[2].turn_ns *= 1000;
	while (job->workers[0].round[0] < 200 && job->net.now_ns < 20 * SW_S)
		sim_job_pass(job, SW_MS);
	check_eq(c, job->workers[0].round[0], 200, "rounds of the fast one");
	check(c, job->workers[1].round[0] < 100, "the slow one has few");
	check(c, sim_job_run(job, 600 * SW_S), "it ends, too");
	end_job(c, job);
}

/* A dead member ends no call of the others. */
static void a12_the_dead_hold_nobody(struct check *c)
{
	struct sim_job *job = new_job(4 * 336, 1000000);

	job->n_workers = 3;
	job->async = 1;
	job->params.dead_after = 5 * SW_MS;
	sim_job_open(job);
	sim_job_pass(job, 5 * SW_MS);
	check(c, job->workers[0].round[0] > 1, "the job was running");
	sim_worker_kill(job, 1);
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t before = job->workers[0].round[0];

		sim_job_pass(job, job->params.dead_after);
		check(c, job->workers[0].round[0] > before + 100, "they go on");
	}
	for (uint32_t r = 0; r < 3; r += 2)
		check(c, !job->workers[r].has_failed, "nobody failed");
	check_eq(c, job->servers[0]->stats.sessions_dead, 1, "dead sessions");
	check(c, !job->oracle[0], job->oracle);
	sim_job_close(job);
	free(job);
}

/* A sum in the same job needs the dead member: it fails with an error that
 * names the member. */
static void a12_a_sum_of_the_dead(struct check *c)
{
	struct sim_job *job = new_job(100, 1000000);

	job->n_tensors = job->n_first = 2;
	job->async = 1;
	job->params.dead_after = 100 * SW_MS;
	sim_job_open(job);
	sim_job_pass(job, 5 * SW_MS);
	sim_worker_kill(job, 1);
	sim_job_pass(job, job->params.dead_after + SW_S);
	check(c, job->workers[0].has_failed, "it failed");
	check_eq(c, (uint64_t)job->workers[0].err, (uint64_t)SW_EPEER, "error");
	check_text(c, job->workers[0].text, "rank 1 (node gpu1) left");
	sim_job_close(job);
	free(job);
}

/* --- members that left, and a server that does not know it --- */

/* What happens to frames from a worker to server 1. */
struct kept {
	uint32_t worker;
	uint32_t lost_types; /* as bits */
	bool is_held;        /* the first PUSH is held */
};

static enum sim_fate keep(void *ctx, struct sim_frame *f)
{
	struct kept *k = ctx;

	if (f->from != 2 + k->worker || f->to != 1)
		return SIM_PASS;
	if (f->bytes[3] == SW_PUSH && !k->is_held)
		return k->is_held = true, SIM_HOLD;
	return k->lost_types >> f->bytes[3] & 1 ? SIM_LOST : SIM_PASS;
}

/* Workers A, B and C; tensor 0 is at server 0, tensor 1 at server 1. The link
 * from @k->worker to server 1 is bad. */
static struct sim_job *left_job(struct kept *k)
{
	struct sim_job *job = new_job(64 * 336, 0);

	job->n_workers = 3;
	job->n_servers = 2;
	job->n_tensors = job->n_first = 2;
	job->n_elems[1] = 336;
	job->async = 3;
	job->params.dead_after = SW_S;
	job->net.hook = keep;
	job->net.hook_ctx = k;
	sim_job_open(job);
	sim_job_pass(job, 100 * SW_MS);
	return job;
}

/* C reaches server 1 while the others probe, and they leave before C pushes. */
static void left_before(struct check *c, int err)
{
	struct kept k = {C, 1u << SW_HELLO, true};
	struct sim_job *job = left_job(&k);
	struct sim_worker *w = &job->workers[C];

	check(c, !job->workers[A].is_running && !w->is_running, "C is late");
	k.lost_types = 0;
	sim_job_pass(job, SW_S);
	check(c, job->workers[A].is_running && w->is_running, "they run");
	sim_worker_leave(&job->workers[A], err, err ? "enough" : "");
	sim_worker_leave(&job->workers[B], err, err ? "enough" : "");
	sim_job_pass(job, SW_S / 2);
	sim_worker_submit(w, 1, 0);
	sim_job_pass(job, 3 * job->params.dead_after + 3 * SW_S);
	check(c, w->has_failed, "it waits for nobody");
	check_eq(c, (uint64_t)w->err, (uint64_t)SW_EPEER, "error");
	check_text(c, w->text, "rank 0 (node gpu0) left");
	sim_job_close(job);
	free(job);
}

static void a12_who_left_is_not_awaited(struct check *c)
{
	left_before(c, SW_EPEER);
	left_before(c, 0);
}

/* A's push is late, and server 1 never gets A's LEAVE. Before and after A
 * leaves, the server tells C to wait for A. C still gets its result. */
static void a12_a_push_of_who_left(struct check *c)
{
	struct kept k = {A, 0, false};
	struct sim_job *job = left_job(&k);
	const struct sim_worker *w = &job->workers[C];
	uint64_t n_waits;

	k.lost_types = 1u << SW_PUSH | 1u << SW_LEAVE;
	for (uint32_t r = A; r <= C; r++)
		sim_worker_submit(&job->workers[r], 1, 0);
	sim_job_pass(job, 200 * SW_MS);
	n_waits = w->engine.stats.query_wait;
	check(c, n_waits > 0, "C was told to wait for A");
	sim_worker_leave(&job->workers[A], SW_EPEER, "enough");
	sim_job_pass(job, 500 * SW_MS);
	check_eq(c, w->engine.deaths.left, 1u << A, "C knows who has left");
	check(c, w->engine.stats.query_wait > n_waits, "A is still awaited");
	check_eq(c, job->net.n_held, 1, "a push of A is on its way");
	sim_net_release(&job->net, 0);
	sim_job_pass(job, 5 * job->params.dead_after);
	for (uint32_t r = B; r <= C; r++) {
		check(c, !job->workers[r].has_failed, job->workers[r].text);
		check_eq(c, job->workers[r].round[1], 1, "rounds");
	}
	sim_job_close(job);
	free(job);
}

const struct check_case trace_async[] = {
	{"a12_deltas_again_and_late", a12_deltas_again_and_late},
	{"a12_a_gap_is_not_folded", a12_a_gap_is_not_folded},
	{"a12_nobody_is_waited_for", a12_nobody_is_waited_for},
	{"a12_a_lost_answer_is_built_anew", a12_a_lost_answer_is_built_anew},
	{"a12_an_answer_is_copied_when_it_leaves",
		a12_an_answer_is_copied_when_it_leaves},
	{"a12_answers_do_not_go_back", a12_answers_do_not_go_back},
	{"a12_the_slow_hold_nobody", a12_the_slow_hold_nobody},
	{"a12_the_dead_hold_nobody", a12_the_dead_hold_nobody},
	{"a12_a_sum_of_the_dead", a12_a_sum_of_the_dead},
	{"a12_who_left_is_not_awaited", a12_who_left_is_not_awaited},
	{"a12_a_push_of_who_left", a12_a_push_of_who_left},
};
const uint32_t n_trace_async = SW_ARRAY_SIZE(trace_async);
