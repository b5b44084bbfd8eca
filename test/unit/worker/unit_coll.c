/* unit_coll.c - collectives at a worker: refusals and pushes.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/worker/coll_rig.h"

/* --- refused calls --- */

static void declare__bad_streams(void **state)
{
	static const struct {
		uint16_t ranks[3];
		uint32_t n;
	} bad[] = {{{0}, 0},                          /* no rank */
		{{1, 2}, 2},                          /* this rank is missing */
		{{0, 3}, 2},                          /* an unknown rank */
		{{0, UINT16_MAX}, 2}, {{0, 1, 0}, 3}, /* a rank twice */
		{{0}, SW_GROUP_RANKS + 1}};
	static struct worker_rig r;
	struct sw_worker_tensor t = a_stream;

	wrig_open(&r, 0, 3, 1);
	wrig_run(&r);
	t.window_log2 = SW_WINDOW_MIN_LOG2 - 1;
	assert_int_equal(sw_worker_declare(&r.w, &t, 1), SW_EINVAL);
	t.window_log2 = SW_WINDOW_MAX_LOG2 + 1;
	assert_int_equal(sw_worker_declare(&r.w, &t, 1), SW_EINVAL);
	for (size_t i = 0; i < SW_ARRAY_SIZE(bad); i++) {
		t = a_stream;
		t.ranks = bad[i].ranks;
		t.n_ranks = bad[i].n;
		assert_int_equal(sw_worker_declare(&r.w, &t, 1), SW_EINVAL);
	}
	t = a_stream;
	t.name = "";
	assert_int_equal(sw_worker_declare(&r.w, &t, 1), SW_EINVAL);
	wrig_close(&r);
}

static void refused(struct worker_rig *r, struct sw_worker_coll ask)
{
	assert_int_equal(sw_worker_coll(&r->w, &ask), SW_EINVAL);
	assert_int_equal(r->w.n_open, 0);
}

static void submit__bad_arguments(void **state)
{
	struct worker_rig *r = open_stream();
	const struct sw_worker_coll good = ask_of(r, SW_REDUCE, 1);
	struct sw_worker_coll ask = good;

	wrig_declare(r, "a tensor", 1, 0);
	ask.stream = 1;
	refused(r, ask);
	ask.stream = 2;
	refused(r, ask);
	ask.stream = UINT32_MAX;
	refused(r, ask);
	ask = good;
	ask.kind = SW_COLL_NONE;
	refused(r, ask);
	ask.kind = SW_N_COLL_KINDS;
	refused(r, ask);
	ask.kind = (enum sw_coll_kind)UINT32_MAX;
	refused(r, ask);
	ask = good;
	ask.dtype = 200;
	refused(r, ask);
	ask = good;
	ask.n_elems = 0;
	refused(r, ask);
	ask.n_elems = (64ULL << 30) / 4 + 1;
	refused(r, ask);
	ask.n_elems = UINT64_MAX;
	refused(r, ask);
	ask = good;
	ask.root = 3;
	refused(r, ask);
	ask.root = UINT16_MAX;
	refused(r, ask);
	ask.kind = SW_BCAST;
	refused(r, ask);
	ask = good;
	ask.op = SW_N_REDUCE_OPS;
	refused(r, ask);
	ask.op = SW_BAND;
	ask.dtype = SW_F32;
	refused(r, ask);
	ask = good;
	ask.kind = SW_ALL_GATHER;
	ask.op = SW_AVG;
	refused(r, ask);
	ask = good;
	ask.root = UINT16_MAX;
	ask.kind = SW_ALL_REDUCE; /* a root where the kind has none */
	assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
	wrig_close(r);
}

/* A local rank's data must fit into its buffers, for the group's number of
 * ranks. */
