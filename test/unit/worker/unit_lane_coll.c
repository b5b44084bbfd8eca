/* unit_lane_coll.c - collectives of one lane of two; the test plays the other.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/worker/coll_rig.h"

#include <stdlib.h>

enum {
	ONE = PEER_CHUNK,                 /* elements of a chunk */
	BOTH = (SW_COLL_STRIPE + 1) * ONE /* of which lane 1 has one chunk */
};

static const uint16_t two_ranks[] = {0, 1};
static const struct sw_worker_tensor stream = {.name = "g/a",
	.window_log2 = SW_WINDOW_MAX_LOG2,
	.ranks = two_ranks,
	.n_ranks = 2};

static struct worker_rig rig;
static struct sw_lane *lane;

static struct worker_rig *open_lane(uint8_t lane_i)
{
	lane = aligned_alloc(64, sizeof(*lane));
	assert_non_null(lane);
	wrig_open_lane(&rig, lane, lane_i, 1);
	rig.s[0].grant = rig.s[1].grant = 1 << 19;
	return &rig;
}

static void close_lane(struct worker_rig *r)
{
	wrig_close(r);
	free(lane);
}

/* --- lane 0 --- */

static struct sw_wtensor theirs = {
	.life = &theirs.own_life}; /* the stream at lane 1 */

static void say(struct worker_rig *r, uint32_t bits)
{
	atomic_fetch_or(&lane->reports.bits, bits);
	assert_true(sw_worker_take(&r->w));
}

static void say_of(struct worker_rig *r)
{
	sw_flags_raise(&lane->reports.tensors, 0);
	assert_true(sw_worker_take(&r->w));
}

static struct worker_rig *open_zero(void)
{
	struct worker_rig *r = open_lane(0);

	wrig_tx(r);
	peer_cookie(&r->s[0]);
	wrig_tx(r);
	peer_accept(&r->s[0]);
	peer_status(&r->s[0], SW_JOB_RUNNING, 0, 2, "");
	wrig_hear(&lane->commands, SW_LANE_START | SW_LANE_SETTLE);
	theirs = (struct sw_wtensor){.life = &theirs.own_life};
	lane->theirs = &theirs;
	say(r, SW_LANE_JOINED);
	wrig_tx(r);
	assert_int_equal(sw_worker_declare(&r->w, &stream, 1), 0);
	wrig_tx(r);
	peer_declared(&r->s[0]);
	wrig_hear(&lane->commands, SW_LANE_DECLARE);
	say(r, SW_LANE_DECLARED);
	wrig_tx(r);
	wrig_events(r);
	return r;
}

static struct sw_stream_lane *masks(const struct worker_rig *r)
{
	return &r->w.tensors[0].stream->lanes[0];
}

/* Send the results of lane 0's chunks of the first collective. */
static void sum_ours(struct worker_rig *r)
{
	struct sw_header h;

	wrig_tx(r);
	for (uint32_t j = 1; j <= SW_COLL_STRIPE; j++) {
		h = peer_result_header(0, j, 1, ONE);
		h.op = sw_coll_op(SW_ALL_REDUCE, SW_ROUND_SUM);
		h.aux = 1;
		peer_fill(&r->s[0], h, 7);
	}
}

/* Any number of begun collectives raise the flag only once until it is
 * taken. */
static void begin__one_flag(void **state)
{
	struct worker_rig *r = open_zero();

	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(submit(r, SW_ALL_REDUCE, BOTH, i), 0);
	wrig_hear_of(&lane->commands);
	assert_false(sw_lane_has_commands(lane));
	assert_int_equal(atomic_exchange(&masks(r)->begun, 0), 7);
	assert_int_equal(submit(r, SW_ALL_REDUCE, BOTH, 3), 0);
	wrig_hear_of(&lane->commands);
	assert_int_equal(masks(r)->begun, 8);
	close_lane(r);
}

