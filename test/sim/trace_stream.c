/* trace_stream.c - traces of collectives in streams: S1 to S9.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Written by hand (hand.h) where a test is about the server; in a simulated job
 * where it is about workers that complete.
 */
#include "engine/worker/piece.h"
#include "engine/worker/stream.h"
#include "test/sim/hand.h"
#include "test/sim/trace_job.h"

enum { A, B, C, LOG2 = SW_WINDOW_MIN_LOG2, W = 1 << LOG2, N = 4 };

/* --- by hand: all members' chunks of N elements of stream 0 --- */

static void declare(
	struct hand_rig *rig, uint32_t i, const char *name, uint64_t members)
{
	struct sw_declare_item item = {
		.n_elems = members, .dtype = LOG2, .mode = SW_MODE_STREAM};

	if (!peer_declare(&rig->r.w[i], item, name))
		abort();
}

static void open_hand(struct hand_rig *rig, uint32_t n_workers)
{
	hand_open_idle(rig);
	rig->n_workers = n_workers;
	for (uint32_t i = 0; i < n_workers; i++)
		if (!hand_join(rig, i, (uint16_t)i, (uint16_t)n_workers, NULL))
			abort();
	for (uint32_t i = 0; i < n_workers; i++)
		declare(rig, i, "s", (1u << n_workers) - 1);
	hand_pass(rig, SW_MS);
	hand_empty(rig);
}

/* @value: NULL for a member that gives nothing. */
static void push(struct hand_rig *rig, uint32_t i, enum sw_coll_kind kind,
	uint32_t root, uint32_t j, const int32_t *value)
{
	struct sw_header h = peer_push_header(0, j, 1);

	h.op = sw_coll_op(kind, SW_ROUND_SUM);
	h.aux = (uint16_t)root;
	h.payload_len = value ? 4 * N : 0;
	h.type = value ? SW_PUSH : SW_WANT;
	peer_fill(&rig->r.w[i], h, value ? *value : 0);
}

static void give(struct hand_rig *rig, uint32_t i, enum sw_coll_kind kind,
	uint32_t root, uint32_t j, int32_t value)
{
	push(rig, i, kind, root, j, &value);
}

/* Check for the RESULT of chunk @j with @value; acknowledge it. */
static void get(struct check *c, struct hand_rig *rig, uint32_t i, uint32_t j,
	int32_t value)
{
	struct test_frame got;

	if (!check(c, hand_take(rig, i, SW_RESULT, &got), "a RESULT came"))
		return;
	check_eq(c, got.h.round, j, "number of its chunk");
	check_eq(c, (uint32_t)frame_value(&got), (uint32_t)value, "its value");
	check(c, frame_is_all(&got, frame_value(&got)), "it has one value");
	rig->r.w[i].consumed++;
	peer_ack_one(&rig->r.w[i], got.h.class, got.h.psn);
}

static const struct sw_shard *shard_of(const struct hand_rig *rig)
{
	return &rig->r.srv->jobs[0].shard;
}

static uint32_t base_of(const struct hand_rig *rig)
{
	return sw_shard_answer(shard_of(rig), 0, 0, 0, SW_ANSWER_BASE).chunk;
}

/* Sum chunk @j over all members and complete it. */
static void whole_chunk(struct check *c, struct hand_rig *rig, uint32_t j)
{
	for (uint32_t i = 0; i < rig->n_workers; i++)
		give(rig, i, SW_ALL_REDUCE, A, j, 1 << i);
	for (uint32_t i = 0; i < rig->n_workers; i++)
		get(c, rig, i, j, (1 << rig->n_workers) - 1);
}

/* --- a simulated job; the test submits its collectives --- */

static struct sim_job *open_groups(
	uint32_t n_workers, uint32_t n_groups, bool is_colocated)
{
	struct sim_job *job = new_job(1, 0);

	job->n_workers = n_workers;
	job->n_servers = is_colocated ? n_workers : 1;
	job->n_colocated = is_colocated ? n_workers : 0;
	job->n_groups = n_groups;
	job->params.payload = PEER_PAYLOAD;
	job->params.credit_bytes = SW_CREDIT_MIN;
	for (uint32_t g = 0; g < n_groups; g++) {
		job->groups[g].members = (1u << n_workers) - 1;
		job->groups[g].window_log2 = LOG2;
		job->groups[g].n_colls = 1;
	}
	return job;
}

static void start(struct sim_job *job)
{
	sim_job_open(job);
	sim_job_pass(job, 50 * SW_MS);
}

