/* unit_coll_local.c - collectives of several local ranks.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/worker/coll_rig.h"

#include "engine/base/bytes.h"

enum { LOCAL = 2 };

/* Buffers of each local rank. */
static int32_t from[LOCAL][4 * PEER_CHUNK], to[LOCAL][4 * PEER_CHUNK];

/* Open member 0 of 2, with ranks 0 and 1; the other member has 2 and 3. The
 * group of "s" has the @n @ranks. */
static struct worker_rig *open_of(const uint16_t *ranks, uint32_t n)
{
	const struct sw_worker_tensor d = {
		.name = "s", .window_log2 = LOG2, .ranks = ranks, .n_ranks = n};
	static struct worker_rig r;

	wrig_open_local(&r, 0, 2, 1, LOCAL);
	r.s[0].grant = 1 << 19;
	r.s[0].n_local = LOCAL;
	wrig_run(&r);
	assert_int_equal(sw_worker_declare(&r.w, &d, 1), 0);
	wrig_tx(&r);
	peer_declared(&r.s[0]);
	wrig_tx(&r);
	assert_string_equal(wrig_events(&r), "declared");
	memset(to, 0, sizeof(to));
	for (int32_t l = 0; l < LOCAL; l++)
		for (int32_t i = 0; i < 4 * PEER_CHUNK; i++)
			from[l][i] = (l + 1) * 1000 + i;
	return &r;
}

static struct worker_rig *open_all(void)
{
	static const uint16_t ranks[] = {0, 1, 2, 3};

	return open_of(ranks, 4);
}

static struct sw_worker_coll call(
	uint32_t local, enum sw_coll_kind kind, uint64_t n_elems)
{
	return (struct sw_worker_coll){.local = local,
		.kind = kind,
		.dtype = SW_I32,
		.n_elems = n_elems,
		.from = from[local],
		.to = to[local],
		.from_bytes = sizeof(from[local]),
		.to_bytes = sizeof(to[local]),
		.cookie = 70 + local};
}

static void call_both(struct worker_rig *r, enum sw_coll_kind kind,
	uint64_t n_elems, uint16_t root)
{
	for (uint32_t l = 0; l < LOCAL; l++) {
		struct sw_worker_coll ask = call(l, kind, n_elems);

		ask.root = root;
		assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
	}
}

static int32_t pushed(const struct worker_rig *r)
{
	return (int32_t)sw_load32(r->last[SW_PUSH].bytes + SW_HEAD_BYTES);
}

static void result(struct worker_rig *r, enum sw_coll_kind kind, uint32_t j,
	uint32_t n_elems, int32_t value)
{
	struct sw_header h = result_of(kind, j, 1, 1);

	h.payload_len = (uint16_t)(4 * n_elems);
	h.weight = 4;
	peer_fill(&r->s[0], h, value);
}

/* --- the beginning --- */

static void submit__waits_for_all_and_sums(void **state)
{
	struct worker_rig *r = open_all();
	struct sw_worker_coll ask = call(1, SW_ALL_REDUCE, 3);

	assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
	assert_int_equal(n_pushes(r), 0);
	assert_int_equal(r->w.n_open, 1);
	ask = call(0, SW_ALL_REDUCE, 3);
	assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
	assert_int_equal(n_pushes(r), 1);
	assert_int_equal(pushed(r), 3000);
	assert_int_equal(r->last[SW_PUSH].h.weight, LOCAL);
	assert_int_equal(r->last[SW_PUSH].h.aux, 0);
	result(r, SW_ALL_REDUCE, 1, 3, 9);
	assert_string_equal(wrig_events(r), "done t0 #70 SW_OK w4; done t0 #71 "
					    "SW_OK w4");
	assert_int_equal(to[0][2], 9);
	assert_int_equal(to[1][0], 9);
	assert_int_equal(r->w.n_open, 0);
	wrig_close(r);
}