static void begin__only_lanes_that_have_chunks(void **state)
{
	struct worker_rig *r = open_zero();

	assert_int_equal(submit(r, SW_ALL_REDUCE, ONE, 0), 0);
	assert_false(sw_lane_has_commands(lane));
	assert_int_equal(masks(r)->begun, 0);
	close_lane(r);
}

static void done__when_all_lanes_are(void **state)
{
	for (uint32_t is_edited = 0; is_edited < 2; is_edited++) {
		struct worker_rig *r = open_zero();

		assert_int_equal(submit(r, SW_ALL_REDUCE, BOTH, 7), 0);
		if (!is_edited)
			sum_ours(r);
		assert_string_equal(wrig_events(r), "");
		masks(r)->done = 1;
		masks(r)->weights[0] = 2;
		masks(r)->are_edited[0] = is_edited;
		say_of(r);
		assert_int_equal(masks(r)->done, 0);
		if (is_edited)
			sum_ours(r);
		assert_string_equal(
			wrig_events(r), is_edited ? "done t0 #7 SW_ECORRUPT w2"
						  : "done t0 #7 SW_OK w2");
		close_lane(r);
	}
}

/* Buffers are returned only when the other lane has released them. */
static void dead__when_all_lanes_have_released_it(void **state)
{
	struct worker_rig *r = open_zero();

	assert_int_equal(submit(r, SW_ALL_REDUCE, BOTH, 7), 0);
	wrig_hear_of(&lane->commands);
	sw_worker_abort(&r->w, 0, 0, SW_EABORTED, "enough");
	assert_true(sw_worker_take(&r->w));
	wrig_hear_of(&lane->commands);
	assert_int_equal(r->w.tensors[0].own_life.from, 1);
	assert_int_equal(sw_worker_take(&r->w), 0);
	/* the other lane completed it before it heard of the abort */
	masks(r)->done = 1;
	say_of(r);
	assert_string_equal(wrig_events(r), "");
	theirs.own_life.step = SW_LIFE_RELEASED;
	say_of(r);
	assert_true(sw_worker_take(&r->w));
	assert_string_equal(wrig_events(r), "done t0 #7 SW_EABORTED w0");
	close_lane(r);
}

/* A lane ends no closed group, so it must hear that the group is dead before,
 * or together with, the news that it is closed. */
static void close__is_said_after_the_death(void **state)
{
	struct worker_rig *r = open_zero();
	const struct sw_life *said = &r->w.tensors[0].own_life;

	assert_int_equal(submit(r, SW_ALL_REDUCE, BOTH, 7), 0);
	wrig_hear_of(&lane->commands);
	sw_worker_close_group(&r->w, 0, 0);
	assert_false(said->is_closed && !said->from);
	assert_true(sw_worker_take(&r->w));
	wrig_hear_of(&lane->commands);
	assert_int_equal(said->from, 1);
	assert_true(said->is_closed);
	theirs.own_life.step = SW_LIFE_RELEASED;
	say_of(r);
	assert_true(sw_worker_take(&r->w));
	assert_string_equal(wrig_events(r), "done t0 #7 SW_EABORTED w0");
	close_lane(r);
}

/* CLOSE waits until all lanes have forgotten the group, because the coordinator
 * may then reuse its indices. */
static void close__when_all_lanes_have_forgotten_it(void **state)
{
	struct worker_rig *r = open_zero();

	sw_worker_close_group(&r->w, 0, 0);
	wrig_hear_of(&lane->commands);
	sw_worker_take(&r->w);
	assert_null(strstr(wrig_tx(r), "CLOSE"));
	theirs.own_life.step = SW_LIFE_FORGOTTEN;
	sw_worker_take(&r->w);
	assert_non_null(strstr(wrig_tx(r), "CLOSE"));
	close_lane(r);
}

/* A mismatch that the other lane's server reported is proposed to the
 * coordinator. */
