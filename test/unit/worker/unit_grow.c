/* unit_grow.c - tensors that are pushed while they grow, summed by granules.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "sum/sum.h"
#include "test/support/worker_rig.h"

#include <stdio.h>
#include <stdlib.h>

enum { CHUNKS = 200, BYTES = CHUNKS * PEER_PAYLOAD, GRANULES = 2, LOCAL = 2 };

static _Atomic uint32_t granules[GRANULES];
static int32_t parts[LOCAL][CHUNKS * PEER_CHUNK];

/* Open rank 0 of 2 members with a tensor whose first granule has 196 chunks;
 * the last of these is also in the second granule. */
static struct worker_rig *open_rig(uint16_t n_local)
{
	static struct worker_rig r;
	struct sw_worker_tensor d = {.name = "t",
		.n_elems = CHUNKS * PEER_CHUNK,
		.dtype = SW_I32,
		.granules = granules};

	memset((void *)granules, 0, sizeof(granules));
	wrig_open_local(&r, 0, 2, 1, n_local);
	r.s[0].grant = 1 << 19;
	r.s[0].n_local = n_local;
	wrig_run(&r);
	d.base = r.data[0];
	assert_int_equal(sw_worker_declare(&r.w, &d, 1), 0);
	wrig_tx(&r);
	peer_declared(&r.s[0]);
	wrig_tx(&r);
	assert_string_equal(wrig_events(&r), "declared");
	for (uint32_t i = 0; n_local > 1 && i < n_local; i++)
		sw_worker_source(&r.w, 0, i, parts[i]);
	return &r;
}

static int ask(struct worker_rig *r, uint32_t local, uint64_t lacks)
{
	return sw_worker_begin(&r->w,
		&(struct sw_worker_round){
			.local = local, .cookie = local, .lacks = lacks});
}

/* Return the number of missing bytes: @chunks chunks and @bytes of another
 * one. */
static uint64_t but(uint32_t chunks, uint64_t bytes)
{
	return (uint64_t)chunks * PEER_PAYLOAD + bytes;
}

/* Send everything that is due; return the number of chunks pushed since the
 * start. */
static uint32_t pushed(struct worker_rig *r)
{
	while (wrig_tx_one(r)[0])
		;
	return (uint32_t)r->w.stats.push_folded;
}

static void result(struct worker_rig *r, uint32_t round, uint32_t chunk)
{
	peer_result(&r->s[0], 0, round, chunk, 7);
}

/* Let time pass while the server sends signs of life. */
static void pass(struct worker_rig *r, uint32_t server, uint32_t seconds)
{
	struct sw_header h = {.type = SW_KEEPALIVE, .class = SW_CLASS_CTL};

	for (uint32_t i = 0; i < 10 * seconds; i++) {
		wrig_tick(r, 100 * SW_MS);
		peer_send(&r->s[server], h, NULL);
	}
}

static void settle(struct worker_rig *r)
{
	for (uint32_t n = 0; sw_worker_take(&r->w); n++)
		assert_true(n < 1000);
}

static void grow__pushes_what_is_there(void **state)
{
	struct worker_rig *r = open_rig(1);

	assert_int_equal(ask(r, 0, but(197, 4)), 0);
	assert_int_equal(pushed(r), 2);
	assert_int_equal(sw_worker_grow(&r->w, 0, 0, but(197, 0)), 0);
	assert_int_equal(pushed(r), 3);
	assert_int_equal(
		sw_worker_grow(&r->w, 0, 0, but(197, 0)), 0); /* repeated */
	assert_int_equal(pushed(r), 3);
	assert_int_equal(sw_worker_grow(&r->w, 0, 0, 4), 0);
	assert_int_equal(pushed(r), 199);
	for (uint32_t c = 0; c < 199; c++)
		result(r, 1, c);
	assert_string_equal(wrig_events(r), "");
	assert_int_equal(sw_worker_grow(&r->w, 0, 0, 0), 0);
	assert_int_equal(pushed(r), 200);
	result(r, 1, 199);
	assert_string_equal(wrig_events(r), "done t0 #0 SW_OK w2");
	/* the round has ended */
	assert_int_equal(sw_worker_grow(&r->w, 0, 0, 0), 0);
	assert_int_equal(r->data[0][CHUNKS * PEER_CHUNK - 1], 7);
	wrig_close(r);
}

static void grow__nothing_is_there_at_first(void **state)
{
	struct worker_rig *r = open_rig(1);

	assert_int_equal(ask(r, 0, BYTES), 0);
	assert_int_equal(pushed(r), 0);
	assert_int_equal(r->w.n_open, 1);
	assert_int_equal(sw_worker_grow(&r->w, 0, 0, 0), 0);
	assert_int_equal(pushed(r), CHUNKS);
	wrig_close(r);
}