static void submit(struct sim_job *job, uint32_t worker, uint32_t group)
{
	sim_groups_submit(&job->workers[worker], group);
	sim_job_pass(job, 5 * SW_MS);
}

static void end_groups(struct check *c, struct sim_job *job)
{
	check(c, sim_job_run(job, 10 * SW_S), "all collectives complete");
	sim_job_pass(job, SW_S);
	check(c, !sim_groups_wrong(job), "no server waits for a chunk");
	end_job(c, job);
}

/* --- S1 to S9 --- */

/* Chunks for A: B pushes all that the window allows, each after the ACK of the
 * one before, and before A's first push. The server does not reuse the first
 * slot before A has its sum. */
static void s1_giver_runs_ahead(struct check *c)
{
	struct hand_rig rig;

	open_hand(&rig, 2);
	for (uint32_t j = 1; j <= W; j++)
		give(&rig, B, SW_REDUCE_SCATTER, A, j, 100 * (int32_t)j);
	check_eq(c, shard_of(&rig)->n_folded, W, "folded");
	give(&rig, B, SW_REDUCE_SCATTER, A, 1 + W, -1);
	check_eq(c, shard_of(&rig)->n_folded, W, "folded beyond the window");
	for (uint32_t j = 1; j <= W; j++) {
		give(&rig, A, SW_REDUCE_SCATTER, A, j, 1);
		get(c, &rig, A, j, 100 * (int32_t)j + 1);
	}
	check_eq(c, hand_count(&rig, B, SW_RESULT), 0, "RESULTs to B");
	check_eq(c, base_of(&rig), 1 + W, "base");
	give(&rig, B, SW_REDUCE_SCATTER, A, 1 + W, 7);
	give(&rig, A, SW_REDUCE_SCATTER, A, 1 + W, 1);
	get(c, &rig, A, 1 + W, 8);
	hand_close(&rig);
}

/* Is the last frame of @i acknowledged within a second? */
static bool is_acknowledged(struct hand_rig *rig, uint32_t i)
{
	uint64_t psn = rig->r.w[i].psn[rig->sent.h.class];
	struct test_frame got;
	struct sw_sack k;
	bool is_found = false;

	hand_pass(rig, SW_S / 10);
	while (hand_take(rig, i, SW_ACK, &got)) {
		frame_get(&got, &k, sizeof(k));
		is_found |= k.largest >= psn;
	}
	return is_found;
}

/* A server acknowledges only frames that it has folded, because a sender that
 * only gives never asks again. So it does not acknowledge frames ahead of the
 * window, damaged frames, and frames of another group or of an invalid
 * collective. */
static void s2_acknowledged_is_folded(struct check *c)
{
	struct hand_rig rig;
	struct sw_header h = peer_push_header(0, 1, 1);

	open_hand(&rig, 2);
	give(&rig, B, SW_REDUCE, A, 1, 1);
	check(c, is_acknowledged(&rig, B), "what is folded is acknowledged");
	check_eq(c, shard_of(&rig)->n_folded, 1, "folded");
	give(&rig, B, SW_REDUCE, A, 1 + W, 1);
	check(c, !is_acknowledged(&rig, B), "ahead: no acknowledgement");
	h.op = sw_coll_op(SW_N_COLL_KINDS, SW_ROUND_SUM);
	peer_fill(&rig.r.w[B], h, 1);
	check(c, !is_acknowledged(&rig, B), "no collective: none");
	h.op = sw_coll_op(SW_REDUCE, SW_ROUND_SUM);
	h.round = 2;
	h.payload_crc = 1;
	peer_fill(&rig.r.w[B], h, 1);
	check(c, !is_acknowledged(&rig, B), "damaged: none");
	check_eq(c, shard_of(&rig)->n_folded, 1, "folded");
	hand_close(&rig);
}

/* B gives, A and C get; all RESULTs to A are lost. B pushes as far as the
 * window allows and tries the next chunk: the server still has every byte of
 * the first one. */