static void dead__as_the_coordinator_says(void **state)
{
	struct worker_rig *r = open_zero();

	sw_wtensor_blame(&theirs,
		&(struct sw_fault){.err = SW_EMISMATCH, .text = "differs"});
	assert_int_equal(submit(r, SW_ALL_REDUCE, BOTH, 7), 0);
	wrig_tx(r);
	say_of(r);
	assert_int_equal(sw_worker_death(&r->w, 0), 0);
	wrig_tick(r, 0);
	assert_contains(wrig_tx(r), "s0 END k0 r1 differs");
	close_lane(r);
}

/* --- lane 1 --- */

static struct sw_wtensor zero;
static struct sw_stream *zeros;
static struct sw_stream_lane between;
static struct sw_coll_local local;

static void order(struct worker_rig *r, uint32_t bits)
{
	atomic_fetch_or(&lane->commands.bits, bits);
	assert_true(sw_worker_take(&r->w));
}

static void order_of(struct worker_rig *r)
{
	sw_flags_raise(&lane->commands.tensors, 0);
	assert_true(sw_worker_take(&r->w));
}

static struct worker_rig *open_other(void)
{
	struct worker_rig *r = open_lane(1);

	zeros = calloc(1, sizeof(*zeros));
	assert_non_null(zeros);
	between = (struct sw_stream_lane){0};
	zeros->lanes = &between;
	zero = (struct sw_wtensor){.key = 5,
		.first = 5,
		.life = &zero.own_life,
		.decl = stream,
		.stream = zeros};
	local = (struct sw_coll_local){
		.from = (uint8_t *)r->data[0], .to = (uint8_t *)r->data[0]};
	r->zero.tensors = &zero;
	r->zero.epoch = 9;
	r->zero.size = 2;
	for (uint16_t m = 0; m <= 2; m++)
		r->zero.firsts[m] = m;
	r->zero.payload_bytes = PEER_PAYLOAD;
	order(r, SW_LANE_START | SW_LANE_SETTLE);
	wrig_tx(r);
	peer_cookie(&r->s[1]);
	wrig_tx(r);
	peer_accept(&r->s[1]);
	wrig_hear(&lane->reports, SW_LANE_JOINED);
	wrig_build_lane(r, 1);
	lane->n_wanted = 1;
	order(r, SW_LANE_DECLARE);
	wrig_tx(r);
	peer_declared(&r->s[1]);
	wrig_hear(&lane->reports, SW_LANE_DECLARED);
	wrig_tx(r);
	return r;
}

static void close_other(struct worker_rig *r)
{
	free(zeros);
	close_lane(r);
}

/* Let lane 0 begin its collective @number with one chunk at our server. */
static void begin(struct worker_rig *r, uint32_t number)
{
	uint32_t at = (number - 1) % SW_COLLS;

	zeros->colls[at] = (struct sw_coll){.ask = ask_of(r, SW_ALL_REDUCE, 1),
		.locals = &local,
		.number = number,
		.turn = number - 1,
		.first = SW_STRIPE_CHUNKS};
	between.begun |= 1ULL << at;
}

static void sum_one(struct worker_rig *r, uint32_t j, uint32_t number)
{
	struct sw_header h = peer_result_header(5, j, number, 1);

	h.op = sw_coll_op(SW_ALL_REDUCE, SW_ROUND_SUM);
	h.aux = 1;
	peer_fill(&r->s[1], h, 7);
}

/* Collectives start in the order of their turns, not of their places. */
static void order__colls_in_their_order(void **state)
{
	struct worker_rig *r = open_other();

	begin(r, SW_COLLS + 1);
	begin(r, SW_COLLS - 1);
	order_of(r);
	assert_int_equal(between.begun, 0);
	assert_string_equal(
		wrig_tx(r), "s1 PUSH k5 r1 c63 +4; s1 PUSH k5 r2 c65 +4");
	sum_one(r, 2, SW_COLLS + 1);
	wrig_hear_of(&lane->reports);
	assert_int_equal(between.done, 1);
	assert_int_equal(between.weights[0], 2);
	sum_one(r, 1, SW_COLLS - 1);
	wrig_hear_of(&lane->reports);
	assert_int_equal(between.done, 1 | 1ULL << (SW_COLLS - 2));
	assert_int_equal(r->w.n_open, 0);
	assert_string_equal(wrig_events(r), "");
	close_other(r);
}

