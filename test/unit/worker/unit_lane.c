/* unit_lane.c - one lane of two; the test plays the other lane.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/faults.h"
#include "sum/sum.h"
#include "test/support/worker_rig.h"

#include <stdlib.h>

enum { STRIPE = SW_STRIPE_CHUNKS, TWO_STRIPES = 2 * STRIPE * PEER_CHUNK };

static struct worker_rig rig;
static struct sw_lane *lane;

static struct worker_rig *open_lane(uint8_t lane_i)
{
	assert_non_null(lane = aligned_alloc(64, sizeof(*lane)));
	wrig_open_lane(&rig, lane, lane_i, 1);
	return &rig;
}

static void close_lane(struct worker_rig *r)
{
	wrig_close(r);
	free(lane);
}

/* --- lane 0; the test is lane 1 --- */

static void expect_silence(void)
{
	assert_false(sw_lane_has_commands(lane));
	assert_false(sw_lane_has_reports(lane));
}

static struct sw_wtensor theirs = {
	.life = &theirs.own_life}; /* the tensor at lane 1 */

static void say(struct worker_rig *r, uint32_t bits)
{
	lane->theirs = &theirs;
	atomic_fetch_or(&lane->reports.bits, bits);
	assert_true(sw_worker_take(&r->w));
}

/* Let lane 1 report that it has completed @round. */
static void say_done(struct worker_rig *r, uint32_t round)
{
	theirs.said_round = round;
	sw_flags_raise(&lane->reports.tensors, 0);
	assert_true(sw_worker_take(&r->w));
}

static void to_status(struct worker_rig *r)
{
	assert_string_equal(wrig_tx(r), "s0 HELLO");
	peer_cookie(&r->s[0]);
	wrig_tx(r);
	peer_accept(&r->s[0]);
	peer_status(&r->s[0], SW_JOB_RUNNING, 0, 2, "");
}

static void to_running(struct worker_rig *r)
{
	to_status(r);
	wrig_hear(&lane->commands, SW_LANE_START | SW_LANE_SETTLE);
	assert_int_equal(r->w.payload_bytes, PEER_PAYLOAD);
	say(r, SW_LANE_JOINED);
	wrig_tx(r);
	assert_string_equal(wrig_events(r), "running");
}

static void declare(struct worker_rig *r, uint64_t n_elems)
{
	struct sw_worker_tensor t = {.name = "t",
		.n_elems = n_elems,
		.dtype = SW_I32,
		.base = r->data[0]};

	assert_int_equal(sw_worker_declare(&r->w, &t, 1), 0);
	wrig_tx(r);
	expect_silence();
	peer_declared(&r->s[0]);
}

static void to_declared(struct worker_rig *r, uint64_t n_elems)
{
	to_running(r);
	declare(r, n_elems);
	wrig_hear(&lane->commands, SW_LANE_DECLARE);
	assert_int_equal(lane->n_wanted, 1);
	say(r, SW_LANE_DECLARED);
	wrig_tx(r);
	assert_string_equal(wrig_events(r), "declared");
}

static void hear__runs_when_all_lanes_do(void **state)
{
	struct worker_rig *r = open_lane(0);

	to_status(r);
	assert_string_equal(wrig_events(r), "");
	wrig_hear(&lane->commands, SW_LANE_START | SW_LANE_SETTLE);
	assert_int_equal(r->w.epoch, 9);
	assert_int_equal(r->w.size, 2);
	say(r, SW_LANE_JOINED);
	assert_string_equal(wrig_events(r), "running");
	assert_int_equal(sw_worker_take(&r->w), 0);
	close_lane(r);
}

static void hear__admitted_when_all_lanes_have(void **state)
{
	struct worker_rig *r = open_lane(0);
	struct sw_worker_tensor more = {.name = "more",
		.n_elems = 1,
		.dtype = SW_I32,
		.base = r->data[1]};

	to_running(r);
	declare(r, TWO_STRIPES);
	assert_string_equal(wrig_events(r), "");
	assert_int_equal(sw_worker_push(&r->w, 0, 0, 0), SW_EAGAIN);
	assert_int_equal(sw_worker_declare(&r->w, &more, 1), SW_EBUSY);
	wrig_hear(&lane->commands, SW_LANE_DECLARE);
	say(r, SW_LANE_DECLARED);
	assert_string_equal(wrig_events(r), "declared");
	assert_int_equal(sw_worker_push(&r->w, 0, 0, 0), 0);
	close_lane(r);
}