static void s3_root_waits_for_the_last_receiver(struct check *c)
{
	struct hand_rig rig;
	struct test_frame got;

	open_hand(&rig, 3);
	for (uint32_t j = 1; j <= W; j++) {
		push(&rig, A, SW_BCAST, B, j, NULL);
		push(&rig, C, SW_BCAST, B, j, NULL);
		give(&rig, B, SW_BCAST, B, j, 10 + (int32_t)j);
		get(c, &rig, C, j, 10 + (int32_t)j);
	}
	while (hand_take(&rig, A, SW_RESULT, &got))
		; /* lost */
	check_eq(c, base_of(&rig), 1, "base");
	for (uint32_t j = 1 + W; j <= 2 * W; j++)
		give(&rig, B, SW_BCAST, B, j, -1);
	check_eq(c, base_of(&rig), 1, "base after what is ahead");
	for (uint32_t n = 0; n < W; n++) {
		hand_pass(&rig, 200 * SW_MS);
		peer_keepalive(&rig.r.w[A]);
		peer_keepalive(&rig.r.w[B]);
		peer_keepalive(&rig.r.w[C]);
		while (hand_take(&rig, A, SW_RESULT, &got)) {
			check_eq(c, (uint32_t)frame_value(&got),
				10 + got.h.round, "value of a RESULT");
			peer_ack_one(&rig.r.w[A], got.h.class, got.h.psn);
		}
	}
	check_eq(c, base_of(&rig), 1 + W, "base when A has all");
	check(c, hand_count(&rig, B, SW_ANSWER) > 0, "B is told of base");
	give(&rig, B, SW_BCAST, B, 1 + W, 5);
	push(&rig, A, SW_BCAST, B, 1 + W, NULL);
	get(c, &rig, A, 1 + W, 5);
	hand_close(&rig);
}

/* A server sends a RESULT only to a member that has asked by its own push, so
 * none arrives before the collective is submitted. */
static void s4_no_result_before_the_submit(struct check *c)
{
	struct sim_job *job = open_groups(3, 1, false);
	struct hand_rig rig;

	open_hand(&rig, 3);
	give(&rig, A, SW_BCAST, A, 1, 6);
	hand_pass(&rig, SW_S);
	check_eq(c, hand_count(&rig, B, SW_RESULT), 0, "RESULTs to B");
	push(&rig, B, SW_BCAST, A, 1, NULL);
	get(c, &rig, B, 1, 6);
	check_eq(c, hand_count(&rig, C, SW_RESULT), 0, "RESULTs to C");
	hand_close(&rig);

	job->groups[0].colls[0] = (struct sim_coll){.kind = SW_BCAST,
		.dtype = SW_I32,
		.n_elems = 3 * W * PEER_CHUNK};
	start(job);
	submit(job, A, 0);
	submit(job, B, 0);
	sim_job_pass(job, SW_S);
	check_eq(c, job->workers[B].of_group[0].n_done, 0, "done at B");
	submit(job, C, 0);
	end_groups(c, job);
}

/* B, which gets nothing, has its buffer back and overwrites it long before A
 * and C push. Its own server, which reads the buffer in place, and the others
 * still have the original values. */
static void overwrite_a_giver(
	struct check *c, enum sw_coll_kind kind, uint16_t root)
{
	struct sim_job *job = open_groups(3, 1, true);
	const struct sim_of_group *of = &job->workers[B].of_group[0];
	uint64_t bytes = W * PEER_CHUNK * 4, n_left = 0;

	job->groups[0].colls[0] = (struct sim_coll){.kind = kind,
		.dtype = SW_I32,
		.n_elems = bytes / 4,
		.root = root};
	start(job);
	submit(job, B, 0);
	sim_job_pass(job, SW_S / 10);
	check_eq(c, of->n_done, 1, "done at B");
	for (uint64_t i = 0; i < bytes; i++) /* as stream_buffers.c does */
		n_left += of->from[0][i] != of->from[0][0];
	check_eq(c, n_left, 0, "bytes that were not overwritten");
	check_eq(c, job->workers[A].of_group[0].n_done, 0, "done at A");
	submit(job, C, 0);
	submit(job, A, 0);
	check(c, job->n_checked > 0, "frames were looked into");
	end_groups(c, job);
}

/* k = 0: a server copies its own node's contribution if the giver does not wait
 * for the result. */
static void s5_giver_has_its_buffer_back(struct check *c)
{
	overwrite_a_giver(c, SW_REDUCE, A);
	overwrite_a_giver(c, SW_BCAST, B);
}

/* The group ends while A's pushes wait in its loopback. A has its buffers back
 * and overwrites them, and its own server may still fold the pushes. A rank
 * that ends well must not have any overwritten byte. @ns after A's submit. */