static void submit__beyond_a_buffer(void **state)
{
	enum { N = 5, BYTES = 4 * N, OTHER = 1 };
	static const struct {
		enum sw_coll_kind kind;
		uint16_t root;
		uint32_t stride;
		uint64_t from,
			to; /* elements that suffice; 0: no buffer needed */
	} cases[] = {
		{SW_ALL_REDUCE, 0, 0, BYTES, BYTES},
		{SW_BARRIER, 0, 0, BYTES, BYTES},
		{SW_REDUCE_SCATTER, 0, 0, 3 * BYTES, BYTES},
		{SW_REDUCE_SCATTER, 0, 100, 200 + BYTES, BYTES},
		{SW_ALL_GATHER, 0, 0, BYTES, 3 * BYTES},
		{SW_ALL_GATHER, 0, 100, BYTES, 200 + BYTES},
		{SW_BCAST, 0, 0, BYTES, BYTES},
		{SW_BCAST, OTHER, 0, 0, BYTES},
		{SW_REDUCE, 0, 0, BYTES, BYTES},
		{SW_REDUCE, OTHER, 0, BYTES, 0},
	};
	struct worker_rig *r = open_stream();

	for (size_t i = 0; i < SW_ARRAY_SIZE(cases); i++) {
		struct sw_worker_coll good = ask_of(r, cases[i].kind, N), ask;

		good.root = cases[i].root;
		good.stride = cases[i].stride;
		good.from_bytes = cases[i].from;
		good.to_bytes = cases[i].to;
		ask = good;
		ask.from_bytes--;
		if (cases[i].from)
			assert_int_equal(
				sw_worker_coll(&r->w, &ask), SW_EINVAL);
		ask = good;
		ask.to_bytes--;
		if (cases[i].to)
			assert_int_equal(
				sw_worker_coll(&r->w, &ask), SW_EINVAL);
		ask = good;
		ask.stride = UINT64_MAX / 2;
		assert_int_equal(sw_worker_coll(&r->w, &ask), SW_EINVAL);
		assert_int_equal(sw_worker_coll(&r->w, &good), 0);
	}
	wrig_close(r);
}

static void submit__before_it_is_admitted(void **state)
{
	struct worker_rig *r = open_declared();

	assert_int_equal(submit(r, SW_ALL_REDUCE, 1, 0), SW_EAGAIN);
	wrig_close(r);
}

static void submit__too_many(void **state)
{
	struct worker_rig *r = open_stream();

	submit_n(r, SW_COLLS);
	assert_int_equal(submit(r, SW_ALL_REDUCE, 1, 0), SW_EAGAIN);
	wrig_tx(r);
	sum(r, 1, 1);
	assert_string_equal(wrig_events(r), "done t0 #1 SW_OK w3");
	assert_int_equal(submit(r, SW_ALL_REDUCE, 1, 0), 0);
	assert_int_equal(submit(r, SW_ALL_REDUCE, 1, 0), SW_EAGAIN);
	wrig_close(r);
}

static void submit__after_leave(void **state)
{
	struct worker_rig *r = open_stream();

	submit_n(r, 2);
	sw_worker_leave(&r->w, NULL);
	assert_contains(wrig_events(r), "done t0 #1 SW_ECLOSED");
	assert_int_equal(submit(r, SW_ALL_REDUCE, 1, 0), SW_ECLOSED);
	wrig_close(r);
}

/* --- pushes --- */

static void push__what_it_says(void **state)
{
	struct worker_rig *r = open_stream();
	struct sw_worker_coll ask = ask_of(r, SW_BCAST, PEER_CHUNK + 1);
	const struct sw_header *h = &r->last[SW_WANT].h;

	ask.root = 2;
	assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
	assert_string_equal(wrig_tx(r), "s0 WANT k0 r1 c1 +0 n2");
	assert_int_equal(h->aux, 2);
	assert_int_equal(h->op, sw_coll_op(SW_BCAST, SW_ROUND_SUM));
	assert_int_equal(submit(r, SW_ALL_REDUCE, PEER_CHUNK + 1, 0), 0);
	assert_int_equal(n_pushes(r), 2);
	h = &r->last[SW_PUSH].h;
	assert_int_equal(h->round, 4);
	assert_int_equal(h->chunk, 2);
	assert_int_equal(h->payload_len, 4);
	assert_int_equal(h->weight, 1);
	assert_int_equal(h->aux, 0);
	wrig_close(r);
}