struct op_case {
	enum sw_reduce_op op[LOCAL];
	double scale[LOCAL];
	int32_t want; /* expected sum of 1000 and 2000 */
};

static void call_ops(struct worker_rig *r, const struct op_case *c)
{
	for (uint32_t l = 0; l < LOCAL; l++) {
		struct sw_worker_coll ask = call(l, SW_ALL_REDUCE, 1);

		ask.op = c->op[l];
		ask.scale = c->scale[l];
		assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
	}
}

/* Local ranks are folded like members at a server, and they divide an
 * average. */
static void submit__of_each_operation(void **state)
{
	static const struct op_case cases[] = {
		{{SW_SUM, SW_SUM}, {7, 7}, 3000}, /* a sum ignores the factor */
		{{SW_AVG, SW_AVG}, {0}, 3000},
		{{SW_MIN, SW_MIN}, {0}, 1000},
		{{SW_MAX, SW_MAX}, {0}, 2000},
		{{SW_PROD, SW_PROD}, {0}, 2000000},
		{{SW_BAND, SW_BAND}, {0}, 1000 & 2000},
		{{SW_BOR, SW_BOR}, {0}, 1000 | 2000},
		{{SW_BXOR, SW_BXOR}, {0}, 1000 ^ 2000},
		{{SW_PREMUL_SUM, SW_PREMUL_SUM}, {2, -0.5}, 1000},
		{{SW_SUM, SW_PREMUL_SUM}, {7, 3}, 7000},
		{{SW_PREMUL_SUM, SW_SUM}, {3, 7}, 5000},
	};
	struct worker_rig *r = open_all();

	for (uint32_t i = 0; i < SW_ARRAY_SIZE(cases); i++) {
		call_ops(r, &cases[i]);
		assert_int_equal(n_pushes(r), 1);
		assert_int_equal(pushed(r), cases[i].want);
	}
	wrig_close(r);
}

static void submit__operations_differ(void **state)
{
	struct worker_rig *r = open_all();
	struct sw_worker_coll ask = call(0, SW_ALL_REDUCE, 1);

	assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
	ask = call(1, SW_ALL_REDUCE, 1);
	ask.op = SW_MAX;
	assert_int_equal(sw_worker_coll(&r->w, &ask), SW_EMISMATCH);
	assert_string_equal(sw_worker_why(&r->w, 0, (char[SW_TEXT_MAX]){0}),
		"group s: rank 1 calls all_reduce of max i32, rank 0 "
		"all_reduce of sum i32 (collective 1)");
	wrig_close(r);
}

/* The n-th calls of the ranks match, however far one rank is ahead. */
static void submit__one_far_ahead(void **state)
{
	struct worker_rig *r = open_all();
	struct sw_worker_coll ask = call(0, SW_ALL_REDUCE, 1);

	for (uint32_t i = 0; i < SW_COLLS; i++)
		assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
	assert_int_equal(sw_worker_coll(&r->w, &ask), SW_EAGAIN);
	assert_int_equal(n_pushes(r), 0);
	ask = call(1, SW_ALL_REDUCE, 1);
	assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
	assert_int_equal(n_pushes(r), 1);
	result(r, SW_ALL_REDUCE, 1, 1, 1);
	assert_contains(wrig_events(r), "done t0 #70");
	ask = call(0, SW_ALL_REDUCE, 1);
	assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
	assert_int_equal(sw_worker_coll(&r->w, &ask), SW_EAGAIN);
	wrig_close(r);
}

