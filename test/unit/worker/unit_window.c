/* unit_window.c - streams at a worker: window, QUERIES, results, end.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/worker/coll_rig.h"

/* --- the window --- */

static void window__opens_by_a_result(void **state)
{
	struct worker_rig *r = open_stream();

	submit_n(r, 2 * W);
	assert_int_equal(n_pushes(r), W);
	for (uint32_t j = 1; j <= 3; j++)
		sum(r, j, 1);
	assert_int_equal(n_pushes(r), 0);
	sum(r, 4, 3); /* the base says that all chunks below 3 are complete */
	assert_int_equal(base_of(r), 3);
	assert_int_equal(n_pushes(r), 2);
	assert_int_equal(r->last[SW_PUSH].h.round, W + 2);
	wrig_close(r);
}

static void window__opens_by_an_answer(void **state)
{
	struct worker_rig *r = open_stream();

	submit_n(r, 2 * W);
	assert_int_equal(n_pushes(r), W);
	for (uint32_t j = 1; j <= 8; j++)
		sum(r, j, 1);
	say_base(r, 9);
	assert_int_equal(base_of(r), 9);
	assert_int_equal(n_pushes(r), 8);
	say_base(r, 5); /* a late answer */
	assert_int_equal(base_of(r), 9);
	assert_int_equal(n_pushes(r), 0);
	wrig_close(r);
}

/* The base says that sent chunks are folded, even if their acknowledgement was
 * lost. */
static void window__base_ends_what_only_gives(void **state)
{
	struct worker_rig *r = open_stream();
	struct sw_worker_coll ask = ask_of(r, SW_REDUCE, 1);

	ask.root = 1;
	assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
	assert_int_equal(n_pushes(r), 1);
	say_base(r, 2);
	assert_contains(wrig_events(r), "done t0 #0 SW_OK");
	assert_int_equal(r->w.sched.credit, CREDIT);
	peer_ack(&r->s[0], 0, 1);
	wrig_tick(r, SW_S);
	assert_int_equal(r->w.n_open, 0);
	wrig_close(r);
}

/* A base beyond chunks that were not pushed, or whose results have not arrived,
 * is ignored. */
static void window__implausible_base(void **state)
{
	static const uint32_t bases[] = {4, 1000, 1u << 30, 0x7fffffff,
		0x80000000, 0x80000001, UINT32_MAX, 0};
	struct worker_rig *r = open_stream();

	submit_n(r, 2);
	wrig_tx(r);
	for (size_t i = 0; i < SW_ARRAY_SIZE(bases); i++) {
		say_base(r, bases[i]);
		assert_int_equal(base_of(r), 1);
	}
	assert_string_equal(wrig_events(r), "");
	sum(r, 1, 1);
	sum(r, 2, 1);
	say_base(r, 1000);
	assert_int_equal(base_of(r), 3); /* as far as possible */
	assert_int_equal(r->w.tensors[0].stream->links[0].next, 3);
	wrig_close(r);
}

/* A chunk that waits for credit cannot be folded, so the base stops before
 * it. */
static void window__base_of_what_was_not_pushed(void **state)
{
	struct worker_rig *r = open_stream();
	struct sw_worker_coll ask = ask_of(r, SW_REDUCE, 4 * PEER_CHUNK);

	sw_sched_set(&r->w.sched, sw_policy_find("bytescheduler"), PEER_PAYLOAD,
		PEER_PAYLOAD);
	ask.root = 1;
	assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
	assert_int_equal(n_pushes(r), 1);
	say_base(r, 5);
	assert_string_equal(wrig_events(r), "");
	assert_int_equal(base_of(r), 2);
	for (uint64_t psn = 1; psn <= 4; psn++) {
		peer_ack_one(&r->s[0], 0, psn);
		wrig_tx(r);
	}
	assert_string_equal(wrig_events(r), "done t0 #0 SW_OK w0");
	assert_int_equal(r->w.sched.credit, PEER_PAYLOAD);
	wrig_close(r);
}

