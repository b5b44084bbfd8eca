/* unit_slot.c - the rules of a slot of a stream.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include "engine/sums/stream.h"
#include "engine/wire/wire.h"

enum { A, B, C, W = 16, ALL = 7 };

static struct sw_slot slot(
	uint32_t j, enum sw_coll_kind kind, uint32_t root, uint64_t got)
{
	return (struct sw_slot){.chunk = j,
		.op = sw_coll_op(kind, SW_ROUND_SUM),
		.root = (uint8_t)root,
		.got = got};
}

static enum sw_push_verdict judge(
	const struct sw_slot *s, uint32_t base, uint32_t j, uint32_t member)
{
	return sw_slot_judge_push(s, base, W, j, member);
}

/* --- senders and receivers --- */

static void from_to__of_each_kind(void **state)
{
	static const struct {
		enum sw_coll_kind kind;
		uint64_t from, to;
	} want[] = {
		{SW_ALL_REDUCE, ALL, ALL},
		{SW_REDUCE_SCATTER, ALL, 1 << B},
		{SW_ALL_GATHER, 1 << B, 1 << A | 1 << C},
		{SW_BCAST, 1 << B, 1 << A | 1 << C},
		{SW_REDUCE, ALL, 1 << B},
		{SW_BARRIER, ALL, ALL},
	};

	assert_int_equal(SW_ARRAY_SIZE(want), SW_N_COLL_KINDS - 1);
	for (size_t i = 0; i < SW_ARRAY_SIZE(want); i++) {
		struct sw_slot s = slot(1, want[i].kind, B, 0);

		assert_int_equal(sw_slot_from(&s, ALL), want[i].from);
		assert_int_equal(sw_slot_to(&s, ALL), want[i].to);
	}
}

/* Every member sends or receives, so the base never passes a member that has
 * not taken part. */
static void from_to__leave_nobody_out(void **state)
{
	for (uint32_t kind = 1; kind < SW_N_COLL_KINDS; kind++)
		for (uint32_t root = 0; root < 64; root++) {
			struct sw_slot s =
				slot(1, (enum sw_coll_kind)kind, root, 0);

			assert_true((sw_slot_from(&s, ~0ULL) |
					    sw_slot_to(&s, ~0ULL)) == ~0ULL);
		}
}

/* --- pushes --- */

static void judge_push__in_the_window(void **state)
{
	struct sw_slot s = {0};

	for (uint32_t j = 1; j <= W; j++)
		assert_int_equal(judge(&s, 1, j, A), SW_PUSH_FOLD);
	s = slot(1, SW_ALL_REDUCE, A, 1 << B);
	assert_int_equal(judge(&s, 1, 1, A), SW_PUSH_FOLD);
}

static void judge_push__past(void **state)
{
	struct sw_slot s = {0};

	assert_int_equal(judge(&s, 1, 0, A), SW_PUSH_OLD);
	assert_int_equal(judge(&s, 1, UINT32_MAX, A), SW_PUSH_OLD);
	s = slot(7, SW_ALL_REDUCE, A, ALL);
	assert_int_equal(judge(&s, 8, 7, A), SW_PUSH_OLD);
	assert_int_equal(judge(&s, 8, 7, 63), SW_PUSH_OLD);
}

static void judge_push__ahead(void **state)
{
	struct sw_slot s = slot(1, SW_ALL_REDUCE, A, 1 << A);

	assert_int_equal(judge(&s, 1, 1 + W, A), SW_PUSH_VIOLATION);
	assert_int_equal(judge(&s, 1, 1 + 2 * W, B), SW_PUSH_VIOLATION);
	assert_int_equal(judge(&s, 2, 1 + W, A), SW_PUSH_FOLD);
}

static void judge_push__duplicate(void **state)
{
	struct sw_slot s = slot(3, SW_ALL_REDUCE, A, 1 << A);

	assert_int_equal(judge(&s, 1, 3, A), SW_PUSH_HAVE);
	s.got = ALL;
	s.is_ready = true;
	assert_int_equal(judge(&s, 1, 3, A), SW_PUSH_DONE);
	s.is_done = true; /* the base waits for an older chunk */
	assert_int_equal(judge(&s, 1, 3, A), SW_PUSH_DONE);
}

/* The slot still has the chunk of one window ago. */
static void judge_push__slot_of_an_older_chunk(void **state)
{
	struct sw_slot s = slot(3, SW_ALL_REDUCE, A, ALL);

	s.is_ready = s.is_done = true;
	assert_int_equal(judge(&s, 4, 3 + W, A), SW_PUSH_FOLD);
}

