/* trace_worker.c - traces that end in a worker's buffer: A2, A6, A8, A13, A16.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/worker/link.h"
#include "engine/worker/wtensor.h"
#include "test/sim/trace_job.h"
#include "test/support/header.h"

/* --- A2 at the worker --- */

/* A chunk accepts a RESULT only if it waits for exactly that round. */
static void a2_result_taken_only_when_waited_for(struct check *c)
{
	struct sim_job *job = new_job(2 * 336, 8);
	struct replay k = {.net = &job->net};

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

/* Copy of a frame, for a later replay. */
struct copy {
	struct sim_frame *f;
};

static enum sim_fate copy_result_of_chunk_9(void *ctx, struct sim_frame *f)
{
	struct copy *k = ctx;

	if (!is_type(f, SW_RESULT, 0) || f->to != 1 || k->f ||
		sw_load32(f->bytes + 24) != 9)
		return SIM_PASS;
	k->f = malloc(sizeof(*f) + f->len);
	if (!k->f)
		abort();
	memcpy(k->f, f, sizeof(*f) + f->len);
	return SIM_PASS;
}

static bool has_begun_round_2(void *ctx)
{
	const struct sim_job *job = ctx;
	const struct sw_worker *w = &job->workers[0].engine;

	return w->n_tensors && w->tensors[0].is_open &&
	       w->tensors[0].round == 2;
}

/* A RESULT of the chunk's current round, before the chunk was pushed: no honest
 * server has one. */
static void a2_result_before_its_push(struct check *c)
{
	struct sim_job *job = new_job(10 * 336, 2);
	const struct sw_wchunk *chunk;
	struct copy k = {0};
	struct sw_header h;

	job->params.window_bytes = job->params.payload;
	job->net.hook = copy_result_of_chunk_9;
	job->net.hook_ctx = &k;
	sim_job_open(job);
	check(c, sim_net_run(&job->net, 2 * SW_S, has_begun_round_2, job),
		"round 2 begins");
	if (!check(c,
		    k.f && header_decode(k.f->bytes, k.f->len, &h) ==
				    HEADER_GOOD,
		    "a RESULT of chunk 9 was copied"))
		return;
	h.round = 2;
	h.payload_crc = sw_data_crc(sw_epoch_seed(job->workers[0].engine.epoch),
		&h, k.f->bytes + SW_HEAD_BYTES, h.payload_len);
	header_encode(&h, k.f->bytes);
	sim_net_replay(&job->net, k.f);
	chunk = &job->workers[0].engine.tensors[0].chunks[9];
	sim_job_pass(job, 8 * SW_US);
	check_eq(c, chunk->n_sent, 0, "pushes of chunk 9");
	check_eq(c, chunk->state, SW_GRAD, "state of chunk 9");
	check_eq(c, job->workers[0].engine.stats.result_again, 1,
		"RESULTs that were not waited for");
	free(k.f);
	check(c, sim_job_run(job, SW_S), "the job ends");
	end_job(c, job);
}

/* --- A6 --- */

/* Also lose the last chunk of rank 1, so that the round stays open. */
static enum sim_fate lose_acks_to_0(void *ctx, struct sim_frame *f)
{
	(void)ctx;
	if (is_type(f, SW_PUSH, 2) && sw_load32(f->bytes + 24) == 19)
		return SIM_LOST;
	return is_type(f, SW_ACK, 0) && f->to == 1 ? SIM_LOST : SIM_PASS;
}

/* 1. PUSH is folded, its ACK is lost. 2. RESULT overwrites the buffer. 3. The
 * timeout must not push the sum. */
static void a6_retransmission_in_place(struct check *c)
{
	struct sim_job *job = new_job(20 * 336, 1);

	job->net.hook = lose_acks_to_0;
	sim_job_open(job);
	sim_job_pass(job, SW_S); /* all timeouts have fired */
	check_eq(c, job->workers[0].engine.tensors[0].n_missing, 1,
		"chunks that rank 0 does not hold");
	check(c, job->workers[0].engine.stats.retransmissions > 0,
		"rank 0 pushed that one again");
	check(c,
		job->servers[0]->stats.push_again ==
			job->workers[0].engine.stats.retransmissions,
		"and nothing else came again");
	check(c,
		job->workers[0].engine.stats.lost <=
			job->workers[0].engine.stats.retransmissions + 1,
		"or was taken for lost: RESULT is the ACK of PUSH");
	job->net.hook = NULL;
	check(c, sim_job_run(job, SW_S), "the job ends");
	sim_job_pass(job, SW_S);
	check_eq(c, job->n_bad_pushes, 0, "PUSHes without the gradient");
	check_eq(c, job->workers[0].engine.links[0].peer.flow.open_mask, 0,
		"spaces with open frames");
	end_job(c, job);
}

struct slow_push {
	struct sim_job *job;
	uint32_t n_pushes;
};

/* Hold the first push of rank 0, so that it counts as lost. */
static enum sim_fate hold_first_push(void *ctx, struct sim_frame *f)
{
	struct slow_push *s = ctx;

	return is_type(f, SW_PUSH, 1) && !s->n_pushes++ ? SIM_HOLD : SIM_PASS;
}

static bool has_pushed_again(void *ctx)
{
	const struct sim_job *job = ctx;

	return job->workers[0].engine.stats.retransmissions > 0;
}

static bool has_one_round(void *ctx)
{
	const struct sim_job *job = ctx;

	return job->workers[0].round[0] > 0;
}

/* The retransmitted push waits in its port's queue when the first arrives and
 * the result is written. So it leaves with the sum under the gradient's header
 * and CRC. The server must see that the chunk is complete before it checks the
 * payload, and must not report a write to the buffer. */
static void a6_torn_push_is_a_duplicate(struct check *c)
{
	struct sim_job *job = new_job(100, 1);
	struct slow_push s = {.job = job};

	job->net.hook = hold_first_push;
	job->net.hook_ctx = &s;
	sim_job_open(job);
	sim_net_run(&job->net, 2 * SW_S, has_pushed_again, job);
	check_eq(c, job->net.n_held, 1, "pushes held");
	/* The port reads the bytes of queued frames 10 ms later. */
	for (uint32_t i = 0; i < job->net.n_heap; i++)
		if (job->net.heap[i]->is_leaving)
			job->net.heap[i]->at_ns += 10 * SW_MS;
	sim_net_release(&job->net, 0);
	check(c, sim_net_run(&job->net, 3 * SW_S, has_one_round, job),
		"the round ends by the first push");
	sim_job_pass(job, 20 * SW_MS);
	check_eq(c, job->servers[0]->stats.push_again, 1, "pushes again");
	check_eq(c, job->servers[0]->stats.rx_payload_crc, 0, "CRC errors");
	check_eq(c, job->workers[0].n_errors, 0, "errors");
	end_job(c, job);
}

/* --- A13 (a) --- */

/* Both ranks have one frame of credit; one pushes X then Y, the other Y then X,
 * so each queue's head waits for the other's. Folding returns credit. */
static void a13a_different_submit_orders(struct check *c)
{
	struct sim_job *job = new_job(50 * 336, 4);

	job->n_tensors = job->n_first = 2;
	job->n_elems[1] = 50 * 336;
	job->params.window_bytes = job->params.payload;
	job->is_in_order = job->is_reversed = true;
	sim_job_open(job);
	check(c, sim_job_run(job, SW_S), "the job ends");
	end_job(c, job);
}

/* A push of the next round cannot be queued before the result has arrived. */
static void a13a_open_tensor_is_busy(struct check *c)
{
	struct sim_job *job = new_job(100, 1);
	struct sim_worker *w = &job->workers[0];

	job->workers[1].pause_until_ns = 2 * SW_S;
	sim_job_open(job);
	sim_job_pass(job, SW_S / 2);
	check(c, w->asked[0], "a push is open");
	check_eq(c, (uint64_t)sw_worker_push(&w->engine, w->index[0], 1, 0),
		(uint64_t)SW_EBUSY, "a second push");
	check(c, sim_job_run(job, 5 * SW_S), "the job ends");
	end_job(c, job);
}

/* --- A16 --- */

/* The application writes to its buffer after a gathered frame has got its CRC,
 * @times times. */
struct writer {
	struct sim_job *job;
	uint32_t times;
};

static void write_after_crc(
	void *ctx, uint32_t from, const struct sw_tx_frame *t)
{
	struct writer *w = ctx;

	if (from != 1 || t->head[3] != SW_PUSH || !t->is_stable || !w->times)
		return;
	w->times--;
	w->job->workers[0].data[0][5] ^= 1;
}

static void edit(struct check *c, uint32_t times, uint32_t copied)
{
	struct sim_job *job = new_job(100, 1);
	struct writer w = {.job = job, .times = times};
	const struct sim_worker *odd = &job->workers[0];

	job->is_edited = true;
	sim_job_open(job);
	job->net.on_tx = write_after_crc;
	job->net.ctx = &w;
	sim_job_pass(job, 2 * SW_S);
	check_eq(c, odd->n_errors, 1, "push_pulls of rank 0 with an error");
	check_eq(c, (uint64_t)(int64_t)odd->last_err, (uint64_t)SW_ECORRUPT,
		"the error");
	check(c, !odd->has_failed, "rank 0 can go on");
	check_eq(c, odd->engine.stats.push_refused, times, "pushes refused");
	check_eq(c, odd->engine.stats.push_copied, copied, "private copies");
	check_eq(c, job->workers[1].round[0], 1, "rounds of rank 1");
	check_eq(c, job->workers[1].n_errors, 0, "errors of rank 1");
	sim_job_close(job);
	free(job);
}

/* Written repeatedly: after three refusals the worker sends a copy. */
static void a16_chunk_edited_all_the_time(struct check *c)
{
	edit(c, 3, 1);
}

/* Written once: the second push is intact, the error is the same. */
static void a16_chunk_edited_once(struct check *c)
{
	edit(c, 1, 0);
}

/* A network that damages pushes does not look like an application that
 * writes. */
static enum sim_fate damage_pushes(void *ctx, struct sim_frame *f)
{
	uint32_t *n = ctx;

	if (is_type(f, SW_PUSH, 1) && *n) {
		(*n)--;
		f->bytes[SW_HEAD_BYTES + 3] ^= 4;
	}
	return SIM_PASS;
}

static void a16_damage_is_not_editing(struct check *c)
{
	struct sim_job *job = new_job(100, 2);
	uint32_t n = 5;

	job->net.hook = damage_pushes;
	job->net.hook_ctx = &n;
	job->net.faults.corrupt = 1; /* CRC errors are expected */
	sim_job_open(job);
	check(c, sim_job_run(job, 5 * SW_S), "the job ends");
	check_eq(c, job->servers[0]->stats.rx_payload_crc, 5, "CRC errors");
	check_eq(c, job->workers[0].n_errors, 0, "errors");
	end_job(c, job);
}

/* --- A8, for frames --- */

enum { EARLIER = 40 };

/* Replace every other data frame with one of an earlier run: same ids and
 * numbers, other bytes. */
struct earlier {
	struct sim_job *job;
	uint32_t n_seen, n_pushes, n_results;
};

static enum sim_fate replace_by_earlier(void *ctx, struct sim_frame *f)
{
	struct earlier *k = ctx;
	uint32_t seed = sw_epoch_seed(k->job->workers[0].engine.epoch) + 1;
	struct sw_header h;

	if (!is_type(f, SW_PUSH, 1) &&
		!(is_type(f, SW_RESULT, 0) && f->to == 1))
		return SIM_PASS;
	if (k->n_seen >= EARLIER || k->n_seen++ % 2 ||
		header_decode(f->bytes, f->len, &h) != HEADER_GOOD)
		return SIM_PASS;
	k->n_pushes += h.type == SW_PUSH;
	k->n_results += h.type == SW_RESULT;
	f->bytes[SW_HEAD_BYTES] ^= 1;
	h.payload_crc =
		sw_data_crc(seed, &h, f->bytes + SW_HEAD_BYTES, h.payload_len);
	header_encode(&h, f->bytes);
	return SIM_PASS;
}

static void a8_frames_of_an_earlier_run(struct check *c)
{
	struct sim_job *job = new_job(20 * 336, 4);
	struct earlier k = {.job = job};

	job->net.hook = replace_by_earlier;
	job->net.hook_ctx = &k;
	job->net.faults.corrupt = 1; /* CRC errors are expected */
	sim_job_open(job);
	check(c, sim_job_run(job, 5 * SW_S), "the job ends");
	check(c, k.n_pushes && k.n_results, "frames both ways were replaced");
	check_eq(c, job->servers[0]->stats.rx_payload_crc, k.n_pushes,
		"PUSHes that the server dropped");
	check_eq(c, job->workers[0].engine.stats.rx_payload_crc, k.n_results,
		"RESULTs that the worker dropped");
	check_eq(c, job->workers[0].n_errors, 0, "errors");
	end_job(c, job);
}

const struct check_case trace_worker[] = {
	{"a8_frames_of_an_earlier_run", a8_frames_of_an_earlier_run},
	{"a2_result_taken_only_when_waited_for",
		a2_result_taken_only_when_waited_for},
	{"a2_result_before_its_push", a2_result_before_its_push},
	{"a6_retransmission_in_place", a6_retransmission_in_place},
	{"a6_torn_push_is_a_duplicate", a6_torn_push_is_a_duplicate},
	{"a13a_different_submit_orders", a13a_different_submit_orders},
	{"a13a_open_tensor_is_busy", a13a_open_tensor_is_busy},
	{"a16_chunk_edited_all_the_time", a16_chunk_edited_all_the_time},
	{"a16_chunk_edited_once", a16_chunk_edited_once},
	{"a16_damage_is_not_editing", a16_damage_is_not_editing},
};

const uint32_t n_trace_worker = SW_ARRAY_SIZE(trace_worker);