static void submit__only_ranks_of_the_group(void **state)
{
	static const uint16_t ranks[] = {3, 1};
	struct worker_rig *r = open_of(ranks, 2);
	struct sw_worker_coll ask = call(0, SW_ALL_REDUCE, 1);

	assert_int_equal(sw_worker_coll(&r->w, &ask), SW_EINVAL);
	ask = call(LOCAL, SW_ALL_REDUCE, 1);
	assert_int_equal(sw_worker_coll(&r->w, &ask), SW_EINVAL);
	ask = call(1, SW_REDUCE, 1);
	ask.root = 2; /* a rank of the job, not of the group */
	assert_int_equal(sw_worker_coll(&r->w, &ask), SW_EINVAL);
	ask.root = 1;
	/* waits for no other rank */
	assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
	assert_int_equal(n_pushes(r), 1);
	assert_int_equal(pushed(r), 2000);
	assert_int_equal(r->last[SW_PUSH].h.weight, 1);
	wrig_close(r);
}

/* --- calls that differ --- */

static void differs(struct sw_worker_coll second, const char *text)
{
	struct worker_rig *r = open_all();
	struct sw_worker_coll ask = call(0, SW_REDUCE, 2);

	ask.root = 1;
	assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
	assert_int_equal(sw_worker_coll(&r->w, &second), SW_EMISMATCH);
	assert_string_equal(
		wrig_events(r), "failed; done t0 #70 SW_EMISMATCH w0");
	assert_string_equal(
		sw_worker_why(&r->w, 0, (char[SW_TEXT_MAX]){0}), text);
	assert_int_equal(sw_worker_coll(&r->w, &ask), SW_EMISMATCH);
	wrig_tick(r, 0);
	assert_contains(wrig_tx(r), "END");
	assert_int_equal(r->w.state, SW_WORKER_RUNNING);
	assert_int_equal(r->w.n_open, 0);
	wrig_close(r);
}

static void submit__differs(void **state)
{
	struct sw_worker_coll ask = call(1, SW_ALL_REDUCE, 2);

	differs(ask, "group s: rank 1 calls all_reduce of sum i32, rank 0 "
		     "reduce of sum i32 (collective 1)");
	ask = call(1, SW_REDUCE, 2);
	ask.root = 1;
	ask.dtype = SW_F32;
	differs(ask, "group s: rank 1 calls reduce of sum f32, rank 0 reduce "
		     "of sum i32 (collective 1)");
	ask.dtype = SW_I32;
	ask.n_elems = 3;
	differs(ask, "group s: rank 1 calls reduce with another count than "
		     "rank 0 (collective 1)");
	ask.n_elems = 2;
	ask.root = 0;
	differs(ask, "group s: rank 1 calls reduce with another root than "
		     "rank 0 (collective 1)");
	ask.call = 2;
	differs(ask, "group s: rank 1 calls reduce as collective 2, rank 0 as "
		     "0");
}

static void clash__of_streams(void **state)
{
	static const uint16_t other[] = {3, 2, 1, 0};
	const struct sw_worker_tensor d = {
		.name = "s", .window_log2 = LOG2, .ranks = other, .n_ranks = 4};
	struct worker_rig *r = open_all();

	sw_worker_source(&r->w, 0, 0, from[0]);
	sw_worker_clash(&r->w, 0, 1, &d);
	assert_string_equal(sw_worker_why(&r->w, 0, (char[SW_TEXT_MAX]){0}),
		"group s: the ranks, their order, the window or the priority "
		"that rank 1 opens it with are not those of rank 0");
	wrig_close(r);
}

/* --- ranks that left or are late --- */

static void left__ends_the_group_that_lacks_it(void **state)
{
	struct worker_rig *r = open_all();
	struct sw_worker_coll ask = call(0, SW_ALL_REDUCE, 1);

	sw_worker_local_left(&r->w, 1);
	assert_int_equal(r->w.state, SW_WORKER_RUNNING);
	assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
	sw_worker_take(&r->w);
	assert_string_equal(wrig_events(r), "done t0 #70 SW_EPEER w0");
	assert_string_equal(sw_worker_why(&r->w, 0, (char[SW_TEXT_MAX]){0}),
		"rank 1 (node node) left; group s cannot complete");
	assert_int_equal(r->w.state, SW_WORKER_RUNNING);
	wrig_close(r);
}

