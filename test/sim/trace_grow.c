/* trace_grow.c - tensors that the process writes while they are pushed.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The test moves the mark, the end of the written elements. Bytes behind the
 * mark have another value, so the oracle detects a push of them. It checks each
 * granule when the engine reports it as summed (grow.c).
 */
#include "engine/base/error.h"
#include "engine/worker/link.h"
#include "test/sim/trace_job.h"

enum {
	A,
	B,
	CHUNK = 1344 / 4,
	CHUNKS = 400,
	FIRST = 196, /* chunks of the first granule */
	SECOND = 391 /* chunks of the first two granules */
};

/* Workers A and B; a worker pushes only when the test submits. */
static struct sim_job *grow_job(void)
{
	struct sim_job *job = new_job(CHUNKS * CHUNK, 0);

	job->is_by_hand = true;
	return job;
}

static void start(struct sim_job *job)
{
	sim_job_open(job);
	sim_job_pass(job, 20 * SW_MS);
}

/* Submit for all local ranks of a worker, with @n_there elements written. */
static void submit(struct sim_job *job, uint32_t worker, uint64_t n_there)
{
	struct sim_worker *w = &job->workers[worker];

	job->n_there = n_there;
	for (uint32_t l = 0; l < w->n_local; l++)
		sim_worker_submit(w, 0, l);
}

static void grow(struct sim_job *job, uint32_t worker, uint64_t n_there)
{
	struct sim_worker *w = &job->workers[worker];

	for (uint32_t l = 0; l < w->n_local; l++)
		sim_grow_to(w, 0, l, n_there);
}

/* Return the number of chunks that a worker has pushed in all rounds. */
static uint64_t n_pushed(const struct sim_job *job, uint32_t worker)
{
	return sim_worker_stats(&job->workers[worker]).push_folded;
}

static uint64_t n_results(const struct sim_job *job, uint32_t worker)
{
	return sim_worker_stats(&job->workers[worker]).results;
}

static uint32_t n_granules(const struct sim_job *job, uint32_t worker)
{
	const struct sim_worker *w = &job->workers[worker];
	uint32_t n = 0;

	for (uint32_t g = 0; g < SIM_GRANULES; g++)
		n += w->summed[0][g] == w->round[0] + 1;
	return n;
}

/* Check that no frame is in flight and no credit is in use. */
static void expect_idle(struct check *c, const struct sim_job *job)
{
	for (uint32_t r = A; r <= B; r++) {
		const struct sw_sched *s = &job->workers[r].engine.sched;

		check_eq(c, (uint64_t)s->credit, s->limit, "credit");
	}
}

static bool has_ended(void *ctx)
{
	const struct sim_job *job = ctx;

	return !job->workers[A].asked[0] && !job->workers[B].asked[0];
}

/* Check that both have completed the open round; after the last one, close the
 * job. */
static void expect_round(struct check *c, struct sim_job *job)
{
	check(c, sim_net_run(&job->net, job->net.now_ns + SW_S, has_ended, job),
		"the round ends");
	job->n_rounds++;
	for (uint32_t r = A; r <= B; r++) {
		check_eq(c, job->workers[r].round[0], job->n_rounds, "rounds");
		check_eq(c, job->workers[r].n_errors, 0, "errors");
		check_eq(c, job->workers[r].engine.n_open, 0, "open rounds");
	}
	sim_job_pass(job, SW_MS);
	expect_idle(c, job);
}

/* The first granules return and are usable before the rest is written; a partly
 * written chunk holds back its granule. */