/* Several times, all pushed chunks are folded before the tensor grows. */
static void grow__after_a_pause(void **state)
{
	struct worker_rig *r = open_rig(1);
	int64_t credit = r->w.sched.credit;

	for (uint32_t round = 1; round < 4; round++) {
		assert_int_equal(ask(r, 0, but(CHUNKS - 1, 0)), 0);
		for (uint32_t n = 1; n <= CHUNKS; n++) {
			assert_int_equal(pushed(r), (round - 1) * CHUNKS + n);
			result(r, round, n - 1);
			assert_int_equal(r->w.sched.credit, credit);
			assert_int_equal(
				sw_worker_grow(&r->w, 0, 0,
					but(CHUNKS - n - (n < CHUNKS), 0)),
				0);
		}
		assert_contains(wrig_events(r), "done t0 #0 SW_OK w2");
	}
	wrig_close(r);
}

static void grow__refuses(void **state)
{
	struct worker_rig *r = open_rig(1);

	assert_int_equal(ask(r, 0, BYTES + 4), SW_EINVAL);
	assert_int_equal(ask(r, 0, UINT64_MAX), SW_EINVAL);
	assert_int_equal(ask(r, 0, 2), SW_EINVAL);
	assert_int_equal(sw_worker_grow(&r->w, 0, 0, 0), 0); /* before a push */
	assert_int_equal(ask(r, 0, 400), 0);
	assert_int_equal(sw_worker_grow(&r->w, 0, 0, 404), SW_EINVAL);
	assert_int_equal(sw_worker_grow(&r->w, 0, 0, UINT64_MAX), SW_EINVAL);
	assert_int_equal(sw_worker_grow(&r->w, 0, 0, 3), SW_EINVAL);
	assert_int_equal(sw_worker_grow(&r->w, 1, 0, 0), SW_EINVAL);
	assert_int_equal(sw_worker_grow(&r->w, 5000, 0, 0), SW_EINVAL);
	assert_int_equal(sw_worker_grow(&r->w, 0, 1, 0), SW_EINVAL);
	assert_int_equal(pushed(r), CHUNKS - 1);
	sw_worker_leave(&r->w, NULL);
	assert_int_equal(sw_worker_grow(&r->w, 0, 0, 0), 0);
	wrig_close(r);
}

/* The local rank with the fewest present bytes decides. */
static void grow__two_ranks(void **state)
{
	struct worker_rig *r = open_rig(2);

	assert_int_equal(ask(r, 0, but(150, 0)), 0);
	assert_int_equal(sw_worker_grow(&r->w, 0, 0, but(100, 0)), 0);
	assert_int_equal(ask(r, 1, but(180, 0)), 0);
	assert_int_equal(pushed(r), 20);
	assert_int_equal(sw_worker_grow(&r->w, 0, 0, but(50, 0)), 0);
	assert_int_equal(pushed(r), 20);
	assert_int_equal(sw_worker_grow(&r->w, 0, 1, but(40, 0)), 0);
	assert_int_equal(pushed(r), 150);
	assert_int_equal(sw_worker_grow(&r->w, 0, 0, 0), 0);
	assert_int_equal(pushed(r), 160);
	assert_int_equal(sw_worker_grow(&r->w, 0, 1, 0), 0);
	assert_int_equal(pushed(r), CHUNKS);
	wrig_close(r);
}

/* Nothing beyond the present bytes is sent, whatever a server answers or a
 * timeout repeats. */
static void grow__never_beyond(void **state)
{
	struct worker_rig *r = open_rig(1);

	assert_int_equal(ask(r, 0, but(198, 0)), 0);
	assert_int_equal(pushed(r), 2);
	peer_answer(&r->s[0], SW_ANSWER_NEED, 0, 1, 2, 0);
	peer_answer(&r->s[0], SW_ANSWER_CRC, 0, 1, 199, 0);
	result(r, 1, 2);
	assert_int_equal(r->w.stats.result_again, 1);
	assert_int_equal(pushed(r), 2);
	assert_int_equal(r->w.stats.retransmissions, 0);
	for (uint32_t i = 0; i < 4; i++) {
		wrig_tick(r, SW_S);
		pushed(r);
		peer_answer(&r->s[0], SW_ANSWER_CRC, 0, 1, 1, 0);
		pushed(r);
	}
	assert_true(r->w.stats.retransmissions > 4);
	assert_true(r->w.stats.push_copied > 0);
	assert_int_equal(r->last[SW_PUSH].h.chunk, 1);
	assert_int_equal(r->w.stats.push_folded, 2);
	wrig_close(r);
}