static void left__is_not_in_the_group(void **state)
{
	static const uint16_t ranks[] = {0, 2};
	struct worker_rig *r = open_of(ranks, 2);
	struct sw_worker_coll ask = call(0, SW_ALL_REDUCE, 1);

	sw_worker_local_left(&r->w, 1);
	assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
	assert_int_equal(n_pushes(r), 1);
	assert_string_equal(wrig_events(r), "");
	wrig_close(r);
}

static void stall__names_the_local_rank(void **state)
{
	struct worker_rig *r = open_all();
	struct sw_worker_coll ask = call(0, SW_ALL_REDUCE, 1);

	assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
	for (int i = 0; i < 310; i++) {
		struct sw_header h = {
			.type = SW_KEEPALIVE, .class = SW_CLASS_CTL};

		wrig_tick(r, 100 * SW_MS);
		peer_send(&r->s[0], h, NULL);
	}
	assert_contains(wrig_events(r), "waiting 30 s for rank 1 of 4, ");
	wrig_close(r);
}

/* A stall ends the group, not the job. */
static void stall__ends_the_group(void **state)
{
	struct worker_rig *r = open_all();
	struct sw_worker_coll ask = call(0, SW_ALL_REDUCE, 1);

	r->w.params.dead_after = 10000 * SW_S;
	r->w.params.stall_limit = 60 * SW_S;
	assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
	wrig_tick(r, 61 * SW_S);
	wrig_tick(r, SW_MS);
	assert_contains(wrig_tx(r), "s0 END k0");
	assert_string_equal(sw_fault_text(sw_wtensor_why(&r->w.tensors[0]),
				    true, "s", (char[SW_TEXT_MAX]){0}),
		"waited 61 s for rank 1 of 4, group s");
	assert_int_equal(sw_wtensor_why(&r->w.tensors[0])->err, SW_ESTALL);
	assert_string_equal(wrig_events(r), "");
	wrig_close(r);
}

/* --- senders and receivers --- */

/* Parts belong to ranks, in the order of the list. All local ranks contribute
 * to each part. */
static void scatter__in_the_order_of_the_list(void **state)
{
	static const uint16_t ranks[] = {3, 1, 2, 0};
	struct worker_rig *r = open_of(ranks, 4);
	const struct sw_header *h = &r->last[SW_PUSH].h;

	call_both(r, SW_REDUCE_SCATTER, 2, 0);
	for (uint32_t part = 0; part < 4; part++) {
		assert_string_not_equal(wrig_tx_one(r), "");
		assert_int_equal(h->round, part + 1);
		assert_int_equal(h->aux, part == 0 || part == 2);
		assert_int_equal(h->weight, LOCAL);
		assert_int_equal(pushed(r), 3000 + 2 * 2 * part);
		peer_ack_one(&r->s[0], 0, part + 1);
	}
	result(r, SW_REDUCE_SCATTER, 2, 2, 11); /* the part of rank 1 */
	assert_string_equal(wrig_events(r), "");
	result(r, SW_REDUCE_SCATTER, 4, 2, 22); /* the part of rank 0 */
	assert_contains(wrig_events(r), "done t0 #71 SW_OK");
	assert_int_equal(to[1][0], 11);
	assert_int_equal(to[1][1], 11);
	assert_int_equal(to[1][2], 0);
	assert_int_equal(to[0][0], 22);
	wrig_close(r);
}