/* After the job has failed, a late message of the other lane admits nothing. */
static void hear__admitted_too_late(void **state)
{
	struct worker_rig *r = open_lane(0);

	to_running(r);
	declare(r, TWO_STRIPES);
	sw_worker_fail(&r->w, SW_ESERVER, SW_KEY_NONE, "gone");
	assert_contains(wrig_events(r), "failed SW_ESERVER gone");
	say(r, SW_LANE_DECLARED);
	assert_string_equal(wrig_events(r), "");
	close_lane(r);
}

/* Each lane has one stripe: the round ends when the later lane completes. */
static void hear__done_when_all_lanes_are(void **state)
{
	struct worker_rig *r = open_lane(0);

	theirs = (struct sw_wtensor){.life = &theirs.own_life, .weight = 2};
	to_declared(r, TWO_STRIPES);
	for (uint32_t round = 1; round <= 2; round++) {
		assert_int_equal(sw_worker_push(&r->w, 0, 40 + round, 7), 0);
		wrig_hear_of(&lane->commands);
		wrig_tx(r);
		if (round == 1)
			say_done(r, round);
		for (uint32_t c = 0; c < STRIPE; c++) {
			assert_string_equal(wrig_events(r), "");
			assert_int_equal(r->w.n_open, 1);
			peer_result(&r->s[0], 0, round, c, 1);
		}
		if (round == 2)
			say_done(r, round);
		assert_string_equal(wrig_events(r), "done t0 #7 SW_OK w2");
		assert_int_equal(r->w.n_open, 0);
		wrig_tx(r);
	}
	assert_int_equal(r->w.stats.push_folded, 2 * STRIPE);
	close_lane(r);
}

/* The tensor died while another lane still had chunks of it: late frames cause
 * no PUSH, and the call ends when that lane has finished. */
static void hear__a_result_after_the_death(void **state)
{
	struct worker_rig *r = open_lane(0);
	const struct sw_fault why = {.err = SW_EMISMATCH, .text = "t: differs"};

	theirs = (struct sw_wtensor){.life = &theirs.own_life};
	to_declared(r, TWO_STRIPES);
	assert_int_equal(sw_worker_push(&r->w, 0, 1, 7), 0);
	wrig_hear_of(&lane->commands);
	wrig_tx(r);
	peer_send(&r->s[0],
		(struct sw_header){
			.type = SW_END, .round = 1, .payload_len = sizeof(why)},
		&why);
	wrig_hear_of(&lane->commands);
	peer_result(&r->s[0], 0, 1, 0, 1);
	peer_answer(&r->s[0], SW_ANSWER_NEED, 0, 1, 1, 0);
	assert_null(strstr(wrig_tx(r), "PUSH"));
	assert_int_equal(r->w.sched.credit, r->w.sched.limit);
	say_done(r, 1);
	assert_string_equal(wrig_events(r), "done t0 #7 SW_EMISMATCH w0");
	assert_int_equal(r->w.n_open, 0);
	close_lane(r);
}

static void hear__lane_saw_an_edited_buffer(void **state)
{
	struct worker_rig *r = open_lane(0);

	to_declared(r, TWO_STRIPES);
	assert_int_equal(sw_worker_push(&r->w, 0, 0, 7), 0);
	wrig_tx(r);
	for (uint32_t c = 0; c < STRIPE; c++)
		peer_result(&r->s[0], 0, 1, c, 1);
	theirs = (struct sw_wtensor){
		.life = &theirs.own_life, .weight = 2, .is_edited = true};
	say_done(r, 1);
	assert_string_equal(wrig_events(r), "done t0 #7 SW_ECORRUPT w2");
	close_lane(r);
}

/* Lane 1 learned that the tensor is dead and then ended its round; lane 0 takes
 * one flag for both. */