/* Granules complete in any order. A chunk in two granules counts for both. The
 * next rounds work in the same way. */
static void granules__are_told(void **state)
{
	struct worker_rig *r = open_rig(1);

	for (uint32_t round = 1; round < 3; round++) {
		assert_int_equal(ask(r, 0, 0), 0);
		assert_int_equal(pushed(r), round * CHUNKS);
		for (uint32_t c = CHUNKS - 1; c > 195; c--)
			result(r, round, c);
		settle(r);
		assert_string_equal(wrig_events(r), "");
		assert_int_equal(granules[1], round - 1);
		result(r, round, 195);
		result(r, round, 195);
		assert_int_equal(granules[1], round);
		settle(r);
		assert_string_equal(wrig_events(r), "summed");
		for (uint32_t c = 194; c; c--)
			result(r, round, c);
		assert_int_equal(granules[0], round - 1);
		result(r, round, 0);
		assert_int_equal(granules[0], round);
		assert_string_equal(wrig_events(r), "done t0 #0 SW_OK w2");
		settle(r);
		assert_string_equal(wrig_events(r), "summed");
	}
	wrig_close(r);
}

/* A local rank dies after its push and before the tensor is complete: the round
 * also ends. */
static void died__while_it_grows(void **state)
{
	for (uint32_t is_begun = 0; is_begun < 2; is_begun++) {
		struct worker_rig *r = open_rig(2);
		const struct sw_fault why =
			sw_fault_said(SW_EPEER, "rank 0 died");

		assert_int_equal(ask(r, 0, 400), 0);
		if (is_begun)
			assert_int_equal(ask(r, 1, 0), 0);
		sw_worker_local_died(&r->w, 0, &why);
		settle(r);
		assert_contains(wrig_events(r), "#0 SW_EPEER");
		assert_int_equal(r->w.n_open, 0);
		wrig_close(r);
	}
}

static void left__while_it_grows(void **state)
{
	struct worker_rig *r = open_rig(2);

	assert_int_equal(ask(r, 0, 400), 0);
	assert_int_equal(ask(r, 1, 0), 0);
	sw_worker_local_left(&r->w, 0);
	settle(r);
	assert_contains(wrig_events(r), "rank 0 (node node) left");
	wrig_close(r);
}

static void leave__while_it_grows(void **state)
{
	struct worker_rig *r = open_rig(1);

	assert_int_equal(ask(r, 0, 400), 0);
	pushed(r);
	sw_worker_leave(&r->w, NULL);
	assert_contains(wrig_events(r), "done t0 #0 SW_ECLOSED");
	assert_int_equal(sw_worker_grow(&r->w, 0, 0, 0), 0);
	wrig_close(r);
}

/* A stall names the rank whose tensor stopped growing, and in the end it ends
 * the job. */
static void stall__names_who_does_not_grow(void **state)
{
	struct worker_rig *r = open_rig(2);

	r->w.params.stall_limit = 60 * SW_S;
	assert_int_equal(ask(r, 0, 0), 0);
	assert_int_equal(ask(r, 1, BYTES), 0);
	pass(r, 0, 31);
	assert_contains(wrig_events(r), "waiting 30 s for rank 1 of 4");
	assert_int_equal(sw_worker_grow(&r->w, 0, 1, but(199, 0)), 0);
	pushed(r);
	result(r, 1, 0);
	pass(r, 0, 28);
	assert_string_equal(
		wrig_events(r), "running continuing after waiting 31 s");
	pass(r, 0, 3);
	assert_contains(wrig_events(r), "waiting 30 s for rank 1 of 4");
	pass(r, 0, 31);
	assert_contains(wrig_events(r), "waited 60 s for rank 1 of 4");
	wrig_close(r);
}

/* Repeating the same number of missing bytes is no progress. */
static void stall__is_not_put_off_by_words(void **state)
{
	struct worker_rig *r = open_rig(2);

	assert_int_equal(ask(r, 0, 0), 0);
	assert_int_equal(ask(r, 1, BYTES), 0);
	for (uint32_t i = 0; i < 31; i++) {
		pass(r, 0, 1);
		assert_int_equal(sw_worker_grow(&r->w, 0, 0, 0), 0);
		assert_int_equal(sw_worker_grow(&r->w, 0, 1, BYTES), 0);
	}
	assert_contains(wrig_events(r), "waiting 30 s for rank 1 of 4");
	wrig_close(r);
}

/* --- lanes --- */

struct lane_fixture {
	struct worker_rig r;
	struct sw_lane *lane;
	struct sw_local local;
	struct sw_wtensor zero; /* the tensor at lane 0 */
	_Atomic uint32_t held[GRANULES];
};

