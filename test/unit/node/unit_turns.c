/* unit_turns.c - the histogram of an lcore's turns.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "apps/node/turns.h"
#include "test/support/unit.h"

/* The statistics by name. */
struct said {
	char names[16][32];
	uint64_t values[16];
	uint32_t n;
};

static void put(void *out, const char *name, uint64_t value)
{
	struct said *s = out;

	assert_true(s->n < 16);
	assert_true(strlen(name) < sizeof(s->names[0]));
	strcpy(s->names[s->n], name);
	s->values[s->n++] = value;
}

static uint64_t say(const struct sw_turns *t, const char *name)
{
	struct said s = {.n = 0};

	sw_turns_put(t, "lcore3.", put, &s);
	for (uint32_t i = 0; i < s.n; i++)
		if (!strncmp(s.names[i], "lcore3.", 7) &&
			!strcmp(s.names[i] + 7, name))
			return s.values[i];
	fail_msg("no %s", name);
	return 0;
}

/* Each bucket begins where the previous one ends, and is at most an eighth
 * wide. */
static void bucket__no_gap(void **state)
{
	uint64_t first = 0;

	(void)state;
	for (uint32_t b = 0; b + 1 < SW_TURN_BUCKETS; b++) {
		uint64_t last = first;

		assert_int_equal(sw_turns_bucket(first), b);
		while (sw_turns_bucket(last + last / 8 + 1) == b)
			last += last / 8 + 1;
		while (sw_turns_bucket(last + 1) == b)
			last++;
		assert_true(last - first <= first / 8);
		first = last < 4096 ? last + 1 : first + (last - first) + 1;
		if (first > 100000)
			return;
	}
	fail_msg("too few buckets");
}

static void bucket__longest(void **state)
{
	(void)state;
	assert_int_equal(sw_turns_bucket((1ULL << SW_TURN_MAX_LOG2) - 1),
		SW_TURN_BUCKETS - 1);
	assert_int_equal(sw_turns_bucket(UINT64_MAX), SW_TURN_BUCKETS - 1);
}

static void put__none(void **state)
{
	static struct sw_turns t;

	(void)state;
	assert_int_equal(say(&t, "turns"), 0);
	assert_int_equal(say(&t, "turn_p999_ns"), 0);
	assert_int_equal(say(&t, "turn_max_ns"), 0);
}

/* 9,990 short turns and ten long ones of different lengths. */
static void put__percentiles(void **state)
{
	static struct sw_turns t;

	(void)state;
	for (uint32_t i = 0; i < 9990; i++)
		sw_turns_note(&t, i < 5000 ? 1000 : 8000);
	for (uint32_t i = 0; i < 10; i++)
		sw_turns_note(&t, i < 8 ? 150000 : 20000000);
	assert_int_equal(say(&t, "turns"), 10000);
	assert_int_equal(say(&t, "busy_ns"),
		5000 * 1000 + 4990 * 8000 + 8 * 150000 + 2 * 20000000);
	sw_turns_note_idle(&t, 70);
	assert_int_equal(say(&t, "idle_ns"), 70);
	assert_int_equal(say(&t, "turn_p50_ns"), 1024);
	assert_in_range(say(&t, "turn_p99_ns"), 8000, 9000);
	assert_in_range(say(&t, "turn_p999_ns"), 8000, 9000);
	sw_turns_note(&t, 150000); /* rank 9,991 of 10,001 */
	assert_in_range(say(&t, "turn_p999_ns"), 150000, 150000 * 9 / 8);
	assert_int_equal(say(&t, "turn_max_ns"), 20000000);
	assert_int_equal(say(&t, "turns_over_100us"), 11);
	assert_int_equal(say(&t, "turns_over_1ms"), 2);
	assert_int_equal(say(&t, "turns_over_10ms"), 2);
}

/* If no other process ran, the turn took the time of the wall clock. */
static void look__alone(void **state)
{
	struct sw_turns t = {.wall_ns = 1000, .cpu_ns = 70};

	(void)state;
	assert_int_equal(sw_turns_look(&t, 41000, 101000, 100070), 60000);
	assert_int_equal(t.wall_ns, 101000);
	assert_int_equal(t.cpu_ns, 100070);
}

/* Other processes ran for 5 ms during the turn: the result exceeds the turn's
 * own time by at most the time before it. */
static void look__others_in_turn(void **state)
{
	struct sw_turns t = {.wall_ns = 0};

	(void)state;
	assert_int_equal(
		sw_turns_look(&t, 40000, 5100000, 100000), 60000 + 40000);
}

/* The lcore slept before the turn. */
static void look__slept_before(void **state)
{
	struct sw_turns t = {.wall_ns = 0};

	(void)state;
	assert_int_equal(sw_turns_look(&t, 1000000, 1300000, 310000), 300000);
}

/* CPU clock and wall clock differ by nanoseconds. */
static void look__more_cpu_than_wall(void **state)
{
	struct sw_turns t = {.wall_ns = 0};

	(void)state;
	assert_int_equal(sw_turns_look(&t, 10000, 60000, 60100), 50000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bucket__no_gap),
		cmocka_unit_test(bucket__longest),
		cmocka_unit_test(put__none),
		cmocka_unit_test(put__percentiles),
		cmocka_unit_test(look__alone),
		cmocka_unit_test(look__others_in_turn),
		cmocka_unit_test(look__slept_before),
		cmocka_unit_test(look__more_cpu_than_wall),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