static void grow_results_before_the_rest(struct check *c)
{
	struct sim_job *job = grow_job();

	start(job);
	submit(job, A, FIRST * CHUNK - 1);
	submit(job, B, CHUNKS * CHUNK);
	sim_job_pass(job, 20 * SW_MS);
	check_eq(c, n_pushed(job, A), FIRST - 1, "chunks pushed");
	check_eq(c, n_results(job, B), FIRST - 1, "results");
	check_eq(c, n_granules(job, A) + n_granules(job, B), 0, "granules");
	grow(job, A, FIRST * CHUNK);
	sim_job_pass(job, 20 * SW_MS);
	check_eq(c, n_granules(job, A), 1, "granules of A");
	check_eq(c, n_granules(job, B), 1, "granules of B");
	grow(job, A, SECOND * CHUNK);
	sim_job_pass(job, 20 * SW_MS);
	check_eq(c, n_granules(job, B), 2, "granules of B");
	check(c, job->workers[B].asked[0], "the round is open");
	grow(job, A, CHUNKS * CHUNK);
	expect_round(c, job);
	end_job(c, job);
}

/* Loses pushes of the chunk just before the mark. */
struct edge {
	uint32_t chunk, n_lost;
	bool is_open; /* pass the pushes */
};

static enum sim_fate lose_at_edge(void *ctx, struct sim_frame *f)
{
	struct edge *e = ctx;

	if (e->is_open || !is_type(f, SW_PUSH, 1) || chunk_of(f) != e->chunk)
		return SIM_PASS;
	e->n_lost++;
	return SIM_LOST;
}

/* The worker retransmits the chunk while the mark is in the middle of the next
 * one, and again after the mark has moved. It pushes nothing behind the
 * mark. */
static void grow_loss_at_the_mark(struct check *c)
{
	struct sim_job *job = grow_job();
	struct edge e = {.chunk = 9};
	uint64_t before;

	job->net.hook = lose_at_edge;
	job->net.hook_ctx = &e;
	start(job);
	submit(job, B, CHUNKS * CHUNK);
	submit(job, A, 10 * CHUNK + CHUNK / 2);
	sim_job_pass(job, 50 * SW_MS);
	before = e.n_lost;
	check(c, before > 1, "the last one before it was pushed again");
	check_eq(c, n_pushed(job, A), 10, "chunks pushed");
	check_eq(c, n_results(job, A), 9, "results");
	grow(job, A, 20 * CHUNK);
	sim_job_pass(job, 50 * SW_MS);
	check(c, e.n_lost > before, "and again");
	check_eq(c, n_pushed(job, A), 20, "chunks pushed");
	check_eq(c, n_results(job, A), 19, "results");
	e.is_open = true;
	sim_job_pass(job, 3 * SW_S);
	check_eq(c, n_results(job, A), 20, "results");
	expect_idle(c, job);
	grow(job, A, CHUNKS * CHUNK);
	expect_round(c, job);
	end_job(c, job);
}

/* Every ACK is false, so only a QUERY shows the loss; the mark has moved when
 * the server asks for the chunk. */
static void grow_needs_at_the_mark(struct check *c)
{
	struct sim_job *job = grow_job();
	struct edge e = {.chunk = 9};

	job->net.faults.false_ack = 1000000;
	job->net.hook = lose_at_edge;
	job->net.hook_ctx = &e;
	start(job);
	submit(job, A, 10 * CHUNK);
	sim_job_pass(job, 100 * SW_MS);
	check(c, job->workers[A].engine.stats.query_need > 0, "it said NEED");
	submit(job, B, CHUNKS * CHUNK);
	grow(job, A, 11 * CHUNK);
	sim_job_pass(job, 100 * SW_MS);
	check_eq(c, n_pushed(job, A), 11, "chunks pushed");
	check_eq(c, n_results(job, A), 10, "results");
	e.is_open = true;
	grow(job, A, CHUNKS * CHUNK);
	check(c,
		sim_net_run(
			&job->net, job->net.now_ns + 5 * SW_S, has_ended, job),
		"the round ends");
	job->n_rounds = 1;
	end_job(c, job);
}

/* B is the last member and writes one chunk at a time. Each chunk returns to
 * both at once, and so does its credit, even if servers have folded all that
 * was written. */