static void command(struct lane_fixture *x, uint32_t bits)
{
	atomic_fetch_or(&x->lane->commands.bits, bits);
	sw_worker_take(&x->r.w);
}

/* Open lane 1 with a running job and a tensor of 200 chunks, of which 64 to 127
 * and 192 to 199 belong to lane 1. */
static struct lane_fixture *open_lane(void)
{
	static struct lane_fixture fixture;
	struct lane_fixture *x = &fixture;
	struct worker_rig *r = &x->r;

	x->lane = aligned_alloc(64, sizeof(*x->lane));
	assert_non_null(x->lane);
	wrig_open_lane(r, x->lane, 1, 1);
	r->s[1].grant = 1 << 19;
	r->zero.epoch = 9;
	r->zero.joined = 3;
	r->zero.size = 8;
	r->zero.first = 6;
	r->zero.payload_bytes = PEER_PAYLOAD;
	command(x, SW_LANE_START | SW_LANE_SETTLE);
	wrig_tx(r);
	peer_cookie(&r->s[1]);
	wrig_tx(r);
	peer_accept(&r->s[1]);
	memset((void *)granules, 0, sizeof(granules));
	x->local.from = (const uint8_t *)r->data[0];
	x->zero = (struct sw_wtensor){.key = 5,
		.decl = {.name = "t",
			.n_elems = CHUNKS * PEER_CHUNK,
			.dtype = SW_I32,
			.base = r->data[0],
			.granules = granules},
		.held = x->held,
		.locals = &x->local,
		.name = "t"};
	r->zero.tensors = &x->zero;
	wrig_build_lane(r, 1);
	x->lane->n_wanted = 1;
	command(x, SW_LANE_DECLARE);
	wrig_tx(r);
	peer_declared(&r->s[1]);
	return x;
}

static void close_lane(struct lane_fixture *x)
{
	wrig_close(&x->r);
	free(x->lane);
}

/* Let lane 0 have @n_ready chunks of the tensor. */
static void grow_lane(struct lane_fixture *x, uint32_t n_ready)
{
	x->zero.n_ready = n_ready;
	sw_flags_raise(&x->lane->commands.tensors, 0);
}

/* Lane 1 pushes its chunks as far as lane 0 has released them. */
static void lane__follows_lane_0(void **state)
{
	struct lane_fixture *x = open_lane();
	struct worker_rig *r = &x->r;

	grow_lane(x, 65); /* before the round has begun */
	sw_worker_take(&r->w);
	assert_int_equal(pushed(r), 0);
	x->zero.said_round = 1;
	sw_flags_raise(&x->lane->commands.tensors, 0);
	sw_worker_take(&r->w);
	assert_int_equal(pushed(r), 1);
	grow_lane(x, 190);
	assert_true(sw_lane_has_commands(x->lane));
	sw_worker_take(&r->w);
	assert_int_equal(sw_worker_take(&r->w), 0);
	assert_int_equal(pushed(r), 64);
	/* lane 1 only waits for lane 0, so it reports no stall */
	for (uint32_t c = 64; c < 128; c++)
		peer_result(&r->s[1], 5, 1, c, 7);
	pass(r, 1, 100);
	assert_false(atomic_load(&x->lane->has_line));
	r->s[1].grant += 1 << 19; /* the idle sender returned its first grant */
	pass(r, 1, 1);
	grow_lane(x, CHUNKS);
	sw_worker_take(&r->w);
	assert_int_equal(pushed(r), 72);
	for (uint32_t c = 192; c < CHUNKS; c++)
		peer_result(&r->s[1], 5, 1, c, 7);
	/* lane 0 has 124 chunks of the first granule, lane 1 has 64 + 4 */
	assert_int_equal(x->held[0], 68);
	assert_int_equal(granules[0], 0);
	assert_int_equal(granules[1], 1);
	assert_true(sw_lane_has_reports(x->lane));
	wrig_hear(&x->lane->reports, SW_LANE_SUMMED);
	close_lane(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grow__pushes_what_is_there),
		cmocka_unit_test(grow__nothing_is_there_at_first),
		cmocka_unit_test(grow__after_a_pause),
		cmocka_unit_test(grow__refuses),
		cmocka_unit_test(grow__two_ranks),
		cmocka_unit_test(grow__never_beyond),
		cmocka_unit_test(granules__are_told),
		cmocka_unit_test(died__while_it_grows),
		cmocka_unit_test(left__while_it_grows),
		cmocka_unit_test(leave__while_it_grows),
		cmocka_unit_test(stall__names_who_does_not_grow),
		cmocka_unit_test(stall__is_not_put_off_by_words),
		cmocka_unit_test(lane__follows_lane_0),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