/* A local rank's part is pushed once, and copied to the other local rank. */
static void gather__own_parts_stay_here(void **state)
{
	struct worker_rig *r = open_all();

	call_both(r, SW_ALL_GATHER, 2, 0);
	assert_int_equal(n_pushes(r), 2);
	assert_int_equal(r->last[SW_WANT].h.round, 3);
	assert_int_equal(r->last[SW_WANT].h.weight, 2);
	peer_ack_one(&r->s[0], 0, 1);
	peer_ack_one(&r->s[0], 0, 2);
	for (uint32_t l = 0; l < LOCAL; l++) {
		assert_int_equal(to[l][0], 1000);
		assert_int_equal(to[l][1], 1001);
		assert_int_equal(to[l][2], 2000);
		assert_int_equal(to[l][3], 2001);
	}
	result(r, SW_ALL_GATHER, 3, 2, 33);
	assert_string_equal(wrig_events(r), "");
	result(r, SW_ALL_GATHER, 4, 2, 44);
	assert_contains(wrig_events(r), "done t0 #71 SW_OK");
	for (uint32_t l = 0; l < LOCAL; l++) {
		assert_int_equal(to[l][5], 33);
		assert_int_equal(to[l][6], 44);
	}
	wrig_close(r);
}

static void bcast__from_a_local_rank(void **state)
{
	struct worker_rig *r = open_all();

	call_both(r, SW_BCAST, 2, 1);
	assert_int_equal(n_pushes(r), 1);
	assert_int_equal(pushed(r), 2000);
	assert_int_equal(r->last[SW_PUSH].h.weight, 1);
	peer_ack_one(&r->s[0], 0, 1);
	assert_contains(wrig_events(r), "done t0 #71 SW_OK");
	assert_int_equal(to[0][1], 2001);
	assert_int_equal(to[1][1], 2001);
	wrig_close(r);
}

static void reduce__to_a_local_rank(void **state)
{
	struct worker_rig *r = open_all();

	call_both(r, SW_REDUCE, 2, 1);
	assert_int_equal(n_pushes(r), 1);
	result(r, SW_REDUCE, 1, 2, 5);
	assert_contains(wrig_events(r), "done t0 #70 SW_OK");
	assert_int_equal(to[0][0], 0);
	assert_int_equal(to[1][0], 5);
	wrig_close(r);
}

/* --- groups of local ranks --- */

static const uint16_t here[] = {1, 0};

static void check_to(uint32_t local, uint32_t i, int32_t want)
{
	if (to[local][i] != want)
		fail_msg("local rank %u, element %u: %d, not %d", local, i,
			to[local][i], want);
}

/* In a group of local ranks nothing is sent, and each kind has the same result
 * as with servers. */
static void here__every_kind(void **state)
{
	enum { N = PEER_CHUNK + 1 };
	static const enum sw_coll_kind kinds[] = {SW_ALL_REDUCE, SW_REDUCE,
		SW_BCAST, SW_REDUCE_SCATTER, SW_ALL_GATHER};

	for (size_t k = 0; k < SW_ARRAY_SIZE(kinds); k++) {
		struct worker_rig *r = open_of(here, 2);

		call_both(r, kinds[k], N, 1);
		assert_int_equal(r->w.n_open, 1);
		while (sw_worker_take(&r->w))
			;
		assert_int_equal(n_pushes(r), 0);
		assert_int_equal(r->w.n_open, 0);
		assert_contains(wrig_events(r), "done t0 #71 SW_OK");
		for (uint32_t i = 0; i < N; i++) {
			int32_t n = (int32_t)i;

			switch (kinds[k]) {
			case SW_ALL_REDUCE:
				check_to(0, i, 3000 + 2 * n);
				check_to(1, i, 3000 + 2 * n);
				break;
			case SW_REDUCE:
				check_to(0, i, 0);
				check_to(1, i, 3000 + 2 * n);
				break;
			case SW_BCAST:
				check_to(0, i, 2000 + n);
				check_to(1, i, 2000 + n);
				break;
			/* rank 1 is first in the list */
			case SW_REDUCE_SCATTER:
				check_to(1, i, 3000 + 2 * n);
				check_to(0, i, 3000 + 2 * (n + N));
				break;
			default:
				check_to(0, i, 2000 + n);
				check_to(0, N + i, 1000 + n);
				check_to(1, i, 2000 + n);
				check_to(1, N + i, 1000 + n);
			}
		}
		wrig_close(r);
	}
}