static void grow_last_member(struct check *c)
{
	struct sim_job *job = grow_job();

	job->params.credit_bytes = 8 * 1344;
	start(job);
	for (uint32_t round = 0; round < 2; round++) {
		submit(job, A, CHUNKS * CHUNK);
		submit(job, B, 0);
		for (uint32_t n = 1; n <= 20; n++) {
			sim_job_pass(job, SW_MS);
			expect_idle(c, job);
			check_eq(c, n_results(job, A), round * CHUNKS + n - 1,
				"results of A");
			check_eq(c, n_results(job, B), round * CHUNKS + n - 1,
				"results of B");
			grow(job, B, n * CHUNK);
		}
		grow(job, B, CHUNKS * CHUNK);
		expect_round(c, job);
	}
	check_eq(c, job->workers[A].engine.stats.timeouts, 0, "timeouts");
	end_job(c, job);
}

/* With a large window the server takes the whole tensor at once; with a small
 * one at most a frame, so that the mark moves while no push may leave. */
static void grow_window(struct check *c, uint32_t window_bytes)
{
	struct sim_job *job = grow_job();

	job->params.window_bytes = window_bytes;
	start(job);
	submit(job, A, 3 * CHUNK);
	submit(job, B, 5 * CHUNK + 1);
	sim_job_pass(job, 20 * SW_MS);
	check_eq(c, n_pushed(job, A), 3, "chunks pushed by A");
	check_eq(c, n_pushed(job, B), 5, "by B");
	grow(job, A, 6 * CHUNK);
	grow(job, A, 100 * CHUNK - 1);
	grow(job, B, 80 * CHUNK);
	sim_job_pass(job, 20 * SW_MS);
	check_eq(c, n_pushed(job, A), 99, "chunks pushed by A");
	check_eq(c, n_pushed(job, B), 80, "by B");
	check_eq(c, n_results(job, A), 80, "results");
	expect_idle(c, job);
	for (uint32_t r = A; r <= B; r++)
		grow(job, r, CHUNKS * CHUNK);
	expect_round(c, job);
	end_job(c, job);
}

static void grow_window_beyond_the_mark(struct check *c)
{
	grow_window(c, 2 * CHUNKS * 1344);
}

static void grow_window_of_a_frame(struct check *c)
{
	grow_window(c, 1344);
}

/* Results of earlier rounds arrive repeatedly, also for chunks not yet written:
 * the worker must not write them over the coming contribution. */
static void grow_results_of_the_past(struct check *c)
{
	struct sim_job *job = grow_job();
	struct replay k = {.net = &job->net};

	job->net.hook = replay_results;
	job->net.hook_ctx = &k;
	start(job);
	for (uint32_t round = 0; round < 3; round++) {
		submit(job, A, 30 * CHUNK);
		submit(job, B, 70 * CHUNK);
		sim_job_pass(job, 20 * SW_MS);
		check_eq(c, n_results(job, A), round * CHUNKS + 30, "results");
		for (uint32_t r = A; r <= B; r++)
			grow(job, r, CHUNKS * CHUNK);
		expect_round(c, job);
	}
	check(c, job->workers[A].engine.stats.result_again > 1000,
		"results came that were not waited for");
	replay_fini(&k);
	end_job(c, job);
}

/* A has three lanes and two local ranks; in each lane the slower rank decides.
 * The first two granules wait for a stalled lane; the last granule has no chunk
 * of it. */
static void grow_lanes(struct check *c)
{
	struct sim_job *job = grow_job();
	struct sim_worker *a = &job->workers[A];

	job->n_servers = 4;
	job->n_lanes[A] = 3;
	job->n_local[A] = 2;
	start(job);
	submit(job, B, CHUNKS * CHUNK);
	submit(job, A, 100 * CHUNK);
	sim_job_pass(job, 20 * SW_MS);
	check_eq(c, n_results(job, A), 100, "results");
	sim_grow_to(a, 0, 0, 150 * CHUNK);
	sim_job_pass(job, 20 * SW_MS);
	check_eq(c, n_results(job, A), 100, "results with one rank's");
	sim_grow_to(a, 0, 0, CHUNKS * CHUNK);
	sim_node_freeze(a->lcores[1], 100 * SW_MS);
	sim_grow_to(a, 0, 1, CHUNKS * CHUNK);
	sim_job_pass(job, 50 * SW_MS);
	check(c, n_results(job, A) > 200, "the other lanes have theirs");
	check_eq(c, n_granules(job, A), 1, "granules");
	check_eq(c, a->granules[0][2], 1, "the last one");
	expect_round(c, job);
	end_job(c, job);
}