static void hear__a_death_and_the_end_at_once(void **state)
{
	struct worker_rig *r = open_lane(0);
	const struct sw_fault why = {.err = SW_EMISMATCH, .text = "t: differs"};

	theirs = (struct sw_wtensor){.life = &theirs.own_life};
	to_declared(r, TWO_STRIPES);
	assert_int_equal(sw_worker_push(&r->w, 0, 1, 7), 0);
	wrig_hear_of(&lane->commands);
	sw_wtensor_blame(&theirs, &why);
	theirs.own_life.from = 1;
	say_done(r, 1);
	assert_string_equal(wrig_events(r), "done t0 #7 SW_EMISMATCH w0");
	assert_int_equal(r->w.tensors[0].busy_lanes, 0);
	assert_int_equal(r->w.n_open, 0);
	close_lane(r);
}

/* A flag without news has no effect before, during and after the round. */
static void hear__nothing_new(void **state)
{
	struct worker_rig *r = open_lane(0);

	theirs = (struct sw_wtensor){.life = &theirs.own_life, .weight = 2};
	to_declared(r, TWO_STRIPES);
	say_done(r, 0);
	assert_int_equal(sw_worker_push(&r->w, 0, 1, 7), 0);
	wrig_tx(r);
	say_done(r, 0);
	assert_int_equal(r->w.tensors[0].busy_lanes, 1);
	say_done(r, 1);
	say_done(r, 1);
	assert_int_equal(r->w.tensors[0].busy_lanes, 0);
	assert_string_equal(wrig_events(r), "");
	for (uint32_t c = 0; c < STRIPE; c++)
		peer_result(&r->s[0], 0, 1, c, 1);
	assert_string_equal(wrig_events(r), "done t0 #7 SW_OK w2");
	assert_int_equal(sw_worker_push(&r->w, 0, 2, 7), 0);
	say_done(r, 1); /* about the previous round */
	assert_int_equal(r->w.tensors[0].busy_lanes, 1);
	close_lane(r);
}

/* If only lane 0's server has chunks of a tensor, lane 0 sends no message. */
static void begin__only_lanes_that_have_chunks(void **state)
{
	struct worker_rig *r = open_lane(0);

	to_declared(r, 3);
	assert_int_equal(sw_worker_push(&r->w, 0, 0, 7), 0);
	expect_silence();
	close_lane(r);
}

static void hear__a_lane_fails(void **state)
{
	struct worker_rig *r = open_lane(0);

	to_declared(r, TWO_STRIPES);
	assert_int_equal(sw_worker_push(&r->w, 0, 0, 7), 0);
	wrig_hear_of(&lane->commands);
	wrig_tx(r);
	lane->fault = (struct sw_fault){.err = SW_ENOMEM,
		.key = SW_KEY_NONE,
		.text = "no memory at lcore 1"};
	say(r, SW_LANE_FAILED);
	say(r, SW_LANE_LEFT);
	assert_string_equal(wrig_events(r), "done t0 #7 SW_ENOMEM w0; failed "
					    "SW_ENOMEM no memory at lcore 1");
	wrig_hear(&lane->commands, SW_LANE_LEAVE);
	assert_int_equal(r->w.fault.err, SW_ENOMEM);
	assert_string_equal(
		wrig_tx(r), "s0 LEAVE SW_ENOMEM no memory at lcore 1");
	close_lane(r);
}

/* After the job's end a late completion is ignored. */
static void hear__done_after_the_end(void **state)
{
	struct worker_rig *r = open_lane(0);

	to_declared(r, TWO_STRIPES);
	assert_int_equal(sw_worker_push(&r->w, 0, 0, 7), 0);
	sw_worker_leave(&r->w, NULL);
	assert_string_equal(wrig_events(r), "done t0 #7 SW_ECLOSED w0");
	say_done(r, 1);
	assert_string_equal(wrig_events(r), "");
	close_lane(r);
}

static void leave__left_when_all_lanes_have(void **state)
{
	struct worker_rig *r = open_lane(0);

	to_running(r);
	sw_worker_leave(&r->w, NULL);
	wrig_hear(&lane->commands, SW_LANE_LEAVE);
	wrig_tx(r);
	peer_left(&r->s[0], true);
	wrig_tick(r, 5 * SW_S);
	assert_string_equal(wrig_events(r), "");
	say(r, SW_LANE_LEFT);
	wrig_tick(r, SW_MS);
	assert_string_equal(wrig_events(r), "left");
	close_lane(r);
}