static void abort_a_giver(struct check *c, uint64_t ns)
{
	struct sim_job *job = open_groups(2, 1, true);

	job->groups[0].colls[0] = (struct sim_coll){
		.kind = SW_ALL_REDUCE, .dtype = SW_I32, .n_elems = PEER_CHUNK};
	job->clash = (struct sim_clash){.how = SIM_ABORTS, .by = A};
	start(job);
	submit(job, B, 0);
	sim_groups_submit(&job->workers[A], 0);
	sim_job_pass(job, ns);
	if (!job->workers[A].of_group[0].has_ended_it)
		sim_groups_end(&job->workers[A], 0);
	end_groups(c, job);
}

static void s5_giver_aborts(struct check *c)
{
	for (uint64_t ns = 0; ns < 8 * SW_US; ns += SW_US / 8)
		abort_a_giver(c, ns);
}

/* Only A has called, and its own server has borrowed its payloads; then A
 * aborts and overwrites its buffer. */
static void s5_lender_aborts(struct check *c)
{
	struct sim_job *job = open_groups(2, 1, true);
	const struct sim_of_group *of = &job->workers[A].of_group[0];
	const struct sw_shard *sh;

	job->groups[0].colls[0] = (struct sim_coll){
		.kind = SW_ALL_REDUCE, .dtype = SW_I32, .n_elems = PEER_CHUNK};
	start(job);
	sh = &job->servers[0]->jobs[0].shard;
	submit(job, A, 0);
	check_eq(c, sh->n_lent, 1, "chunks that are lent");
	job->clash = (struct sim_clash){.how = SIM_ABORTS, .by = A};
	sim_groups_end(&job->workers[A], 0);
	for (uint32_t i = 0; i < SW_US && of->fates[0] != SIM_GIVEN_BACK; i++)
		sim_job_pass(job, 1);
	check_eq(c, of->fates[0], SIM_GIVEN_BACK, "fate at A");
	check_eq(c, sh->n_lent, 0, "chunks that are lent when it is written");
	submit(job, B, 0);
	end_groups(c, job);
}

static enum sim_fate lose_answers(void *ctx, struct sim_frame *f)
{
	const struct sim_job *job = ctx;

	return f->bytes[3] == SW_ANSWER && job->net.now_ns < 2 * SW_S
		       ? SIM_LOST
		       : SIM_PASS;
}

/* A, which gives, learns base only from answers, and all are lost for a while.
 * A asks again, although a whole QUERY of results that B does not ask for is
 * late. */
static void window_is_asked_for_beside_late_results(struct check *c)
{
	enum { LATE_LOG2 = 6 };
	struct sim_job *job = open_groups(2, 2, false);

	job->params.credit_bytes = SW_CREDIT_MIN << 8;
	job->groups[0].window_log2 = LATE_LOG2;
	job->groups[0].colls[0] = (struct sim_coll){.kind = SW_ALL_REDUCE,
		.dtype = SW_I32,
		.n_elems = PEER_CHUNK << LATE_LOG2};
	job->groups[1].colls[0] = (struct sim_coll){.kind = SW_BCAST,
		.dtype = SW_I32,
		.n_elems = 10 * W * PEER_CHUNK};
	start(job);
	job->net.hook = lose_answers;
	job->net.hook_ctx = job;
	submit(job, A, 0);
	submit(job, A, 1);
	submit(job, B, 1);
	sim_job_pass(job, 3 * SW_S);
	check_eq(c, job->workers[A].of_group[0].n_done, 0, "late at A");
	check_eq(c, job->workers[A].of_group[1].n_done, 1, "done at A");
	check_eq(c, job->workers[B].of_group[1].n_done, 1, "done at B");
	submit(job, B, 0);
	end_groups(c, job);
}

/* f32 in one chunk of a slot, bf16 in the next, then f32 again: sums of 16-bit
 * types are f32, so their results need space of their own. */
static void s6_types_change_in_a_slot(struct check *c)
{
	enum { ONE = 0x3f800000, TWO = 0x40000000, HALVES = 0x40004000 };
	struct hand_rig rig;
	uint32_t j = 1;

	open_hand(&rig, 2);
	for (uint32_t n = 0; n < 4; n++) {
		struct sw_header h = peer_push_header(0, j, 1);
		bool is_16 = n & 1;

		h.op = sw_coll_op(SW_ALL_REDUCE, SW_ROUND_SUM);
		h.dtype = is_16 ? SW_BF16 : SW_F32;
		/* 1 + 1 = 2, or 2 + 2 = 4 */
		peer_fill(&rig.r.w[A], h, is_16 ? HALVES : ONE);
		peer_fill(&rig.r.w[B], h, is_16 ? HALVES : ONE);
		get(c, &rig, A, j, is_16 ? 0x40804080 : TWO);
		get(c, &rig, B, j, is_16 ? 0x40804080 : TWO);
		for (uint32_t i = 1; i < W; i++)
			whole_chunk(c, &rig, ++j);
		j++;
	}
	hand_close(&rig);
}

