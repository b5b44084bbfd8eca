/* unit_cell.c - the rules of a cell.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include "engine/sums/cell.h"

enum { A, B, C };

#define BIT(member) (1ULL << (member))

static struct sw_chunk fresh(void)
{
	struct sw_chunk c;

	memset(&c, 0xff, sizeof(c));
	sw_chunk_init(&c);
	return c;
}

/* Push as a server does: judge, and fold if the verdict says so. */
static enum sw_push_verdict push(
	struct sw_chunk *c, uint32_t round, uint32_t member, uint64_t expected)
{
	enum sw_push_verdict v = sw_cell_judge_push(c, round, member);
	struct sw_cell *cell = &c->cell[round & 1];

	if (v != SW_PUSH_FOLD)
		return v;
	if (cell->round != round)
		sw_cell_open(cell, round, (uint16_t)round);
	cell->is_done = sw_cell_fold(cell, BIT(member), 1, expected);
	return v;
}

static void complete(struct sw_chunk *c, uint32_t round, uint64_t expected)
{
	for (uint32_t m = 0; m < 64; m++)
		if (expected & BIT(m))
			assert_int_equal(
				push(c, round, m, expected), SW_PUSH_FOLD);
	assert_true(c->cell[round & 1].is_done);
}

/* Return a chunk that has completed rounds 1 to @round. */
static struct sw_chunk after_rounds(uint32_t round, uint64_t expected)
{
	struct sw_chunk c = fresh();

	for (uint32_t r = 1; r <= round; r++)
		complete(&c, r, expected);
	return c;
}

static void init__first_round_is_1(void **state)
{
	struct sw_chunk c = fresh();

	assert_int_equal(sw_cell_judge_push(&c, 1, A), SW_PUSH_FOLD);
	assert_int_equal(sw_cell_judge_push(&c, 2, A), SW_PUSH_VIOLATION);
	assert_int_equal(sw_cell_judge_push(&c, 3, A), SW_PUSH_VIOLATION);
	assert_null(sw_chunk_owed(&c, A));
	assert_int_equal(c.inflight, 0);
}

/* Rounds before the first have no result to send. */
static void init__rounds_before_the_first(void **state)
{
	static const uint32_t rounds[] = {
		0, UINT32_MAX, UINT32_MAX - 1, UINT32_MAX - 2, 0x80000002};
	struct sw_chunk c = fresh();

	for (size_t i = 0; i < SW_ARRAY_SIZE(rounds); i++) {
		assert_int_equal(
			sw_cell_judge_push(&c, rounds[i], A), SW_PUSH_OLD);
		assert_int_not_equal(
			sw_cell_judge_query(&c, rounds[i], A), SW_QUERY_RESULT);
	}
	assert_int_not_equal(sw_cell_judge_query(&c, 0, 63), SW_QUERY_RESULT);
}

static void judge_push__in_order(void **state)
{
	struct sw_chunk c = fresh();

	for (uint32_t r = 1; r < 20; r++) {
		assert_int_equal(push(&c, r, B, 3), SW_PUSH_FOLD);
		assert_int_equal(push(&c, r, A, 3), SW_PUSH_FOLD);
		assert_true(c.cell[r & 1].is_done);
	}
}

static void judge_push__duplicate(void **state)
{
	struct sw_chunk c = fresh();

	assert_int_equal(push(&c, 1, A, 3), SW_PUSH_FOLD);
	assert_int_equal(push(&c, 1, A, 3), SW_PUSH_HAVE);
	assert_int_equal(c.cell[1].weight, 1);
	assert_int_equal(push(&c, 1, B, 3), SW_PUSH_FOLD);
	assert_int_equal(push(&c, 1, A, 3), SW_PUSH_DONE);
}

static void judge_push__past(void **state)
{
	struct sw_chunk c = after_rounds(3, 3);

	push(&c, 4, A, 3);
	assert_int_equal(sw_cell_judge_push(&c, 3, A), SW_PUSH_DONE);
	assert_int_equal(sw_cell_judge_push(&c, 2, A), SW_PUSH_OLD);
	assert_int_equal(sw_cell_judge_push(&c, 2, B), SW_PUSH_OLD);
	assert_int_equal(sw_cell_judge_push(&c, 1, A), SW_PUSH_OLD);
}

static void judge_push__future(void **state)
{
	struct sw_chunk c = after_rounds(1, 3);

	push(&c, 2, A, 3); /* B has not pushed round 2 */
	assert_int_equal(sw_cell_judge_push(&c, 3, A), SW_PUSH_VIOLATION);
	assert_int_equal(sw_cell_judge_push(&c, 4, A), SW_PUSH_VIOLATION);
	assert_int_equal(sw_cell_judge_push(&c, 100, A), SW_PUSH_VIOLATION);
	assert_int_equal(
		sw_cell_judge_push(&c, 0x7ffffff0, A), SW_PUSH_VIOLATION);
	push(&c, 2, B, 3);
	assert_int_equal(sw_cell_judge_push(&c, 3, A), SW_PUSH_FOLD);
	assert_int_equal(sw_cell_judge_push(&c, 4, A), SW_PUSH_VIOLATION);
}