static void hear__one_line_at_a_time(void **state)
{
	struct worker_rig *r = open_lane(0);

	to_running(r);
	strcpy(lane->line, "waiting for somebody");
	atomic_store(&lane->has_line, true);
	assert_int_equal(sw_worker_take(&r->w), 0);
	assert_string_equal(wrig_events(r), "running waiting for somebody");
	assert_false(atomic_load(&lane->has_line));
	assert_int_equal(sw_worker_take(&r->w), 0);
	assert_string_equal(wrig_events(r), "");
	close_lane(r);
}

/* --- lane 1; the test is lane 0 --- */

static void order(struct worker_rig *r, uint32_t bits)
{
	atomic_fetch_or(&lane->commands.bits, bits);
	assert_true(sw_worker_take(&r->w));
}

/* The tensor at lane 0, as it is once it has its key. */
static struct sw_local local;
static struct sw_wtensor other;

static void order_round(struct worker_rig *r, uint32_t round)
{
	other.said_round = round;
	sw_flags_raise(&lane->commands.tensors, 0);
	assert_true(sw_worker_take(&r->w));
}

static void start_other(struct worker_rig *r)
{
	r->zero.epoch = 9;
	r->zero.joined = 3;
	r->zero.size = 8;
	r->zero.first = 6;
	r->zero.payload_bytes = PEER_PAYLOAD;
	order(r, SW_LANE_START | SW_LANE_SETTLE);
	assert_string_equal(wrig_tx(r), "s1 HELLO");
	peer_cookie(&r->s[1]);
	wrig_tx(r);
	peer_accept(&r->s[1]);
	wrig_hear(&lane->reports, SW_LANE_JOINED);
	wrig_tx(r);
}

static void key_other(struct worker_rig *r)
{
	local.from = (const uint8_t *)r->data[0];
	other = (struct sw_wtensor){.key = 5,
		.life = &other.own_life,
		.decl = {.name = "t",
			.n_elems = TWO_STRIPES,
			.dtype = SW_I32,
			.base = r->data[0]},
		.locals = &local,
		.n_ready = TWO_STRIPES / PEER_CHUNK,
		.name = "t"};
	r->zero.tensors = &other;
}

static void declare_other(struct worker_rig *r)
{
	key_other(r);
	wrig_build_lane(r, 1);
	lane->n_wanted = 1;
	order(r, SW_LANE_DECLARE);
	assert_string_equal(wrig_tx(r), "s1 DECLARE t");
	peer_declared(&r->s[1]);
	assert_string_equal(wrig_tx(r), "s1 KEEPALIVE");
	wrig_hear(&lane->reports, SW_LANE_DECLARED);
}

static void order__a_job_from_start_to_end(void **state)
{
	struct worker_rig *r = open_lane(1);
	struct sw_join j;

	wrig_tick(r, 100 * SW_S); /* only lane 0 has a time limit for this */
	assert_string_equal(wrig_tx(r), "");
	start_other(r);
	memcpy(&j, r->last[SW_JOIN].bytes + SW_HEAD_BYTES, sizeof(j));
	assert_int_equal(j.epoch, 9);
	assert_int_equal(j.first, 7);
	declare_other(r);
	other.step = 3;
	order_round(r, 1);
	assert_int_equal(r->w.tensors[0].step, 3);
	assert_memory_equal(wrig_tx(r), "s1 PUSH k5 r1 c64 +1344; s1 PUSH", 32);
	assert_int_equal(r->w.stats.push_folded, STRIPE);
	for (uint32_t c = STRIPE; c < 2 * STRIPE; c++) {
		assert_false(sw_lane_has_reports(lane));
		peer_result(&r->s[1], 5, 1, c, 1);
	}
	wrig_hear_of(&lane->reports);
	assert_int_equal(r->w.tensors[0].said_round, 1);
	assert_int_equal(r->w.tensors[0].weight, 2);
	assert_false(r->w.tensors[0].is_edited);
	wrig_tx(r);
	order(r, SW_LANE_LEAVE);
	assert_string_equal(wrig_tx(r), "s1 LEAVE");
	peer_left(&r->s[1], true);
	wrig_hear(&lane->reports, SW_LANE_LEFT);
	/* only lane 0 reports this event */
	assert_string_equal(wrig_events(r), "");
	close_lane(r);
}

/* Another lane may wait for a dead server and name it at its own limit, so a
 * lane that has joined must not give up earlier without a name. */