/* Numbers continue beyond 2^32. */
static void window__wraps_around(void **state)
{
	struct worker_rig *r = open_stream();
	struct sw_stream_link *l = r->w.tensors[0].stream->links;
	uint32_t j = UINT32_MAX - 2;

	l->base = l->next = j;
	submit_n(r, 2 * W);
	assert_int_equal(n_pushes(r), W);
	for (uint32_t n = 1; n <= W; n++, j++)
		peer_fill(&r->s[0],
			result_of(SW_ALL_REDUCE, j, n, UINT32_MAX - 2), 7);
	assert_int_equal(r->w.tensors[0].stream->n_open, W);
	say_base(r, j);
	assert_int_equal(base_of(r), W - 3);
	assert_int_equal(n_pushes(r), W);
	assert_int_equal(r->w.tensors[0].stream->links[0].next, 2 * W - 3);
	wrig_close(r);
}

/* --- QUERY --- */

static void query__asks_for_base_when_blocked(void **state)
{
	struct worker_rig *r = open_stream();

	submit_n(r, W + 1);
	assert_int_equal(n_pushes(r), W);
	peer_ack(&r->s[0], 0, W);
	for (uint32_t j = 1; j <= W; j++)
		sum(r, j, 1);
	wrig_tick(r, 0);
	wrig_tx(r);
	wrig_tick(r, SW_S);
	assert_contains(wrig_tx(r), "QUERY k0r0");
	say_base(r, W + 1);
	assert_int_equal(n_pushes(r), 0); /* it asks for a grant */
	wrig_tick(r, 2 * SW_MS);
	assert_int_equal(n_pushes(r), 1);
	assert_int_equal(r->w.links[0].n_blocked, 0);
	wrig_close(r);
}

static void query__asks_for_what_is_late(void **state)
{
	struct worker_rig *r = open_stream();

	submit_n(r, 3);
	wrig_tx(r);
	peer_ack(&r->s[0], 0, 3);
	sum(r, 1, 1);
	sum(r, 3, 1);
	wrig_tick(r, 0);
	wrig_tx(r);
	wrig_tick(r, SW_S);
	assert_contains(wrig_tx(r), "QUERY k0r2");
	peer_answer(&r->s[0], SW_ANSWER_WAIT, 0, 2, 2, 6);
	assert_true(r->w.tensors[0].awaited == 6);
	assert_int_equal(n_pushes(r), 0);
	peer_answer(&r->s[0], SW_ANSWER_NEED, 0, 1, 2, 0); /* late */
	assert_int_equal(n_pushes(r), 0);
	peer_answer(&r->s[0], SW_ANSWER_NEED, 0, 2, 2, 0);
	assert_int_equal(n_pushes(r), 0); /* it asks for a grant */
	wrig_tick(r, 2 * SW_MS);
	assert_int_equal(n_pushes(r), 1);
	assert_int_equal(r->last[SW_PUSH].h.round, 2);
	peer_answer(&r->s[0], SW_ANSWER_GONE, 0, 2, 2, 0);
	assert_contains(wrig_events(r), "no longer has the result");
	wrig_close(r);
}

/* --- RESULT --- */

/* Is the server's last frame acknowledged? */
static bool is_acknowledged(struct worker_rig *r)
{
	struct sw_sack k;

	r->last[SW_ACK].h.payload_len = 0;
	wrig_tick(r, SW_MS);
	wrig_tx(r);
	if (!r->last[SW_ACK].h.payload_len)
		return false;
	frame_get(&r->last[SW_ACK], &k, sizeof(k));
	return k.largest == r->s[0].psn[0];
}

static void result__twice(void **state)
{
	struct worker_rig *r = open_stream();

	submit_n(r, 2);
	wrig_tx(r);
	sum(r, 1, 1);
	assert_true(is_acknowledged(r));
	assert_int_equal(r->data[0][0], 7);
	assert_string_equal(wrig_events(r), "done t0 #1 SW_OK w3");
	r->data[0][0] = 0;
	sum(r, 1, 1);
	assert_true(is_acknowledged(r));
	assert_int_equal(r->data[0][0], 0);
	assert_int_equal(r->w.stats.result_again, 1);
	assert_string_equal(wrig_events(r), "");
	wrig_close(r);
}

