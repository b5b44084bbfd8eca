/* unit_due.c - which session sends next.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include "engine/sched/due.h"
#include "test/support/env.h"

static void take_turn__empty(void **state)
{
	struct sw_due d = {0};

	for (uint32_t class = 0; class < SW_N_SPACES; class ++)
		assert_int_equal(sw_due_take_turn(&d, class), SW_MAX_SESSIONS);
}

static void take_turn__each_session_alone(void **state)
{
	struct sw_due d = {0};

	for (uint32_t i = 0; i < SW_MAX_SESSIONS; i++) {
		sw_due_put(&d, SW_CLASS_CTL, i, true);
		sw_due_put(&d, SW_CLASS_CTL, i, true);
		assert_int_equal(sw_due_take_turn(&d, SW_CLASS_CTL), i);
		assert_int_equal(sw_due_take_turn(&d, SW_CLASS_CTL), i);
		sw_due_put(&d, SW_CLASS_CTL, i, false);
		assert_int_equal(
			sw_due_take_turn(&d, SW_CLASS_CTL), SW_MAX_SESSIONS);
	}
}

/* A busy entry does not delay the others. */
static void take_turn__is_fair(void **state)
{
	static const uint32_t members[] = {0, 1, 63, 64, 130, 255};
	struct sw_due d = {0};

	for (size_t i = 0; i < SW_ARRAY_SIZE(members); i++)
		sw_due_put(&d, 2, members[i], true);
	for (uint32_t n = 0; n < 30; n++)
		assert_int_equal(sw_due_take_turn(&d, 2),
			members[n % SW_ARRAY_SIZE(members)]);
}

static void put__sets_are_apart(void **state)
{
	struct sw_due d = {0};

	sw_due_put(&d, 0, 7, true);
	sw_due_put(&d, 1, 9, true);
	assert_int_equal(sw_due_take_turn(&d, 0), 7);
	assert_int_equal(sw_due_take_turn(&d, 1), 9);
	assert_int_equal(sw_due_take_turn(&d, 2), SW_MAX_SESSIONS);
	sw_due_put(&d, 0, 9, false);
	assert_int_equal(sw_due_take_turn(&d, 1), 9);
}

/* In any 256 turns every member that stays gets one. */
static void take_turn__nobody_starves(void **state)
{
	struct sw_due d = {0};
	uint64_t rng = 3;
	uint32_t since = 0;

	sw_due_put(&d, 0, 77, true);
	for (uint32_t n = 0; n < 20000; n++) {
		uint32_t i = (uint32_t)test_random(&rng) % SW_MAX_SESSIONS;
		uint32_t turn;

		if (i != 77)
			sw_due_put(&d, 0, i, test_random(&rng) & 1);
		turn = sw_due_take_turn(&d, 0);
		assert_true(turn < SW_MAX_SESSIONS);
		since = turn == 77 ? 0 : since + 1;
		assert_true(since < SW_MAX_SESSIONS);
	}
}

/* The most urgent class is first, but each session gets its turn. */
static void take_data__by_class_and_in_turn(void **state)
{
	struct sw_due d = {0};
	uint32_t count[4] = {0};
	bool is_turn;

	assert_int_equal(sw_due_take_data(&d, NULL, &is_turn), SW_MAX_SESSIONS);
	sw_due_put(&d, 0, 0, true);
	sw_due_put(&d, 3, 1, true);
	sw_due_put(&d, 7, 2, true);
	sw_due_put(&d, SW_CLASS_CTL, 3, true);
	for (uint32_t i = 0; i < 30 * SW_DUE_TURN; i++) {
		uint32_t s = sw_due_take_data(&d, NULL, &is_turn);

		assert_true(s < 3);
		assert_true(is_turn || s == 0);
		count[s]++;
	}
	assert_int_equal(count[1], 10);
	assert_int_equal(count[2], 10);
}

/* Within a class the smallest key is first, whatever keys other classes
 * have. */
static void take_data__by_key(void **state)
{
	uint64_t keys[SW_MAX_SESSIONS] = {[2] = 5, [64] = 4, [200] = 9};
	struct sw_due d = {0};
	bool is_turn;

	assert_int_equal(sw_due_take_data(&d, keys, &is_turn), SW_MAX_SESSIONS);
	sw_due_put(&d, 6, 2, true);
	sw_due_put(&d, 6, 64, true);
	sw_due_put(&d, 6, 200, true);
	sw_due_put(&d, 7, 3, true); /* with key 0 */
	assert_int_equal(sw_due_take_data(&d, keys, &is_turn), 64);
	keys[64] = 6;
	assert_int_equal(sw_due_take_data(&d, keys, &is_turn), 2);
	keys[2] = 9;
	keys[64] = 9; /* all keys are equal */
	assert_int_equal(sw_due_take_data(&d, keys, &is_turn), 2);
	sw_due_put(&d, 6, 2, false);
	assert_int_equal(sw_due_take_data(&d, keys, &is_turn), 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(take_turn__empty),
		cmocka_unit_test(take_turn__each_session_alone),
		cmocka_unit_test(take_turn__is_fair),
		cmocka_unit_test(put__sets_are_apart),
		cmocka_unit_test(take_turn__nobody_starves),
		cmocka_unit_test(take_data__by_class_and_in_turn),
		cmocka_unit_test(take_data__by_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
