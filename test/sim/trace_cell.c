/* trace_cell.c - traces that end in a cell of the server: A2, A3, A5, A18, F.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/base/bytes.h"
#include "test/sim/hand.h"
#include "test/sim/traces.h"
#include "test/support/header.h"

enum { A, B, C };

/* One chunk: A and B push @round, and both acknowledge the sum. */
static void whole_round(struct hand_rig *rig, uint32_t round)
{
	struct test_frame got;

	hand_empty(rig);
	for (uint32_t i = 0; i < rig->n_workers; i++)
		hand_push(rig, i, round, 0, 10 + (int32_t)i);
	for (uint32_t i = 0; i < rig->n_workers; i++)
		if (hand_take(rig, i, SW_RESULT, &got))
			peer_ack_one(&rig->r.w[i], 0, got.h.psn);
}

/* 1. RESULT(1) to B counts as lost and is queued for retransmission.
 * 2. It did arrive: B pushes 2.
 * 3. DONE(2) is also unsent; A pushes 3, which recycles the slot of 1.
 * 4. The frame that leaves now must not carry the cell of 3. */
static void a2_queued_result_survives_recycle(struct check *c)
{
	struct hand_rig rig;
	struct test_frame got;

	hand_open(&rig, 2, 100);
	hand_push(&rig, A, 1, 0, 1);
	hand_push(&rig, B, 1, 0, 4);
	hand_expect(c, &rig, A, 1, 5);
	peer_ack_one(&rig.r.w[A], 0, 1);
	check(c, hand_take(&rig, B, SW_RESULT, &got), "RESULT(1) was sent");
	rig.is_stuck = true;
	hand_pass(&rig, SW_S / 2); /* lost and marked for retransmission */
	check_eq(c, hand_session(&rig, B)->job->shard.stats->lost, 1,
		"frames lost");
	hand_push(&rig, B, 2, 0, 8);
	hand_push(&rig, A, 2, 0, 2);
	check(c, hand_chunk(&rig, 0)->cell[0].is_done, "2 is complete");
	hand_push(&rig, A, 3, 0, 3); /* A got 2 in another way */
	check(c, !hand_chunk(&rig, 0)->cell[1].is_done, "3 is not complete");
	hand_empty(&rig);
	rig.is_stuck = false;
	hand_pass(&rig, SW_MS);
	hand_expect(c, &rig, B, 2, 10);
	check_eq(c, hand_count(&rig, A, SW_RESULT), 0, "RESULTs to A");
	for (uint32_t i = 0; i < 2; i++)
		while (hand_take(&rig, i, SW_RESULT, &got))
			check(c, got.h.round == 2, "no RESULT of 3 or 1");
	hand_close(&rig);
}

/* The server must not answer a mark of an older round with the incomplete cell
 * of a newer one, whatever the member asks for. */
static void a2_query_of_unfinished_round_waits(struct check *c)
{
	struct hand_rig rig;
	struct test_frame got;
	struct sw_answer a;

	hand_open(&rig, 2, 100);
	whole_round(&rig, 1);
	hand_push(&rig, A, 2, 0, 1);
	hand_empty(&rig);
	peer_query(&rig.r.w[A], 0, 2, 0);
	check_eq(c, hand_count(&rig, A, SW_RESULT), 0, "RESULTs");
	if (check(c, hand_take(&rig, A, SW_ANSWER, &got), "an ANSWER came")) {
		frame_get(&got, &a, sizeof(a));
		check_eq(c, a.kind, SW_ANSWER_WAIT, "kind");
		check_eq(c, a.missing, 1u << B, "missing");
	}
	hand_close(&rig);
}

/* The ACK of RESULT(1) arrives when RESULT(2) is in flight: the server must
 * still detect the loss of RESULT(2). */
static void a2_fate_of_an_older_round(struct check *c)
{
	struct hand_rig rig;

	hand_open(&rig, 2, 100);
	for (uint32_t round = 1; round < 3; round++)
		for (uint32_t i = 0; i < 2; i++)
			hand_push(&rig, i, round, 0, 1);
	check_eq(c, hand_count(&rig, B, SW_RESULT), 2, "RESULTs");
	peer_ack_one(&rig.r.w[B], 0, 1);
	hand_empty(&rig);
	hand_pass(&rig, SW_S / 10);
	hand_expect(c, &rig, B, 2, 2);
	hand_close(&rig);
}

