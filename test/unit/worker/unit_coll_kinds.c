/* unit_coll_kinds.c - ranks that call different kinds under one number.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/worker/coll_rig.h"

enum { LOCAL = 2 };

static struct sw_worker_coll call(
	uint32_t local, enum sw_coll_kind kind, uint64_t n_elems)
{
	static int32_t buffer[LOCAL][4];

	return (struct sw_worker_coll){.local = local,
		.kind = kind,
		.dtype = SW_I32,
		.n_elems = n_elems,
		.from = buffer[local],
		.to = buffer[local],
		.from_bytes = sizeof(buffer[local]),
		.to_bytes = sizeof(buffer[local])};
}

/* Open member 0 of 2, with ranks 0 and 1, and two kinds of a group of all. */
static struct worker_rig *open_kinds(void)
{
	static const uint16_t ranks[] = {0, 1, 2, 3};
	const struct sw_worker_tensor d[] = {{.name = "g/a",
						     .window_log2 = LOG2,
						     .ranks = ranks,
						     .n_ranks = 4},
		{.name = "g/b",
			.window_log2 = LOG2,
			.ranks = ranks,
			.n_ranks = 4}};
	static struct worker_rig r;

	wrig_open_local(&r, 0, 2, 1, LOCAL);
	r.s[0].grant = 1 << 19;
	r.s[0].n_local = LOCAL;
	wrig_run(&r);
	assert_int_equal(sw_worker_declare(&r.w, d, 2), 0);
	wrig_tx(&r);
	peer_declared(&r.s[0]);
	wrig_tx(&r);
	wrig_events(&r);
	return &r;
}

static void kinds__of_local_ranks_under_one_number(void **state)
{
	struct worker_rig *r = open_kinds();
	struct sw_worker_coll a = call(0, SW_ALL_REDUCE, 1),
			      b = call(1, SW_REDUCE, 1);

	a.call = b.call = 7;
	b.stream = 1;
	assert_int_equal(sw_worker_coll(&r->w, &a), 0);
	assert_int_equal(sw_worker_coll(&r->w, &b), 0);
	wrig_tick(r, 900 * SW_MS);
	assert_null(sw_worker_why(&r->w, 0, (char[SW_TEXT_MAX]){0}));
	wrig_tick(r, 200 * SW_MS);
	assert_string_equal(sw_worker_why(&r->w, 0, (char[SW_TEXT_MAX]){0}),
		"group g: rank 0 calls all_reduce, rank 1 reduce "
		"(collective 7)");
	assert_int_equal(sw_worker_death(&r->w, 1), SW_EMISMATCH);
	wrig_close(r);
}

/* After a pause the worker asks the server with the number of the call that it
 * waits for, but not if collectives have no number. */
static void kinds__the_server_is_asked(void **state)
{
	for (uint32_t number = 0; number < 8; number += 7) {
		struct worker_rig *r = open_kinds();
		struct sw_query query;
		uint32_t said = 0;

		for (uint32_t l = 0; l < LOCAL; l++) {
			struct sw_worker_coll a = call(l, SW_ALL_REDUCE, 1);

			a.call = number;
			assert_int_equal(sw_worker_coll(&r->w, &a), 0);
		}
		wrig_tx(r);
		peer_ack_one(&r->s[0], 0, 1);
		for (uint32_t i = 0; i < 13; i++) {
			wrig_tick(r, 100 * SW_MS);
			wrig_tx(r);
			memcpy(&query, r->last[SW_QUERY].bytes + SW_HEAD_BYTES,
				sizeof(query));
			if (i < 9)
				assert_int_equal(query.chunk, 0);
			said |= query.chunk;
		}
		assert_int_equal(said, number);
		wrig_close(r);
	}
}

/* --- factors --- */

/* A local rank without a factor keeps all bits of an i64, even if another rank
 * has a factor. So does a factor of 1. */
static void factor__keeps_the_bits(void **state)
{
	static const int64_t odd = (INT64_C(1) << 53) + 1;
	static const struct {
		enum sw_reduce_op op[LOCAL];
		double scale[LOCAL];
		int64_t want;
	} cases[] = {
		{{SW_PREMUL_SUM, SW_SUM}, {2, 7}, 3},
		{{SW_SUM, SW_PREMUL_SUM}, {7, 2}, 3},
		{{SW_PREMUL_SUM, SW_PREMUL_SUM}, {1, 1}, 2},
		{{SW_PREMUL_SUM, SW_PREMUL_SUM}, {-1, 3}, 2},
	};
	struct worker_rig *r = open_kinds();

	for (uint32_t i = 0; i < SW_ARRAY_SIZE(cases); i++) {
		int64_t got, give = odd;

		for (uint32_t l = 0; l < LOCAL; l++) {
			struct sw_worker_coll ask = call(l, SW_ALL_REDUCE, 1);

			ask.dtype = SW_I64;
			ask.op = cases[i].op[l];
			ask.scale = cases[i].scale[l];
			ask.from = &give;
			ask.from_bytes = sizeof(give);
			assert_int_equal(sw_worker_coll(&r->w, &ask), 0);
		}
		assert_int_equal(n_pushes(r), 1);
		memcpy(&got, r->last[SW_PUSH].bytes + SW_HEAD_BYTES,
			sizeof(got));
		assert_true(got == cases[i].want * odd);
	}
	wrig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds__of_local_ranks_under_one_number),
		cmocka_unit_test(kinds__the_server_is_asked),
		cmocka_unit_test(factor__keeps_the_bits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