static void judge_push__wraps_around(void **state)
{
	uint32_t base = UINT32_MAX - 2;
	struct sw_slot s = slot(0, SW_ALL_REDUCE, A, 1 << A);

	assert_int_equal(judge(&s, base, base - 1, A), SW_PUSH_OLD);
	assert_int_equal(judge(&s, base, base, A), SW_PUSH_FOLD);
	assert_int_equal(judge(&s, base, 0, A), SW_PUSH_HAVE);
	assert_int_equal(judge(&s, base, 0, B), SW_PUSH_FOLD);
	assert_int_equal(judge(&s, base, base + W - 1, A), SW_PUSH_FOLD);
	assert_int_equal(judge(&s, base, base + W, A), SW_PUSH_VIOLATION);
	assert_int_equal(judge(&s, 0, UINT32_MAX, A), SW_PUSH_OLD);
}

static void note__ready_when_all_have_given(void **state)
{
	struct sw_slot s = slot(1, SW_ALL_REDUCE, A, 0);

	assert_false(sw_slot_note(&s, ALL, C, 2));
	assert_false(sw_slot_note(&s, ALL, A, 1));
	assert_true(sw_slot_note(&s, ALL, B, 4));
	assert_true(s.is_ready);
	assert_int_equal(s.weight, 7);
}

/* A receiver's push makes nothing ready, before or after the sender's. */
static void note__receivers(void **state)
{
	struct sw_slot s = slot(1, SW_BCAST, B, 0);

	assert_false(sw_slot_note(&s, ALL, A, 0));
	assert_true(sw_slot_note(&s, ALL, B, 1));
	assert_false(sw_slot_note(&s, ALL, C, 0));
	assert_int_equal(s.got, ALL);
	assert_int_equal(s.weight, 1);
}

/* --- queries --- */

static enum sw_query_verdict query(
	const struct sw_slot *s, uint32_t base, uint32_t j, uint32_t member)
{
	return sw_slot_judge_query(s, ALL, base, j, member);
}

static void judge_query__from_need_to_gone(void **state)
{
	struct sw_slot s = {0};

	assert_int_equal(query(&s, 1, 1, A), SW_QUERY_NEED);
	s = slot(1, SW_ALL_REDUCE, A, 1 << B);
	assert_int_equal(query(&s, 1, 1, A), SW_QUERY_NEED);
	assert_int_equal(query(&s, 1, 1, B), SW_QUERY_WAIT);
	s.got = ALL;
	s.is_ready = true;
	assert_int_equal(query(&s, 1, 1, A), SW_QUERY_RESULT);
	s.held = 1 << A;
	assert_int_equal(query(&s, 1, 1, A), SW_QUERY_GONE);
	assert_int_equal(query(&s, 1, 1, B), SW_QUERY_RESULT);
	assert_int_equal(query(&s, 2, 1, B), SW_QUERY_GONE);
}

static void judge_query__not_a_receiver(void **state)
{
	struct sw_slot s = slot(1, SW_REDUCE, A, ALL);

	assert_int_equal(query(&s, 1, 1, B), SW_QUERY_WAIT);
	s.is_ready = true;
	assert_int_equal(query(&s, 1, 1, A), SW_QUERY_RESULT);
	assert_int_equal(query(&s, 1, 1, B), SW_QUERY_GONE);
}

static void judge_query__wraps_around(void **state)
{
	struct sw_slot s = slot(1, SW_ALL_REDUCE, A, 1 << A);

	assert_int_equal(query(&s, UINT32_MAX, 1, A), SW_QUERY_WAIT);
	assert_int_equal(
		query(&s, UINT32_MAX, UINT32_MAX - 1, A), SW_QUERY_GONE);
	assert_int_equal(query(&s, 0, UINT32_MAX, A), SW_QUERY_GONE);
	assert_int_equal(query(&s, UINT32_MAX, 0, A), SW_QUERY_NEED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(from_to__of_each_kind),
		cmocka_unit_test(from_to__leave_nobody_out),
		cmocka_unit_test(judge_push__in_the_window),
		cmocka_unit_test(judge_push__past),
		cmocka_unit_test(judge_push__ahead),
		cmocka_unit_test(judge_push__duplicate),
		cmocka_unit_test(judge_push__slot_of_an_older_chunk),
		cmocka_unit_test(judge_push__wraps_around),
		cmocka_unit_test(note__ready_when_all_have_given),
		cmocka_unit_test(note__receivers),
		cmocka_unit_test(judge_query__from_need_to_gone),
		cmocka_unit_test(judge_query__not_a_receiver),
		cmocka_unit_test(judge_query__wraps_around),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