/* A second push, with other bytes, of a rank whose bit is set, into a complete
 * sum: the server answers with the same result and never folds it. */
static void a3_push_into_done(struct check *c)
{
	struct hand_rig rig;

	hand_open(&rig, 2, 100);
	hand_push(&rig, A, 1, 0, 1);
	hand_push(&rig, B, 1, 0, 4);
	hand_expect(c, &rig, B, 1, 5);
	peer_ack_one(&rig.r.w[B], 0, 1);
	hand_push(&rig, B, 1, 0, 1000);
	hand_expect(c, &rig, B, 1, 5);
	check_eq(c, rig.r.srv->stats.push_folded, 2, "folds");
	check_eq(c, rig.r.srv->stats.push_again, 1, "pushes that came again");
	check_eq(c, rig.r.srv->stats.chunks_done, 1, "sums completed");
	hand_close(&rig);
}

/* The same while the sum still waits for others, and after its recycle. */
static void a3_push_again_and_late(struct check *c)
{
	struct hand_rig rig;
	struct test_frame old;

	hand_open(&rig, 2, 100);
	hand_push(&rig, A, 1, 0, 1);
	old = rig.sent;
	hand_push(&rig, A, 1, 0, 1000);
	peer_again(&rig.r.w[A], &old);
	check_eq(c, rig.r.srv->stats.push_folded, 1, "folds");
	check(c, !hand_chunk(&rig, 0)->cell[1].is_done, "B is waited for");
	hand_push(&rig, B, 1, 0, 4);
	hand_expect(c, &rig, A, 1, 5);
	whole_round(&rig, 2);
	hand_empty(&rig);
	hand_push(&rig, A, 3, 0, 7);
	peer_again(&rig.r.w[A], &old); /* into the cell that 3 now uses */
	hand_push(&rig, B, 3, 0, 9);
	hand_expect(c, &rig, B, 3, 16);
	check_eq(c, rig.r.srv->stats.push_folded, 6, "folds in the end");
	hand_close(&rig);
}

/* A rank that breaks the client's rule and pushes ahead neither destroys a
 * result that others need nor makes a hole. */
static void i3_push_ahead_is_refused(struct check *c)
{
	struct hand_rig rig;

	hand_open(&rig, 2, 100);
	hand_push(&rig, A, 1, 0, 1);
	hand_push(&rig, B, 1, 0, 4);
	hand_empty(&rig);
	hand_push(&rig, A, 2, 0, 1);
	hand_push(&rig, A, 3, 0, 1); /* 2 is incomplete */
	hand_push(&rig, A, 4, 0, 1);
	check_eq(c, rig.r.srv->stats.rx_round, 2, "pushes refused");
	check_eq(c, rig.r.srv->stats.push_folded, 3, "folds");
	hand_pass(&rig, SW_S); /* the server resends 1 to B */
	hand_expect(c, &rig, B, 1, 5);
	hand_push(&rig, B, 2, 0, 4);
	hand_empty(&rig);
	hand_pass(&rig, SW_S);
	hand_expect(c, &rig, B, 2, 5);
	hand_close(&rig);
}

static void expect_answer(struct check *c, struct hand_rig *rig, uint32_t i,
	uint32_t round, enum sw_answer_kind kind)
{
	struct test_frame got;
	struct sw_answer a;

	hand_empty(rig);
	peer_query(&rig->r.w[i], 0, round, 0);
	if (!check(c, hand_take(rig, i, SW_ANSWER, &got), "an ANSWER came"))
		return;
	frame_get(&got, &a, sizeof(a));
	check_eq(c, a.kind, kind, "kind of the ANSWER");
	check_eq(c, a.round, round, "its round");
}