static void order__who_has_joined_waits(void **state)
{
	static const uint8_t zeros[PEER_PAYLOAD];
	struct worker_rig *r = open_lane(1);

	r->w.params.dead_after = 10000 * SW_S;
	r->zero.epoch = 9;
	r->zero.joined = 3;
	r->zero.size = 8;
	order(r, SW_LANE_START);
	assert_string_equal(wrig_tx(r), "s1 HELLO");
	peer_cookie(&r->s[1]);
	wrig_tx(r);
	peer_accept(&r->s[1]);
	assert_contains(wrig_tx(r), "s1 PROBE +1344");
	peer_say(&r->s[1], SW_PROBE, zeros, sizeof(zeros));
	wrig_hear(&lane->reports, SW_LANE_JOINED);
	wrig_tick(r, 2 * r->params.join_timeout);
	assert_int_equal(r->w.state, SW_WORKER_JOINING);
	assert_false(sw_lane_has_reports(lane));
	close_lane(r);
}

static void order__leave_before_start(void **state)
{
	struct worker_rig *r = open_lane(1);

	order(r, SW_LANE_LEAVE);
	wrig_tick(r, SW_MS);
	wrig_hear(&lane->reports, SW_LANE_LEFT);
	assert_string_equal(wrig_tx(r), "");
	close_lane(r);
}

static void order__what_comes_after_a_failure(void **state)
{
	struct worker_rig *r = open_lane(1);

	start_other(r);
	declare_other(r);
	/* not an answer to a JOIN, so it is ignored */
	peer_refuse(&r->s[1], 0, "");
	sw_worker_fail(&r->w, SW_ESERVER, SW_KEY_NONE, "server other is gone");
	assert_true(sw_worker_take(&r->w));
	wrig_hear(&lane->reports, SW_LANE_FAILED);
	assert_int_equal(lane->fault.err, SW_ESERVER);
	assert_string_equal(lane->fault.text, "server other is gone");
	order_round(r, 1);
	lane->n_wanted = 2;
	order(r, SW_LANE_DECLARE);
	order(r, SW_LANE_LEAVE);
	assert_int_equal(r->w.n_open, 0);
	assert_false(sw_lane_has_reports(lane));
	wrig_tick(r, 3 * SW_S);
	wrig_hear(&lane->reports, SW_LANE_LEFT);
	close_lane(r);
}

/* Let lane 0 kill the tensor. */
static void kill_other(void)
{
	const struct sw_fault why = {.err = SW_EMISMATCH, .text = "t: differs"};

	sw_wtensor_blame(&other, &why);
	other.own_life.from = 1;
}

/* Lane 0 has begun a round and then killed the tensor; one flag stands for
 * both. Another flag without news has no effect. */
static void order__a_round_and_a_death_at_once(void **state)
{
	struct worker_rig *r = open_lane(1);

	start_other(r);
	declare_other(r);
	kill_other();
	for (uint32_t i = 0; i < 2; i++) {
		order_round(r, 1);
		assert_null(strstr(wrig_tx(r), "PUSH"));
		assert_int_equal(r->w.n_open, 0);
		assert_int_equal(r->w.tensors[0].round, 1);
		assert_int_equal(r->w.tensors[0].said_round, 1);
		assert_int_equal(r->w.tensors[0].own_life.from, 1);
	}
	close_lane(r);
}

/* Lane 0 has killed the tensor and leaves. The server must get END before
 * LEAVE; otherwise it would tell the others that we left. */
static void order__a_death_and_leave_at_once(void **state)
{
	struct worker_rig *r = open_lane(1);
	const char *sent;

	start_other(r);
	declare_other(r);
	kill_other();
	sw_flags_raise(&lane->commands.tensors, 0);
	order(r, SW_LANE_LEAVE);
	assert_int_equal(sw_worker_end_of(&r->w), SW_ECLOSED);
	sent = wrig_tx(r);
	assert_memory_equal(sent, "s1 END", 6);
	assert_null(strstr(sent, "LEAVE"));
	close_lane(r);
}

/* A turn takes 32 tensors, and LEAVE only after all of them. */
static void order__leave_after_many_tensors(void **state)
{
	struct worker_rig *r = open_lane(1);

	start_other(r);
	declare_other(r);
	for (uint32_t i = 0; i < 33; i++)
		sw_flags_raise(&lane->commands.tensors, i);
	order(r, SW_LANE_LEAVE);
	assert_int_equal(sw_worker_end_of(&r->w), 0);
	assert_true(sw_worker_take(&r->w));
	assert_int_equal(sw_worker_end_of(&r->w), SW_ECLOSED);
	close_lane(r);
}