/* Close the group of the stream with @key at member @i. */
static void close_stream(struct hand_rig *rig, uint32_t i, uint32_t key)
{
	struct sw_fault fault = {.key = key};

	peer_send(&rig->r.w[i],
		(struct sw_header){
			.type = SW_CLOSE, .payload_len = sizeof(fault)},
		&fault);
}

/* A group is closed, and another group gets the index of its key with a later
 * generation. The server acknowledges late frames of the old group and does not
 * add them to the new one. It counts frames of unknown groups and ignores
 * them. */
static void s7_keys_are_not_used_again(struct check *c)
{
	struct hand_rig rig;
	struct sw_header h = peer_push_header(SW_KEY_INDICES, 1, 1);

	open_hand(&rig, 2);
	h.op = sw_coll_op(SW_ALL_REDUCE, SW_ROUND_SUM);
	peer_fill(&rig.r.w[A], h, 1);
	check_eq(c, rig.r.srv->stats.rx_key, 1, "frames of no key");
	whole_chunk(c, &rig, 1);
	declare(&rig, A, "s", 3);
	check_eq(c, rig.r.w[A].key, 0, "key of the same stream");
	check_eq(c, base_of(&rig), 2, "base of the same stream");
	for (uint32_t i = 0; i < 2; i++)
		close_stream(&rig, i, 0);
	rig.r.srv->jobs[0].shard.last_key = SW_KEY_INDICES - 1;
	for (uint32_t i = 0; i < 2; i++)
		declare(&rig, i, "another", 3);
	check_eq(c, rig.r.w[A].key, SW_KEY_INDICES, "key of another one");
	give(&rig, B, SW_ALL_REDUCE, A, 1, 9); /* late */
	check(c, is_acknowledged(&rig, B), "a late push is acknowledged");
	check_eq(c, shard_of(&rig)->n_folded, 2, "folded");
	h.weight = 1;
	h.payload_len = 4;
	for (uint32_t i = 0; i < 2; i++)
		peer_fill(&rig.r.w[i], h, 1);
	check_eq(c, shard_of(&rig)->n_folded, 4, "folded of the new one");
	check_eq(c, rig.r.srv->stats.rx_key, 1, "frames of no key");
	hand_close(&rig);
}

/* Groups {A, C} and {A, B, C} have more chunks than window and credit allow. A
 * submits X to the first, then Y to the second; C submits Y, then X. Folded
 * chunks return their credit, and chunks outside the window take none, so
 * neither waits for the other. */
static void s8_groups_cross(struct check *c)
{
	struct sim_job *job = open_groups(3, 2, false);

	job->groups[0].members = 1 << A | 1 << C;
	for (uint32_t g = 0; g < 2; g++)
		job->groups[g].colls[0] =
			(struct sim_coll){.kind = SW_ALL_REDUCE,
				.dtype = SW_I32,
				.n_elems = 10 * W * PEER_CHUNK};
	start(job);
	submit(job, A, 0);
	submit(job, C, 1);
	submit(job, A, 1);
	sim_job_pass(job, SW_S);
	check_eq(c, job->workers[A].of_group[0].n_done, 0, "X without C");
	submit(job, B, 1);
	check(c, sim_worker_stats(&job->workers[B]).results > 0,
		"Y goes on while X waits");
	sim_job_pass(job, SW_S);
	check_eq(c, job->workers[A].of_group[1].n_done, 1, "Y at A");
	submit(job, C, 0);
	end_groups(c, job);
}

/* Check that a worker's links share chunks in whole stripes. */
static void check_shares(
	struct check *c, uint16_t n, uint16_t k, uint32_t period)
{
	static struct sw_worker w;
	static struct sw_stream stream;
	uint32_t weights[SW_PLACE_SERVERS], sum, sizes[] = {1, 3, 7, 13};
	uint64_t at[SW_PLACE_SERVERS] = {0}, n_stripes = 0, n_wrong = 0;
	struct sw_coll coll = {.ask = {.kind = SW_ALL_REDUCE}};