/* Different counts have different tags, even if a chunk has the same bytes. */
static void push__tag_of_the_count(void **state)
{
	struct worker_rig *r = open_stream();
	uint16_t tag;

	submit(r, SW_ALL_REDUCE, PEER_CHUNK, 0);
	wrig_tx(r);
	tag = r->last[SW_PUSH].h.step;
	submit(r, SW_ALL_REDUCE, 2 * PEER_CHUNK, 0);
	wrig_tx(r);
	assert_int_not_equal(r->last[SW_PUSH].h.step, tag);
	submit(r, SW_ALL_REDUCE, PEER_CHUNK, 0);
	wrig_tx(r);
	assert_int_equal(r->last[SW_PUSH].h.step, tag);
	wrig_close(r);
}

/* Pushes take credit and return it when they are folded. A push without data
 * takes a little credit. */
static void push__credit_comes_back(void **state)
{
	struct worker_rig *r = open_stream();
	struct sw_worker_coll ask = ask_of(r, SW_BCAST, 1);

	ask.root = 1;
	submit(r, SW_ALL_REDUCE, 1, 1);
	submit(r, SW_ALL_REDUCE, 1, 2);
	sw_worker_coll(&r->w, &ask);
	assert_int_equal(n_pushes(r), 2);
	assert_int_equal(r->w.sched.credit, CREDIT - 8 - SW_EMPTY_COST);
	peer_ack_one(&r->s[0], 0, 1);
	assert_int_equal(r->w.sched.credit, CREDIT - 4 - SW_EMPTY_COST);
	sum(r, 1, 1); /* only once */
	assert_int_equal(r->w.sched.credit, CREDIT - 4 - SW_EMPTY_COST);
	sum(r, 2, 1); /* before its acknowledgement */
	assert_int_equal(r->w.sched.credit, CREDIT - SW_EMPTY_COST);
	peer_ack(&r->s[0], 0, 3);
	assert_int_equal(r->w.sched.credit, CREDIT);
	wrig_close(r);
}

/* A push that the window forbids takes no credit. */
static void push__a_closed_window_holds_no_credit(void **state)
{
	struct worker_rig *r = open_stream();

	submit_n(r, 3 * W);
	assert_int_equal(r->w.sched.credit, CREDIT - 4 * W);
	wrig_close(r);
}

/* A rank that only sends has finished when its last chunk is folded. */
static void ack__ends_what_only_gives(void **state)
{
	struct worker_rig *r = open_stream();
	struct sw_worker_coll ask = ask_of(r, SW_REDUCE, 2 * PEER_CHUNK);

	ask.root = 1;
	assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
	wrig_tx(r);
	peer_ack_one(&r->s[0], 0, 2);
	assert_string_equal(wrig_events(r), "");
	peer_ack_one(&r->s[0], 0, 1);
	assert_contains(wrig_events(r), "done t0 #0 SW_OK");
	wrig_close(r);
}

/* A rank's own part is copied locally and never comes from a server. */
static void ack__copies_the_own_part(void **state)
{
	struct worker_rig *r = open_stream();
	struct sw_worker_coll ask = ask_of(r, SW_ALL_GATHER, 2);

	r->data[0][0] = 5;
	r->data[0][1] = 6;
	ask.to = r->data[1];
	assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
	assert_int_equal(n_pushes(r), 1);
	peer_ack_one(&r->s[0], 0, 1);
	assert_int_equal(r->data[1][0], 5);
	assert_int_equal(r->data[1][1], 6);
	assert_string_equal(wrig_events(r), "");
	wrig_close(r);
}

/* The buffer changes between two pushes of a chunk. */
static void push__of_a_changed_buffer(void **state)
{
	struct worker_rig *r = open_stream();

	submit(r, SW_ALL_REDUCE, 1, 1);
	submit(r, SW_ALL_REDUCE, 1, 2);
	wrig_tx(r);
	r->data[0][0]++;
	wrig_tick(r, SW_S); /* both pushes were lost */
	assert_contains(wrig_tx(r), "PUSH");
	sum(r, 1, 1);
	assert_string_equal(wrig_events(r), "done t0 #1 SW_ECORRUPT w3");
	wrig_close(r);
}