/* Lane 0's flag for a tensor that is not declared here yet is dropped. The
 * later declaration reads lane 0's state instead. */
static void order__a_death_before_it_is_known(void **state)
{
	struct worker_rig *r = open_lane(1);

	start_other(r);
	key_other(r);
	wrig_build_lane(r, 1);
	kill_other();
	sw_flags_raise(&lane->commands.tensors, 0);
	assert_int_equal(sw_worker_take(&r->w), 1);
	assert_int_equal(r->w.tensors[0].life->from, 0);
	lane->n_wanted = 1;
	order(r, SW_LANE_DECLARE);
	assert_int_equal(r->w.tensors[0].life->from, 1);
	assert_int_equal(sw_wtensor_why(&r->w.tensors[0])->err, SW_EMISMATCH);
	close_lane(r);
}

/* Let lane 0 set tuning. */
static void set_other(uint64_t part, uint64_t credit)
{
	atomic_store(
		&lane->tuning.policy, &sw_policies[SW_POLICY_BYTESCHEDULER]);
	atomic_store(&lane->tuning.part_bytes, part);
	atomic_store(&lane->tuning.credit_bytes, credit);
	atomic_fetch_or(&lane->commands.bits, SW_LANE_TUNING);
}

/* Lane 1 declares a limited number of built tensors per turn, and takes lane
 * 0's commands in between. */
static void order__declare_some_in_each_turn(void **state)
{
	enum { N = 600, SOME = 300 };
	static struct sw_wtensor many[N];

	for (uint32_t is_left = 0; is_left < 2; is_left++) {
		struct worker_rig *r = open_lane(1);

		start_other(r);
		key_other(r);
		for (uint32_t i = 0; i < N; i++) {
			many[i] = other;
			many[i].key = i;
		}
		r->zero.tensors = many;
		wrig_build_lane(r, N);
		assert_int_equal(r->w.n_tensors, 0);
		lane->n_wanted = N;
		order(r, SW_LANE_DECLARE);
		assert_in_range(r->w.n_tensors, 1, SOME);
		if (is_left) {
			order(r, SW_LANE_LEAVE);
			sw_worker_take(&r->w);
			assert_in_range(r->w.n_tensors, 1, SOME);
			close_lane(r);
			continue;
		}
		assert_string_equal(wrig_tx(r), "");
		while (r->w.n_tensors < N)
			assert_in_range(sw_worker_take(&r->w), 1, SOME);
		assert_memory_equal(wrig_tx(r), "s1 DECLARE t t t", 16);
		assert_int_equal(sw_worker_take(&r->w), 0);
		close_lane(r);
	}
}

/* Tuning that lane 0 set before it ordered a round applies to that round. */
static void order__tuning_before_a_round(void **state)
{
	struct worker_rig *r = open_lane(1);

	start_other(r);
	declare_other(r);
	set_other(2048, 16384);
	order_round(r, 1);
	assert_int_equal(r->w.sched.part_bytes, 2048);
	assert_int_equal(r->w.sched.limit, 8192); /* half of the job's credit */
	assert_int_equal(sw_worker_take(&r->w), 0);
	set_other(4096, 0);
	assert_int_equal(sw_worker_take(&r->w), 1);
	assert_int_equal(r->w.sched.part_bytes, 4096);
	close_lane(r);
}

/* A policy that lane 0 set before a round applies to that round. */
static void order__policy_before_a_round(void **state)
{
	struct worker_rig *r = open_lane(1);

	start_other(r);
	declare_other(r);
	atomic_store(&lane->tuning.policy, &sw_policies[SW_POLICY_FIFO]);
	atomic_fetch_or(&lane->commands.bits, SW_LANE_TUNING);
	order_round(r, 1);
	assert_contains(wrig_tx(r), "PUSH k5 r1");
	assert_int_equal(r->last[SW_PUSH].h.class, 7);
	close_lane(r);
}