/* A result for a chunk that was not submitted or not pushed is not written. */
static void result__of_what_nobody_waits_for(void **state)
{
	struct worker_rig *r = open_stream();

	sum(r, 1, 1);
	submit_n(r, 1);
	sum(r, 1, 1); /* the push has not been sent */
	wrig_tx(r);
	sum(r, 2, 1);
	sum(r, 1 + W, 1);
	assert_int_equal(r->data[0][0], 0);
	assert_int_equal(r->w.stats.results, 0);
	assert_string_equal(wrig_events(r), "");
	sum(r, 1, 1);
	assert_string_equal(wrig_events(r), "done t0 #1 SW_OK w3");
	wrig_close(r);
}

static void not_taken(struct worker_rig *r, struct sw_header h)
{
	peer_fill(&r->s[0], h, 9);
	assert_false(is_acknowledged(r));
	assert_int_equal(r->data[0][0], 0);
	assert_string_equal(wrig_events(r), "");
}

static void result__not_of_this_collective(void **state)
{
	struct worker_rig *r = open_stream();
	struct sw_header good = result_of(SW_ALL_REDUCE, 1, 1, 1), h = good;

	submit_n(r, 1);
	wrig_tx(r);
	h.payload_len = 8;
	not_taken(r, h);
	h.payload_len = 0;
	not_taken(r, h);
	h = good;
	h.payload_crc = 1;
	not_taken(r, h);
	h = good;
	h.chunk = 2;
	not_taken(r, h);
	h = good;
	h.op = sw_coll_op(SW_REDUCE, SW_ROUND_SUM);
	not_taken(r, h);
	h = good;
	h.dtype = SW_F32;
	not_taken(r, h);
	h = good;
	h.weight = 0;
	not_taken(r, h);
	peer_fill(&r->s[0], good, 7);
	assert_string_equal(wrig_events(r), "done t0 #1 SW_OK w3");
	wrig_close(r);
}

/* --- members differ --- */

static void say_mismatch(struct worker_rig *r, uint32_t key, const char *text)
{
	struct sw_fault fault = {.err = SW_EMISMATCH, .key = key};

	snprintf(fault.text, sizeof(fault.text), "%s", text);
	peer_send(&r->s[0],
		(struct sw_header){.type = SW_END,
			.round = 1,
			.payload_len = sizeof(fault)},
		&fault);
}

/* All open calls end, inside the window and after it; the job continues. */
static void mismatch__ends_all_that_is_open(void **state)
{
	struct worker_rig *r = open_stream();

	wrig_declare(r, "a", 1, 0);
	submit_n(r, W + 2);
	wrig_tx(r);
	say_mismatch(r, 0, "they differ");
	wrig_tx(r);
	sw_worker_take(&r->w);
	for (uint32_t i = 1; i <= W + 2; i++) {
		char text[64];

		snprintf(text, sizeof(text), "done t0 #%u SW_EMISMATCH", i);
		assert_contains(r->events, text);
	}
	assert_int_equal(r->w.n_open, 0);
	assert_int_equal(r->w.sched.credit, CREDIT);
	assert_int_equal(r->w.links[0].n_blocked, 0);
	assert_string_equal(
		sw_worker_why(&r->w, 0, (char[SW_TEXT_MAX]){0}), "they differ");
	assert_int_equal(submit(r, SW_ALL_REDUCE, 1, 0), SW_EMISMATCH);
	wrig_events(r);
	sum(r, 1, 1); /* late results */
	say_base(r, 9);
	peer_ack(&r->s[0], 0, W);
	wrig_tick(r, SW_S);
	assert_string_equal(wrig_events(r), "");
	assert_int_equal(sw_worker_push(&r->w, 1, 1, 0), 0);
	assert_contains(wrig_tx(r), "PUSH k1 r1");
	wrig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(window__opens_by_a_result),
		cmocka_unit_test(window__opens_by_an_answer),
		cmocka_unit_test(window__base_ends_what_only_gives),
		cmocka_unit_test(window__implausible_base),
		cmocka_unit_test(window__base_of_what_was_not_pushed),
		cmocka_unit_test(window__wraps_around),
		cmocka_unit_test(query__asks_for_base_when_blocked),
		cmocka_unit_test(query__asks_for_what_is_late),
		cmocka_unit_test(result__twice),
		cmocka_unit_test(result__of_what_nobody_waits_for),
		cmocka_unit_test(result__not_of_this_collective),
		cmocka_unit_test(mismatch__ends_all_that_is_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