	w = (struct sw_worker){
		.place = {
			.n_members = n, .n_servers = n + k, .n_colocated = n}};
	sum = sw_place_weights(&w.place, weights);
	sw_place_map_init(&w.map, &w.place);
	check_eq(c, w.map.period, period, "stripes of a period");
	for (uint32_t i = 0; n_stripes < 3 * period; i++) {
		uint64_t left = 3 * period - n_stripes, in_all = 0;
		uint32_t size = sizes[i % SW_ARRAY_SIZE(sizes)];

		size = (uint32_t)sw_min64(size, left);
		coll.n_chunks = size * SW_COLL_STRIPE;
		for (uint16_t s = 0; s < n + k; s++) {
			struct sw_coll_share share =
				sw_coll_share(&w, &stream, &coll, s);

			for (uint32_t x = 0; x < share.n; x++)
				n_wrong +=
					sw_place_owner(&w.map, coll.first,
						SW_COLL_PLACES *
							sw_coll_share_at(&coll,
								&share, x)) !=
					s;
			at[s] += share.n;
			in_all += share.n;
		}
		check_eq(c, in_all, coll.n_chunks, "chunks at all servers");
		n_stripes += size;
		coll.first = (coll.first + coll.n_chunks * SW_COLL_PLACES) %
			     sw_place_line(&w.map);
	}
	check_eq(c, n_wrong, 0, "chunks that lie elsewhere");
	for (uint32_t s = 0; s < n + k; s++)
		check_eq(c, at[s] * sum,
			n_stripes * SW_COLL_STRIPE * weights[s],
			"chunks of a server");
}

/* The same for sums: @n_periods of tensors' stripes of n = 8, k = 4, through
 * windows of less than a period. */
static void check_sums(struct check *c, uint32_t n_periods)
{
	enum { AGENTS = 8, SUMMERS = 4, PERIOD = 44 };
	struct sim_job *job = open_groups(AGENTS, 1, true);
	struct sw_place_job place = {.n_members = AGENTS,
		.n_servers = AGENTS + SUMMERS,
		.n_colocated = AGENTS};
	uint32_t weights[SW_PLACE_SERVERS], sum;
	uint64_t chunks = (uint64_t)n_periods * PERIOD * SW_STRIPE_CHUNKS;

	job->n_servers += SUMMERS;
	for (uint32_t i = 0; i < 2; i++)
		job->groups[0].colls[i] =
			(struct sim_coll){.kind = SW_ALL_REDUCE,
				.dtype = SW_I32,
				.n_elems = chunks / 2 * PEER_CHUNK};
	job->groups[0].n_colls = 2;
	start(job);
	for (uint32_t i = 0; i < 2 * AGENTS; i++)
		submit(job, i % AGENTS, 0);
	check(c, sim_job_run(job, 10 * SW_S), "both complete");
	sum = sw_place_weights(&place, weights);
	for (uint32_t s = 0; s < job->n_servers; s++)
		check_eq(c, job->servers[s]->stats.chunks_done * sum,
			chunks * weights[s], "chunks that a server summed");
	end_groups(c, job);
}

/* A window of 16 chunks is less than a period; it does not cut the sequence of
 * stripes, which continues from collective to collective. */
static void s9_shares_of_many_servers(struct check *c)
{
	check_shares(c, 8, 4, 44);
	check_shares(c, 64, 32, 3040);
	check_sums(c, 2);
}

const struct check_case trace_stream[] = {
	{"s1_giver_runs_ahead", s1_giver_runs_ahead},
	{"s2_acknowledged_is_folded", s2_acknowledged_is_folded},
	{"s3_root_waits_for_the_last_receiver",
		s3_root_waits_for_the_last_receiver},
	{"s4_no_result_before_the_submit", s4_no_result_before_the_submit},
	{"s5_giver_has_its_buffer_back", s5_giver_has_its_buffer_back},
	{"s5_giver_aborts", s5_giver_aborts},
	{"s5_lender_aborts", s5_lender_aborts},
	{"s6_types_change_in_a_slot", s6_types_change_in_a_slot},
	{"s7_keys_are_not_used_again", s7_keys_are_not_used_again},
	{"s8_groups_cross", s8_groups_cross},
	{"s9_shares_of_many_servers", s9_shares_of_many_servers},
	{"window_is_asked_for_beside_late_results",
		window_is_asked_for_beside_late_results},
};

const uint32_t n_trace_stream = SW_ARRAY_SIZE(trace_stream);