static void set_tuning__all_lanes(void **state)
{
	struct worker_rig *r = open_lane(0);

	to_running(r);
	assert_int_equal(sw_worker_set_tuning(&r->w, 2048, 16384), 0);
	assert_int_equal(r->w.sched.limit, 8192);
	wrig_hear(&lane->commands, SW_LANE_TUNING);
	assert_int_equal(atomic_load(&lane->tuning.part_bytes), 2048);
	assert_int_equal(atomic_load(&lane->tuning.credit_bytes), 16384);
	assert_int_equal(sw_worker_set_tuning(&r->w, 1, 0), SW_EINVAL);
	assert_int_equal(sw_worker_set_tuning(&r->w, 0, 1), SW_EINVAL);
	expect_silence();
	close_lane(r);
}

/* A late lane gets the last tuning values, and no other command is lost. */
static void set_tuning__without_number(void **state)
{
	struct worker_rig *r = open_lane(0);

	to_running(r);
	for (uint32_t i = 1; i <= 50000; i++)
		assert_int_equal(
			sw_worker_set_tuning(&r->w, 64 * (i + 64), 0), 0);
	sw_worker_leave(&r->w, NULL);
	assert_int_equal(
		atomic_load(&lane->tuning.part_bytes), 64 * (50000 + 64));
	wrig_hear(&lane->commands, SW_LANE_LEAVE | SW_LANE_TUNING);
	expect_silence();
	close_lane(r);
}

/* The job's credit is divided among the lanes. */
static void open__credit(void **state)
{
	struct worker_rig *r = open_lane(1);

	assert_int_equal(r->w.sched.limit, (4 << 20) / 2);
	close_lane(r);
	wrig_open(r, 0, 2, 2);
	assert_int_equal(r->w.sched.limit, 4 << 20);
	wrig_close(r);
}

static void open__impossible(void **state)
{
	struct worker_rig *r = open_lane(0);
	struct sw_worker_server servers[2] = {{.name = "a"}, {.name = "b"}};
	struct sw_worker_job good = {.job = "j",
		.node = "n",
		.n_members = 1,
		.n_local = 1,
		.servers = servers,
		.n_servers = 2,
		.n_lanes = 2,
		.lanes = lane};
	struct sw_worker_job bad[] = {good, good, good};
	struct sw_worker_events events = {0};
	struct sw_worker *w = calloc(1, sizeof(*w));
	struct sw_port *port = &r->port;

	bad[0].lane_i = 2;
	bad[1].n_lanes = 3; /* more lanes than servers */
	bad[2].lanes = NULL;
	for (uint32_t i = 0; i < SW_ARRAY_SIZE(bad); i++)
		assert_int_equal(sw_worker_open(w, &r->params, &r->env.env,
					 &events, &bad[i], &port, 1, SW_S),
			SW_EINVAL);
	free(w);
	close_lane(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hear__runs_when_all_lanes_do),
		cmocka_unit_test(hear__admitted_when_all_lanes_have),
		cmocka_unit_test(hear__admitted_too_late),
		cmocka_unit_test(hear__done_when_all_lanes_are),
		cmocka_unit_test(hear__a_result_after_the_death),
		cmocka_unit_test(hear__lane_saw_an_edited_buffer),
		cmocka_unit_test(hear__a_death_and_the_end_at_once),
		cmocka_unit_test(hear__nothing_new),
		cmocka_unit_test(begin__only_lanes_that_have_chunks),
		cmocka_unit_test(hear__a_lane_fails),
		cmocka_unit_test(hear__done_after_the_end),
		cmocka_unit_test(leave__left_when_all_lanes_have),
		cmocka_unit_test(hear__one_line_at_a_time),
		cmocka_unit_test(order__a_job_from_start_to_end),
		cmocka_unit_test(order__who_has_joined_waits),
		cmocka_unit_test(order__leave_before_start),
		cmocka_unit_test(order__what_comes_after_a_failure),
		cmocka_unit_test(order__a_round_and_a_death_at_once),
		cmocka_unit_test(order__a_death_and_leave_at_once),
		cmocka_unit_test(order__leave_after_many_tensors),
		cmocka_unit_test(order__a_death_before_it_is_known),
		cmocka_unit_test(order__declare_some_in_each_turn),
		cmocka_unit_test(order__tuning_before_a_round),
		cmocka_unit_test(order__policy_before_a_round),
		cmocka_unit_test(set_tuning__all_lanes),
		cmocka_unit_test(set_tuning__without_number),
		cmocka_unit_test(open__credit),
		cmocka_unit_test(open__impossible),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