/* A QUERY has four answers, independent of earlier acknowledgements. */
static void a5_query_has_four_answers(struct check *c)
{
	struct hand_rig rig;

	hand_open(&rig, 2, 100);
	expect_answer(c, &rig, A, 1, SW_ANSWER_NEED); /* round not reached */
	hand_push(&rig, A, 1, 0, 1);
	expect_answer(c, &rig, A, 1, SW_ANSWER_WAIT);
	expect_answer(c, &rig, B, 1, SW_ANSWER_NEED); /* B's bit is clear */
	hand_push(&rig, B, 1, 0, 4);
	peer_ack_one(&rig.r.w[A], 0, 1); /* a false ACK: A has lost it */
	hand_empty(&rig);
	peer_query(&rig.r.w[A], 0, 1, 0);
	hand_expect(c, &rig, A, 1, 5);
	hand_push(&rig, A, 2, 0, 1);
	expect_answer(c, &rig, A, 1, SW_ANSWER_GONE); /* the cell held 1 */
	hand_push(&rig, B, 2, 0, 4);
	hand_push(&rig, A, 3, 0, 1);
	expect_answer(c, &rig, B, 1, SW_ANSWER_GONE); /* cell recycled */
	hand_close(&rig);
}

/* The result is lost and its ACK is false: the repeated push alone asks for
 * it. */
static void a5_push_again_acts_as_query(struct check *c)
{
	struct hand_rig rig;

	hand_open(&rig, 2, 100);
	hand_push(&rig, A, 1, 0, 1);
	hand_push(&rig, B, 1, 0, 4);
	peer_ack_one(&rig.r.w[A], 0, 1);
	hand_empty(&rig);
	hand_push(&rig, A, 1, 0, 1);
	hand_expect(c, &rig, A, 1, 5);
	hand_close(&rig);
}

/* Asking twice for a frame in flight does not send it twice. */
static void a18_query_of_what_is_on_its_way(struct check *c)
{
	struct hand_rig rig;

	hand_open(&rig, 2, 100);
	hand_push(&rig, A, 1, 0, 1);
	hand_push(&rig, B, 1, 0, 4);
	check_eq(c, hand_count(&rig, A, SW_RESULT), 1, "RESULTs");
	for (uint32_t i = 0; i < 10; i++)
		peer_query(&rig.r.w[A], 0, 1, 0);
	check_eq(c, hand_count(&rig, A, SW_RESULT), 1, "RESULTs after QUERIES");
	peer_ack_one(&rig.r.w[A], 0, 1);
	peer_query(&rig.r.w[A], 0, 1, 0);
	peer_query(&rig.r.w[A], 0, 1, 0);
	check_eq(c, hand_count(&rig, A, SW_RESULT), 2, "RESULTs after an ACK");
	hand_close(&rig);
}

/* Results obey the worker's credit, also after a QUERY (I5). */
static void a18_results_obey_the_grant(struct check *c)
{
	struct hand_rig rig;
	uint32_t n = 10; /* within the initial window */
	uint64_t granted;

	hand_open(&rig, 2, n * PEER_CHUNK);
	granted =
		hand_session(&rig, A)->peer.flow.consumed + 3 * PEER_QUANTA + 1;
	rig.r.w[A].grant = (uint32_t)granted; /* no increase */
	hand_session(&rig, A)->peer.flow.granted = granted;
	for (uint32_t i = 0; i < 2; i++)
		for (uint32_t k = 0; k < n; k++)
			hand_push(&rig, i, 1, k, 1);
	for (uint32_t k = 0; k < n; k++)
		peer_query(&rig.r.w[A], 0, 1, k);
	/* The last one may overdraw. */
	check_eq(c, hand_count(&rig, A, SW_RESULT), 4, "RESULTs to A");
	check_eq(c, hand_count(&rig, B, SW_RESULT), n, "RESULTs to B");
	hand_close(&rig);
}

/* A late QUERY of a member in a later round gets GONE and has no effect; the
 * server only acknowledges a late push. */