/* A finished sum is never folded into, even by a member that was not
 * expected. */
static void judge_push__stranger_into_done(void **state)
{
	struct sw_chunk c = after_rounds(1, 3);

	assert_int_equal(sw_cell_judge_push(&c, 1, C), SW_PUSH_DONE);
}

static void judge_push__changes_nothing(void **state)
{
	struct sw_chunk c = after_rounds(2, 3), before = c;

	for (uint32_t r = 0; r < 6; r++)
		sw_cell_judge_push(&c, r, A);
	assert_memory_equal(&c, &before, sizeof(c));
}

static void may_recycle__needs_the_other_done(void **state)
{
	struct sw_chunk c = after_rounds(2, 3);

	assert_true(sw_cell_may_recycle(&c, 3));
	assert_false(sw_cell_may_recycle(&c, 4));
	assert_false(sw_cell_may_recycle(&c, 2));
	c.cell[0].is_done = false; /* round 2 still accumulates */
	assert_false(sw_cell_may_recycle(&c, 3));
	c.cell[0].is_done = true;
	c.cell[1].is_done = false; /* round 1 was never finished */
	assert_false(sw_cell_may_recycle(&c, 3));
}

static void open__forgets_the_round_before_last(void **state)
{
	struct sw_chunk c = after_rounds(2, 3);
	struct sw_cell *cell = &c.cell[1];

	sw_cell_open(cell, 3, 30);
	assert_int_equal(cell->got, 0);
	assert_int_equal(cell->weight, 0);
	assert_int_equal(cell->round, 3);
	assert_int_equal(cell->step, 30);
	assert_false(cell->is_done);
	assert_true(c.cell[0].is_done);
}

static void fold__covers_the_expected(void **state)
{
	struct sw_cell cell = {0};

	assert_false(sw_cell_fold(&cell, BIT(63), 2, BIT(0) | BIT(63)));
	assert_true(sw_cell_fold(&cell, BIT(0), 3, BIT(0) | BIT(63)));
	assert_int_equal(cell.weight, 5);
	cell = (struct sw_cell){0};
	assert_false(sw_cell_fold(&cell, BIT(C), 1, 3));
	assert_false(sw_cell_fold(&cell, BIT(A), 1, 3));
	/* C's push also counts */
	assert_true(sw_cell_fold(&cell, BIT(B), 1, 3));
	assert_int_equal(cell.weight, 3);
}

static void newest__of_two(void **state)
{
	struct sw_chunk c = fresh();

	push(&c, 1, A, 3);
	assert_null(sw_chunk_owed(&c, A));
	push(&c, 1, B, 3);
	assert_int_equal(sw_chunk_owed(&c, A)->round, 1);
	push(&c, 2, A, 3);
	assert_int_equal(sw_chunk_owed(&c, A)->round, 1);
	push(&c, 2, B, 3);
	assert_int_equal(sw_chunk_owed(&c, A)->round, 2);
	push(&c, 3, A, 3);
	assert_int_equal(sw_chunk_owed(&c, A)->round, 2);
}

/* If a result was sent twice, the fate of the older frame has no effect. */
static void settle__the_newest(void **state)
{
	struct sw_chunk c = after_rounds(1, 3);

	assert_false(sw_chunk_settle(&c, BIT(A), 1)); /* it was not sent */
	c.inflight = 1 << A | 1 << B;
	assert_false(sw_chunk_settle(&c, BIT(A), 2));
	push(&c, 2, A, 3);
	push(&c, 2, B, 3);
	assert_false(sw_chunk_settle(&c, BIT(A), 1));
	assert_false(sw_chunk_settle(&c, BIT(A), 3));
	assert_true(sw_chunk_settle(&c, BIT(A), 2));
	assert_false(sw_chunk_settle(&c, BIT(A), 2)); /* a second time */
	assert_int_equal(c.inflight, 1 << B);
}