/* A process keeps writing the buffer of an open collective. After three
 * refusals the worker pushes a copy, as it does for a tensor. */
static void push__of_a_buffer_that_is_written(void **state)
{
	struct worker_rig *r = open_stream();

	submit(r, SW_ALL_REDUCE, 1, 1);
	wrig_tx(r);
	for (uint32_t n = 1; n <= 3; n++) {
		r->data[0][0]++;
		peer_answer(&r->s[0], SW_ANSWER_CRC, 0, 1, 1, 0);
		assert_contains(wrig_tx(r), "PUSH k0 r1");
		assert_int_equal(r->w.stats.push_copied, n == 3);
	}
	sum(r, 1, 1);
	assert_string_equal(wrig_events(r), "done t0 #1 SW_ECORRUPT w3");
	/* the next collective is not affected */
	submit(r, SW_ALL_REDUCE, 1, 2);
	wrig_tx(r);
	assert_int_equal(r->w.stats.push_copied, 1);
	wrig_close(r);
}

/* Check that the last push has @want times 1, 2, 3. */
static void pushed(const struct worker_rig *r, int32_t want)
{
	const struct test_frame *f = &r->last[SW_PUSH];
	int32_t elems[3];

	assert_int_equal(f->h.payload_len, sizeof(elems));
	memcpy(elems, f->bytes + SW_HEAD_BYTES, sizeof(elems));
	for (int32_t i = 0; i < 3; i++)
		assert_int_equal(elems[i], want * (i + 1));
}

/* A factor belongs to this member only: the push has the operation sum and
 * scaled values, and the buffer stays unchanged. */
static void push__times_the_factor(void **state)
{
	struct worker_rig *r = open_stream();
	struct sw_worker_coll ask = ask_of(r, SW_ALL_REDUCE, 3);

	for (int32_t i = 0; i < 3; i++)
		r->data[0][i] = 2 * (i + 1);
	ask.op = SW_PREMUL_SUM;
	ask.scale = -1.5;
	assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
	assert_int_equal(n_pushes(r), 1);
	assert_int_equal(
		r->last[SW_PUSH].h.op, sw_coll_op(SW_ALL_REDUCE, SW_SUM));
	pushed(r, -3);
	assert_int_equal(r->data[0][2], 6);
	wrig_tick(r, SW_S);
	assert_contains(wrig_tx(r), "PUSH"); /* the same values again */
	pushed(r, -3);
	wrig_close(r);
}

static void result__of_another_operation(void **state)
{
	struct worker_rig *r = open_stream();
	struct sw_worker_coll ask = ask_of(r, SW_ALL_REDUCE, 1);

	ask.op = SW_MAX;
	assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
	assert_int_equal(n_pushes(r), 1);
	assert_int_equal(
		r->last[SW_PUSH].h.op, sw_coll_op(SW_ALL_REDUCE, SW_MAX));
	sum(r, 1, 1);
	assert_string_equal(wrig_events(r), "");
	assert_int_equal(r->w.stats.rx_dtype, 1);
	wrig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(declare__bad_streams),
		cmocka_unit_test(submit__bad_arguments),
		cmocka_unit_test(submit__beyond_a_buffer),
		cmocka_unit_test(submit__before_it_is_admitted),
		cmocka_unit_test(submit__too_many),
		cmocka_unit_test(submit__after_leave),
		cmocka_unit_test(push__what_it_says),
		cmocka_unit_test(push__tag_of_the_count),
		cmocka_unit_test(push__credit_comes_back),
		cmocka_unit_test(push__a_closed_window_holds_no_credit),
		cmocka_unit_test(ack__ends_what_only_gives),
		cmocka_unit_test(ack__copies_the_own_part),
		cmocka_unit_test(push__of_a_changed_buffer),
		cmocka_unit_test(push__of_a_buffer_that_is_written),
		cmocka_unit_test(push__times_the_factor),
		cmocka_unit_test(result__of_another_operation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