/* Local ranks divide an average themselves. */
static void here__average(void **state)
{
	struct worker_rig *r = open_of(here, 2);
	const struct op_case avg = {{SW_AVG, SW_AVG}, {0}, 0};

	call_ops(r, &avg);
	while (sw_stream_local_work(&r->w))
		;
	assert_int_equal(to[0][0], 1500);
	assert_int_equal(to[1][0], 1500);
	wrig_close(r);
}

/* Local collectives run piece by piece in several turns, in place. */
static void here__piece_by_piece(void **state)
{
	struct worker_rig *r = open_of(here, 2);
	uint32_t n_turns = 0;

	for (uint32_t i = 0; i < 30; i++)
		for (uint32_t l = 0; l < LOCAL; l++) {
			struct sw_worker_coll ask =
				call(l, SW_ALL_REDUCE, 4 * PEER_CHUNK);

			ask.to = from[l];
			assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
		}
	for (; sw_worker_take(&r->w); n_turns++)
		assert_int_equal(r->w.n_open > 0, n_turns < 1);
	assert_int_equal(n_turns, 2); /* 120 chunks of 1344 bytes */
	assert_int_equal(r->w.n_open, 0);
	wrig_close(r);
}

/* A base from a server does not make the worker send anything. */
static void here__base_of_a_server(void **state)
{
	struct worker_rig *r = open_of(here, 2);

	call_both(r, SW_ALL_REDUCE, 1, 1);
	say_base(r, 2);
	assert_int_equal(n_pushes(r), 0);
	sum(r, 3, 3);
	assert_int_equal(n_pushes(r), 0);
	wrig_close(r);
}

static void here__differs(void **state)
{
	struct worker_rig *r = open_of(here, 2);
	struct sw_worker_coll ask = call(0, SW_ALL_REDUCE, 1);

	assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
	ask = call(1, SW_ALL_REDUCE, 2);
	assert_int_equal(sw_worker_coll(&r->w, &ask), SW_EMISMATCH);
	assert_true(sw_worker_take(&r->w));
	assert_string_equal(
		wrig_events(r), "failed; done t0 #70 SW_EMISMATCH w0");
	wrig_close(r);
}

/* The tag distinguishes roots of one node. */
static void push__tag_of_the_root(void **state)
{
	uint16_t tags[2];

	for (uint16_t root = 2; root < 4; root++) {
		struct worker_rig *r = open_all();

		call_both(r, SW_BCAST, 2, root);
		wrig_tx(r);
		assert_int_equal(r->last[SW_WANT].h.aux, 1);
		tags[root - 2] = r->last[SW_WANT].h.step;
		wrig_close(r);
	}
	assert_int_not_equal(tags[0], tags[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(submit__waits_for_all_and_sums),
		cmocka_unit_test(submit__of_each_operation),
		cmocka_unit_test(submit__operations_differ),
		cmocka_unit_test(submit__one_far_ahead),
		cmocka_unit_test(submit__only_ranks_of_the_group),
		cmocka_unit_test(submit__differs),
		cmocka_unit_test(clash__of_streams),
		cmocka_unit_test(left__ends_the_group_that_lacks_it),
		cmocka_unit_test(left__is_not_in_the_group),
		cmocka_unit_test(stall__names_the_local_rank),
		cmocka_unit_test(stall__ends_the_group),
		cmocka_unit_test(scatter__in_the_order_of_the_list),
		cmocka_unit_test(gather__own_parts_stay_here),
		cmocka_unit_test(bcast__from_a_local_rank),
		cmocka_unit_test(reduce__to_a_local_rank),
		cmocka_unit_test(push__tag_of_the_root),
		cmocka_unit_test(here__every_kind),
		cmocka_unit_test(here__average),
		cmocka_unit_test(here__piece_by_piece),
		cmocka_unit_test(here__base_of_a_server),
		cmocka_unit_test(here__differs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