static void judge_query__four_answers(void **state)
{
	struct sw_chunk c = after_rounds(1, 3);

	assert_int_equal(sw_cell_judge_query(&c, 1, A), SW_QUERY_RESULT);
	assert_int_equal(sw_cell_judge_query(&c, 2, A), SW_QUERY_NEED);
	push(&c, 2, A, 3);
	assert_int_equal(sw_cell_judge_query(&c, 2, A), SW_QUERY_WAIT);
	assert_int_equal(sw_cell_judge_query(&c, 2, B), SW_QUERY_NEED);
	/* A has pushed round 2, so it held round 1; B may still lack it. */
	assert_int_equal(sw_cell_judge_query(&c, 1, A), SW_QUERY_GONE);
	assert_int_equal(sw_cell_judge_query(&c, 1, B), SW_QUERY_RESULT);
	push(&c, 2, B, 3);
	assert_int_equal(sw_cell_judge_query(&c, 2, A), SW_QUERY_RESULT);
	assert_int_equal(sw_cell_judge_query(&c, 1, B), SW_QUERY_GONE);
}

static void judge_query__past_and_future(void **state)
{
	struct sw_chunk c = after_rounds(5, 3);

	push(&c, 6, A, 3);
	assert_int_equal(sw_cell_judge_query(&c, 4, A), SW_QUERY_GONE);
	assert_int_equal(sw_cell_judge_query(&c, 3, B), SW_QUERY_GONE);
	assert_int_equal(sw_cell_judge_query(&c, 7, A), SW_QUERY_NEED);
	assert_int_equal(sw_cell_judge_query(&c, 8, B), SW_QUERY_NEED);
}

static void round_before__wraps(void **state)
{
	assert_true(sw_round_before(1, 2));
	assert_false(sw_round_before(2, 2));
	assert_false(sw_round_before(3, 2));
	assert_true(sw_round_before(UINT32_MAX, 0));
	assert_false(sw_round_before(0, UINT32_MAX));
}

/* All verdicts hold across rounds 2^32 - 1, 0 and 1. */
static void rounds__wrap(void **state)
{
	uint32_t at = UINT32_MAX - 4;
	struct sw_chunk c = {
		.cell = {{.round = at, .got = 3, .is_done = true},
			{.round = at - 1, .got = 3, .is_done = true}}};

	if (at & 1) {
		struct sw_cell swap = c.cell[0];

		c.cell[0] = c.cell[1];
		c.cell[1] = swap;
	}
	for (uint32_t r = at + 1; r != 6; r++) {
		assert_int_equal(
			sw_cell_judge_push(&c, r + 1, A), SW_PUSH_VIOLATION);
		assert_int_equal(sw_cell_judge_query(&c, r, A), SW_QUERY_NEED);
		assert_int_equal(push(&c, r, A, 3), SW_PUSH_FOLD);
		assert_int_equal(push(&c, r, A, 3), SW_PUSH_HAVE);
		assert_int_equal(sw_cell_judge_query(&c, r, A), SW_QUERY_WAIT);
		assert_int_equal(sw_chunk_owed(&c, A)->round, r - 1);
		assert_int_equal(push(&c, r, B, 3), SW_PUSH_FOLD);
		assert_int_equal(push(&c, r - 1, B, 3), SW_PUSH_DONE);
		assert_int_equal(push(&c, r - 2, B, 3), SW_PUSH_OLD);
		assert_int_equal(sw_chunk_owed(&c, A)->round, r);
		assert_int_equal(
			sw_cell_judge_query(&c, r, B), SW_QUERY_RESULT);
		assert_int_equal(
			sw_cell_judge_query(&c, r - 1, B), SW_QUERY_GONE);
		assert_int_equal(
			sw_cell_judge_query(&c, r - 2, B), SW_QUERY_GONE);
	}
}

/* 64 members push in any order, each once. */
static void fold__64_members(void **state)
{
	struct sw_chunk c = fresh();

	for (uint32_t i = 0; i < 64; i++) {
		assert_int_equal(push(&c, 1, i * 37 % 64, ~0ULL), SW_PUSH_FOLD);
		assert_int_equal(c.cell[1].is_done, i == 63);
	}
	assert_int_equal(c.cell[1].weight, 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(init__first_round_is_1),
		cmocka_unit_test(init__rounds_before_the_first),
		cmocka_unit_test(judge_push__in_order),
		cmocka_unit_test(judge_push__duplicate),
		cmocka_unit_test(judge_push__past),
		cmocka_unit_test(judge_push__future),
		cmocka_unit_test(judge_push__stranger_into_done),
		cmocka_unit_test(judge_push__changes_nothing),
		cmocka_unit_test(may_recycle__needs_the_other_done),
		cmocka_unit_test(open__forgets_the_round_before_last),
		cmocka_unit_test(fold__covers_the_expected),
		cmocka_unit_test(newest__of_two),
		cmocka_unit_test(settle__the_newest),
		cmocka_unit_test(judge_query__four_answers),
		cmocka_unit_test(judge_query__past_and_future),
		cmocka_unit_test(round_before__wraps),
		cmocka_unit_test(rounds__wrap),
		cmocka_unit_test(fold__64_members),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