static void order__dead_is_released(void **state)
{
	struct worker_rig *r = open_other();

	begin(r, 1);
	order_of(r);
	wrig_tx(r);
	sw_wtensor_blame(&zero, &(struct sw_fault){.err = SW_EABORTED});
	zero.own_life.from = 1;
	order_of(r);
	sum_one(r, 1, 1);
	assert_int_not_equal(r->data[0][0], 7);
	assert_true(sw_worker_take(&r->w));
	wrig_hear_of(&lane->reports);
	assert_int_equal(r->w.tensors[0].own_life.step, SW_LIFE_RELEASED);
	assert_false(sw_lane_has_reports(lane));
	assert_int_equal(r->w.n_open, 0);
	begin(r, 2);
	order_of(r);
	assert_int_equal(r->w.n_open, 0);
	close_other(r);
}

/* A second death must not rewrite the first fault, because another lane may be
 * reading it. */
static void blame__rewrites_nothing(void **state)
{
	struct sw_wtensor t = {.life = &t.own_life};
	const struct sw_fault *first, *second;
	struct sw_fault was;

	(void)state;
	assert_int_equal(sw_wtensor_why(&t)->err, 0);
	sw_wtensor_blame(&t, &(struct sw_fault){.err = SW_EPEER, .text = "a"});
	first = sw_wtensor_why(&t);
	was = *first;
	sw_wtensor_blame(
		&t, &(struct sw_fault){.err = SW_EMISMATCH, .text = "b"});
	second = sw_wtensor_why(&t);
	assert_memory_equal(first, &was, sizeof(was));
	assert_int_equal(second->err, SW_EMISMATCH);
	was = *second;
	sw_wtensor_blame(&t, &(struct sw_fault){.err = SW_ESTALL});
	assert_ptr_equal(sw_wtensor_why(&t), second);
	assert_memory_equal(second, &was, sizeof(was));
}

/* Lane 1 reports a server's END once; lane 0 decides. */
static void hear__a_server_says_it_is_dead(void **state)
{
	const struct sw_fault why = {
		.err = SW_EMISMATCH, .key = 5, .text = "differs"};
	struct worker_rig *r = open_other();

	for (uint32_t i = 0; i < 2; i++)
		peer_send(&r->s[1],
			(struct sw_header){.type = SW_END,
				.round = 1,
				.payload_len = sizeof(why)},
			&why);
	wrig_hear_of(&lane->reports);
	assert_int_equal(r->w.tensors[0].own_life.from, 0);
	assert_false(sw_lane_has_reports(lane));
	assert_int_equal(sw_worker_death(&r->w, 0), 0);
	assert_string_equal(sw_wtensor_why(&lane->theirs[0])->text, "differs");
	assert_int_equal(sw_wtensor_why(&lane->theirs[0])->err, SW_EMISMATCH);
	close_other(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(begin__one_flag),
		cmocka_unit_test(begin__only_lanes_that_have_chunks),
		cmocka_unit_test(done__when_all_lanes_are),
		cmocka_unit_test(dead__when_all_lanes_have_released_it),
		cmocka_unit_test(dead__as_the_coordinator_says),
		cmocka_unit_test(close__is_said_after_the_death),
		cmocka_unit_test(close__when_all_lanes_have_forgotten_it),
		cmocka_unit_test(order__colls_in_their_order),
		cmocka_unit_test(order__dead_is_released),
		cmocka_unit_test(blame__rewrites_nothing),
		cmocka_unit_test(hear__a_server_says_it_is_dead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