static void f_late_frames_of_old_rounds(struct check *c)
{
	struct hand_rig rig;
	struct test_frame old;

	hand_open(&rig, 2, 100);
	hand_push(&rig, A, 1, 0, 1);
	old = rig.sent;
	hand_push(&rig, B, 1, 0, 4);
	for (uint32_t round = 2; round < 9; round++)
		whole_round(&rig, round);
	hand_empty(&rig);
	peer_again(&rig.r.w[A], &old);
	hand_pass(&rig, SW_MS);
	check_eq(c, hand_count(&rig, A, SW_RESULT), 0, "RESULTs");
	check_eq(c, hand_count(&rig, A, SW_ACK), 1, "ACKs");
	expect_answer(c, &rig, A, 1, SW_ANSWER_GONE);
	check_eq(c, rig.r.srv->stats.push_folded, 16, "folds");
	check_eq(c, rig.r.srv->stats.rx_round, 0, "violations");
	hand_close(&rig);
}

/* Validate before mutate: each frame has one error, and none changes anything
 * (I4). */
static void i4_nothing_changes_before_all_is_checked(struct check *c)
{
	struct hand_rig rig;
	struct test_frame good, bad;
	struct sw_header h;
	struct sw_stats *st;

	hand_open(&rig, 2, 100);
	st = &rig.r.srv->stats;
	hand_push(&rig, A, 1, 0, 1);
	good = rig.sent;
	h = good.h;
	bad = good;
	bad.bytes[SW_HEAD_BYTES + 8] ^= 1; /* B's session, damaged payload */
	h.session = rig.r.w[B].session;    /* B's session, A's seed */
	header_encode(&h, bad.bytes);
	peer_again(&rig.r.w[B], &bad);
	check_eq(c, st->rx_head_crc, 1, "wrong seeds");
	h.head_crc = sw_session_seed(rig.r.w[B].nonce);
	header_encode(&h, bad.bytes);
	peer_again(&rig.r.w[B], &bad);
	check_eq(c, st->rx_payload_crc, 1, "payloads damaged");
	peer_again(&rig.r.w[A], &bad); /* B's session, A's address */
	check_eq(c, st->rx_source, 1, "wrong sources");
	h.session ^= 1;
	header_encode(&h, bad.bytes);
	peer_again(&rig.r.w[B], &bad);
	check_eq(c, st->rx_session, 1, "wrong generations");
	h.session = rig.r.w[B].session;
	h.chunk = 1;
	header_encode(&h, bad.bytes);
	peer_again(&rig.r.w[B], &bad);
	check_eq(c, st->rx_chunk, 1, "chunks unknown");
	h.chunk = 0;
	h.dtype = SW_F32;
	header_encode(&h, bad.bytes);
	peer_again(&rig.r.w[B], &bad);
	check_eq(c, st->rx_dtype, 1, "wrong dtypes");
	check_eq(c, st->push_folded, 1, "folds");
	check_eq(c, hand_chunk(&rig, 0)->cell[1].got, 1u << A, "bits");
	hand_push(&rig, B, 1, 0, 4);
	hand_expect(c, &rig, A, 1, 5);
	hand_close(&rig);
}

const struct check_case trace_cell[] = {
	{"a2_queued_result_survives_recycle",
		a2_queued_result_survives_recycle},
	{"a2_query_of_unfinished_round_waits",
		a2_query_of_unfinished_round_waits},
	{"a2_fate_of_an_older_round", a2_fate_of_an_older_round},
	{"a3_push_into_done", a3_push_into_done},
	{"a3_push_again_and_late", a3_push_again_and_late},
	{"a5_query_has_four_answers", a5_query_has_four_answers},
	{"a5_push_again_acts_as_query", a5_push_again_acts_as_query},
	{"a18_query_of_what_is_on_its_way", a18_query_of_what_is_on_its_way},
	{"a18_results_obey_the_grant", a18_results_obey_the_grant},
	{"f_late_frames_of_old_rounds", f_late_frames_of_old_rounds},
	{"i3_push_ahead_is_refused", i3_push_ahead_is_refused},
	{"i4_nothing_changes_before_all_is_checked",
		i4_nothing_changes_before_all_is_checked},
};

const uint32_t n_trace_cell = SW_ARRAY_SIZE(trace_cell);
