/* unit_want.c - a worker asks in runs for chunks that it only receives.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/worker/coll_rig.h"

/* Start a broadcast of @n_chunks chunks from rank 1, another member. */
static void bcast(struct worker_rig *r, uint64_t n_chunks, uint64_t cookie)
{
	struct sw_worker_coll ask = ask_of(r, SW_BCAST, n_chunks * PEER_CHUNK);

	ask.root = 1;
	ask.cookie = cookie;
	assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
}

/* Send the RESULT of chunk @j of collective @number. */
static void get(
	struct worker_rig *r, uint32_t j, uint32_t number, uint32_t base)
{
	struct sw_header h = result_of(SW_BCAST, j, number, base);

	h.payload_len = 4 * PEER_CHUNK;
	h.weight = 1;
	peer_fill(&r->s[0], h, (int32_t)j);
}

static void want__all_that_the_window_allows(void **state)
{
	struct worker_rig *r = open_stream();

	bcast(r, W + 4, 1);
	assert_string_equal(wrig_tx(r), "s0 WANT k0 r1 c1 +0 n15");
	assert_int_equal(r->last[SW_WANT].h.op, sw_coll_op(SW_BCAST, SW_SUM));
	assert_int_equal(r->last[SW_WANT].h.aux, 1);
	assert_int_equal(r->last[SW_WANT].h.consumed, 0);
	for (uint32_t j = 1; j < W; j++)
		get(r, j, 1, 3);
	assert_null(strstr(wrig_tx(r), "WANT")); /* waits for 16 to 19 */
	say_base(r, 4);
	assert_contains(wrig_tx(r), "s0 WANT k0 r16 c1 +0 n4");
	get(r, W, 1, 5);
	/* the last chunk */
	assert_contains(wrig_tx(r), "s0 WANT k0 r20 c1 +0 n1");
	for (uint32_t j = W + 1; j <= W + 4; j++)
		get(r, j, 1, W + 1);
	assert_string_equal(wrig_events(r), "done t0 #1 SW_OK w1");
	assert_int_equal(r->data[0][(W + 3) * PEER_CHUNK], W + 4);
	assert_int_equal(r->w.sched.credit, CREDIT);
	wrig_close(r);
}

/* A run continues from the last slot to the first, and across 2^32. */
static void want__over_the_end(void **state)
{
	struct worker_rig *r = open_stream();
	struct sw_stream *s = r->w.tensors[0].stream;

	s->links[0].base = s->links[0].next = (uint32_t)-3;
	bcast(r, 8, 1);
	assert_string_equal(wrig_tx(r), "s0 WANT k0 r4294967293 c1 +0 n8");
	for (uint32_t j = (uint32_t)-3; j != 5; j++)
		get(r, j, 1, (uint32_t)-3);
	assert_string_equal(wrig_events(r), "done t0 #1 SW_OK w1");
	wrig_close(r);
}

/* One WANT has at most 64 chunks, of one collective and one root. */
static void want__no_more_than_64(void **state)
{
	struct worker_rig *r = open_stream();
	struct sw_worker_coll ask = ask_of(r, SW_ALL_GATHER, 1);
	struct sw_worker_tensor wide = a_stream;
	const char *text;

	wide.name = "wide";
	wide.window_log2 = 7;
	assert_int_equal(sw_worker_declare(&r->w, &wide, 1), 0);
	wrig_tx(r);
	peer_declared(&r->s[0]);
	wrig_tx(r);
	ask.stream = 1;
	ask.from = ask.to = r->data[0];
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
	text = wrig_tx(r);
	/* its own part, then those of two others */
	for (uint32_t i = 0; i < 3; i++) {
		char line[64];

		for (uint32_t k = 2; k <= 3; k++) {
			snprintf(line, sizeof(line), "WANT k1 r%u c%u +0 n1",
				3 * i + k, i + 1);
			assert_contains(text, line);
		}
	}
	ask.kind = SW_BCAST;
	ask.n_elems = 90 * PEER_CHUNK;
	ask.root = 1;
	assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
	assert_string_equal(wrig_tx(r),
		"s0 WANT k1 r10 c4 +0 n64; s0 WANT k1 r74 c4 +0 n26");
	wrig_close(r);
}

/* A lost WANT is retransmitted without the chunks that have arrived; none is
 * sent twice or forgotten. */
static void lost__but_what_has_come(void **state)
{
	struct worker_rig *r = open_stream();

	bcast(r, 6, 1);
	wrig_tx(r);
	get(r, 1, 1, 1);
	get(r, 4, 1, 1);
	wrig_tick(r, SW_S);
	assert_contains(wrig_tx(r), "WANT k0 r2 c1 +0 n2 again; "
				    "s0 WANT k0 r5 c1 +0 n2 again");
	assert_int_equal(r->w.stats.lost, 1);
	assert_int_equal(r->w.stats.retransmissions, 4);
	for (uint32_t j = 1; j <= 6; j++)
		get(r, j, 1, 1);
	assert_string_equal(wrig_events(r), "done t0 #1 SW_OK w1");
	wrig_close(r);
}

/* An acknowledged WANT returns its credit once. The worker queries late chunks;
 * if the server answers NEED, the worker repeats the WANT. */
static void ack__asks_for_each_that_is_late(void **state)
{
	struct worker_rig *r = open_stream();

	bcast(r, 4, 1);
	assert_int_equal(r->w.sched.credit, CREDIT - 4 * SW_EMPTY_COST);
	wrig_tx(r);
	get(r, 2, 1, 1);
	assert_int_equal(r->w.sched.credit, CREDIT - 3 * SW_EMPTY_COST);
	peer_ack(&r->s[0], 0, 1);
	assert_int_equal(r->w.sched.credit, CREDIT);
	wrig_tick(r, 0);
	wrig_tx(r);
	wrig_tick(r, SW_S);
	assert_contains(wrig_tx(r), "QUERY k0r1c0 k0r3c0 k0r4c0");
	peer_answer(&r->s[0], SW_ANSWER_NEED, 0, 3, 1, 0);
	peer_answer(&r->s[0], SW_ANSWER_NEED, 0, 4, 1, 0);
	assert_string_equal(wrig_tx(r), "s0 WANT k0 r3 c1 +0 n2 again");
	peer_ack(&r->s[0], 0, 1); /* stale */
	wrig_tick(r, SW_S);
	assert_contains(wrig_tx(r), "WANT k0 r3 c1 +0 n2 again");
	wrig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(want__all_that_the_window_allows),
		cmocka_unit_test(want__over_the_end),
		cmocka_unit_test(want__no_more_than_64),
		cmocka_unit_test(lost__but_what_has_come),
		cmocka_unit_test(ack__asks_for_each_that_is_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