/* B has written half when it dies, leaves, or loses a local rank. */
static struct sim_job *half_job(struct check *c, uint16_t n_local)
{
	struct sim_job *job = grow_job();

	job->n_local[B] = n_local;
	job->params.dead_after = SW_S;
	start(job);
	submit(job, A, CHUNKS * CHUNK);
	submit(job, B, 300 * CHUNK);
	sim_job_pass(job, 20 * SW_MS);
	check_eq(c, n_granules(job, A), 1, "granules");
	return job;
}

/* Check that A gets the error. No more granules count as summed, and B, if
 * alive, pushes nothing more. */
static void expect_end(struct check *c, struct sim_job *job, const char *why)
{
	const struct sim_worker *a = &job->workers[A];

	sim_job_pass(job, 5 * SW_S);
	check(c, a->has_failed, "A has failed");
	check_text(c, a->text, why);
	check(c, !a->asked[0], "its round has ended");
	check_eq(c, n_pushed(job, A), CHUNKS, "chunks pushed");
	check_eq(c, n_results(job, A), 300, "results");
	check_eq(c, a->granules[0][0], 1, "the first granule");
	check_eq(c, a->granules[0][1], 0, "the second");
	check(c, !job->oracle[0], job->oracle);
	check_eq(c, job->n_bad_pushes + job->n_bad_results, 0, "bad frames");
	sim_job_close(job);
	free(job);
}

static void grow_member_dies(struct check *c)
{
	struct sim_job *job = half_job(c, 1);

	sim_worker_kill(job, B);
	expect_end(c, job, "rank 1 (node gpu1) silent for 1 s");
}

static void grow_member_leaves(struct check *c)
{
	struct sim_job *job = half_job(c, 1);

	sim_worker_leave(&job->workers[B], SW_EPEER, "rank 1: its GPU is lost");
	/* The thread of B's device does not know yet, and continues to
	 * write. */
	grow(job, B, CHUNKS * CHUNK);
	check_eq(c, n_pushed(job, B), 300, "chunks pushed by B");
	expect_end(c, job, "rank 1: its GPU is lost");
}

static void grow_local_rank_dies(struct check *c)
{
	struct sim_job *job = half_job(c, 2);
	struct sim_worker *b = &job->workers[B];

	sim_grow_to(b, 0, 0, CHUNKS * CHUNK);
	sim_rank_kill(b); /* kill the other local rank */
	sim_job_pass(job, SW_MS);
	check(c, !b->asked[0], "the round of B has ended");
	sim_grow_to(b, 0, 0, CHUNKS * CHUNK);
	expect_end(c, job, "rank 1 (node gpu1): training process 7: died");
}

const struct check_case trace_grow[] = {
	{"grow_results_before_the_rest", grow_results_before_the_rest},
	{"grow_loss_at_the_mark", grow_loss_at_the_mark},
	{"grow_needs_at_the_mark", grow_needs_at_the_mark},
	{"grow_last_member", grow_last_member},
	{"grow_window_beyond_the_mark", grow_window_beyond_the_mark},
	{"grow_window_of_a_frame", grow_window_of_a_frame},
	{"grow_results_of_the_past", grow_results_of_the_past},
	{"grow_lanes", grow_lanes},
	{"grow_member_dies", grow_member_dies},
	{"grow_member_leaves", grow_member_leaves},
	{"grow_local_rank_dies", grow_local_rank_dies},
};

const uint32_t n_trace_grow = SW_ARRAY_SIZE(trace_grow);
