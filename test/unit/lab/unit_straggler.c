/* unit_straggler.c - quantiles of drawn times against their distributions.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <math.h>
#include <stdlib.h>

#include "apps/lab/sim/straggler.h"

enum { DRAWS = 40001, US = 1000 };

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Check the quantiles of 10, 50, 90 and 99 %, in microseconds. */
static void expect(const char *text, const double quantiles[4])
{
	static const uint32_t ranks[] = {4000, 20000, 36000, 39600};
	static uint64_t ns[DRAWS];
	struct sw_sim_straggler s;
	uint64_t rng = 7;
	char why[200];

	assert_int_equal(sw_sim_straggler_open(&s, text, why, sizeof(why)), 0);
	for (uint32_t i = 0; i < DRAWS; i++)
		ns[i] = sw_sim_straggler_draw(&s, &rng);
	qsort(ns, DRAWS, sizeof(*ns), compare);
	for (uint32_t q = 0; q < 4; q++)
		if (fabs((double)ns[ranks[q]] / US - quantiles[q]) >
			0.04 * quantiles[q] + 0.001)
			fail_msg("%s: quantile %u is %.3f us, not %.3f", text,
				q, (double)ns[ranks[q]] / US, quantiles[q]);
	sw_sim_straggler_close(&s);
}

static void draw__has_the_quantiles(void **state)
{
	expect("constant 5ms", (const double[]){5000, 5000, 5000, 5000});
	expect("uniform 1ms 2ms", (const double[]){1100, 1500, 1900, 1990});
	expect("exponential 1ms",
		(const double[]){105.36, 693.15, 2302.6, 4605.2});
	expect("normal 10ms 1ms",
		(const double[]){8718.4, 10000, 11281.6, 12326.3});
	expect("normal 0s 1ms", (const double[]){0, 0, 1281.6, 2326.3});
	expect("lognormal 1ms 0.5",
		(const double[]){526.85, 1000, 1898.1, 3200.3});
	expect("pareto 1ms 1.5",
		(const double[]){1072.8, 1587.4, 4641.6, 21544});
}

/* Drawn times do not depend on a machine's floating point. */
static void draw__is_the_same_everywhere(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} rows[] = {
		{"exponential 1ms", 568169},
		{"normal 10ms 1ms", 10429452},
		{"lognormal 1ms 0.5", 1239522},
		{"pareto 1ms 1.5", 1460501},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sw_sim_straggler s;
		uint64_t rng = 1;
		char why[200];

		assert_int_equal(sw_sim_straggler_open(
					 &s, rows[i].text, why, sizeof(why)),
			0);
		assert_int_equal(sw_sim_straggler_draw(&s, &rng), rows[i].ns);
	}
}

/* No drawn time exceeds an hour, and none wraps around. */
static void draw__ends_at_an_hour(void **state)
{
	static const char *const texts[] = {
		"pareto 60min 0.01", "lognormal 60min 10", "exponential 60min"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct sw_sim_straggler s;
		uint64_t rng = 3, most = 0;
		char why[200];

		assert_int_equal(
			sw_sim_straggler_open(&s, texts[i], why, sizeof(why)),
			0);
		for (uint32_t k = 0; k < 1000; k++) {
			uint64_t ns = sw_sim_straggler_draw(&s, &rng);

			most = ns > most ? ns : most;
		}
		assert_int_equal(most, SW_SIM_STRAGGLER_MOST_NS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(draw__has_the_quantiles),
		cmocka_unit_test(draw__is_the_same_everywhere),
		cmocka_unit_test(draw__ends_at_an_hour),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
