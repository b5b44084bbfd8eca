/* unit_tune.c - the Gaussian process, and searches with and without it.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <math.h>
#include <string.h>

#include "apps/lab/tune_text.h"
#include "engine/base/error.h"
#include "pmd/client/tuner/tune_search.h"
#include "test/support/env.h"

static const struct sw_tune_space space = {
	.min = {64 << 10, 64 << 10}, .max = {64 << 20, 256 << 20}};

static void assert_near(double a, double b, double tolerance)
{
	if (fabs(a - b) > tolerance)
		fail_msg("%g is not %g", a, b);
}

/* --- the process --- */

static double hill(const double x[2])
{
	return 3 + pow(x[0] - 0.7, 2) + 0.5 * pow(x[1] - 0.2, 2);
}

static void gp__goes_through_what_it_saw(void **state)
{
	double x[16][2], y[16], mean, sd, far[2] = {0.5, 0.5};
	struct sw_gp gp;

	for (uint32_t i = 0; i < 16; i++) {
		x[i][0] = i / 4 / 3.0;
		x[i][1] = i % 4 / 3.0;
		y[i] = hill(x[i]);
	}
	assert_int_equal(sw_gp_fit(&gp, (const double(*)[2])x, y, 16), 0);
	for (uint32_t i = 0; i < 16; i++) {
		sw_gp_predict(&gp, x[i], &mean, &sd);
		assert_near(mean, y[i], 0.01);
		assert_true(sd < 0.02);
	}
	sw_gp_predict(&gp, far, &mean, &sd);
	assert_near(mean, hill(far), 0.05);
	assert_true(sd > 0);
}

/* Far from all observations the process predicts its prior. */
static void gp__knows_nothing_far_away(void **state)
{
	const double x[1][2] = {{0, 0}}, y[1] = {5}, far[2] = {90, 90};
	struct sw_gp gp;
	double mean, sd;

	assert_int_equal(sw_gp_fit(&gp, x, y, 1), 0);
	sw_gp_predict(&gp, far, &mean, &sd);
	assert_near(mean, 5, 1e-9);
	assert_near(sd, 1, 1e-6);
	/* z = 0: the improvement is sd / sqrt(2 pi) */
	assert_near(sw_gp_improvement(&gp, far, 5, 0), 0.398942, 1e-5);
	assert_true(sw_gp_improvement(&gp, far, 5, 1) < 0.1);
}

static void gp__refuses(void **state)
{
	const double x[2][2] = {{0, 0}, {1, NAN}}, y[2] = {1, INFINITY};
	const double same[3][2] = {{0.5, 0.5}, {0.5, 0.5}, {0.5, 0.5}};
	const double three[3] = {1, 1, 1};
	struct sw_gp gp;

	assert_int_equal(sw_gp_fit(&gp, x, y, 0), SW_EINVAL);
	assert_int_equal(sw_gp_fit(&gp, x, y, SW_GP_MAX + 1), SW_EINVAL);
	assert_int_equal(sw_gp_fit(&gp, x, y, 2), SW_EINVAL);
	/* three observations of one point do not make the fit fail */
	assert_int_equal(sw_gp_fit(&gp, same, three, 3), 0);
}

/* --- the searches --- */

/* A parabola over the logarithms, with a minimum of 1 s at 4 MiB and 32 MiB. */
static double bowl(struct sw_tune_point p)
{
	double a = log2((double)p.partition_bytes / (4 << 20));
	double b = log2((double)p.credit_bytes / (32 << 20));

	return 1 + 0.02 * a * a + 0.01 * b * b;
}

static uint32_t trials_until(enum sw_tune_method method, uint64_t seed,
	double wanted, struct sw_tune *t)
{
	sw_tune_init(t, method, &space, seed);
	for (uint32_t i = 1; i <= SW_GP_MAX; i++) {
		struct sw_tune_point p = sw_tune_ask(t);

		assert_in_range(p.partition_bytes, space.min.partition_bytes,
			space.max.partition_bytes);
		assert_in_range(p.credit_bytes, space.min.credit_bytes,
			space.max.credit_bytes);
		assert_int_equal(sw_tune_tell(t, bowl(p)), 0);
		if (bowl(p) <= wanted)
			return i;
	}
	return SW_GP_MAX + 1;
}

static void search__bo_needs_few_trials(void **state)
{
	struct sw_tune t;
	uint32_t sum = 0;

	for (uint64_t seed = 1; seed <= 10; seed++)
		sum += trials_until(SW_TUNE_BO, seed, 1.03, &t);
	assert_true(sum <= 10 * 10);
}

static void search__all_stay_inside_and_learn(void **state)
{
	struct sw_tune t;

	for (uint32_t m = 0; m < SW_N_TUNE_METHODS; m++) {
		double s;

		trials_until(m, 3, 0, &t); /* use all trials */
		assert_int_equal(t.n, SW_GP_MAX);
		assert_true(bowl(sw_tune_best(&t, &s)) <= 1.1);
		assert_near(s, bowl(sw_tune_best(&t, &s)), 1e-6);
	}
	assert_null(sw_tune_method_name(SW_N_TUNE_METHODS));
}

static void search__same_seed_same_points(void **state)
{
	for (uint32_t m = 0; m < SW_N_TUNE_METHODS; m++) {
		struct sw_tune a, b;

		sw_tune_init(&a, m, &space, 5);
		sw_tune_init(&b, m, &space, 5);
		for (uint32_t i = 0; i < 12; i++) {
			struct sw_tune_point p = sw_tune_ask(&a);
			struct sw_tune_point q = sw_tune_ask(&b);

			assert_memory_equal(&p, &q, sizeof(p));
			sw_tune_tell(&a, bowl(p));
			sw_tune_tell(&b, bowl(q));
		}
	}
}

static void search__grid_visits_all(void **state)
{
	struct sw_tune t;

	sw_tune_init(&t, SW_TUNE_GRID_SEARCH, &space, 1);
	for (uint32_t i = 0; i < SW_TUNE_GRID * SW_TUNE_GRID; i++) {
		struct sw_tune_point p = sw_tune_ask(&t);
		struct sw_tune_point q = sw_tune_grid_point(&space, i);

		assert_memory_equal(&p, &q, sizeof(p));
		sw_tune_tell(&t, 1);
	}
	assert_int_equal(sw_tune_grid_point(&space, 0).partition_bytes,
		space.min.partition_bytes);
	assert_int_equal(sw_tune_grid_point(&space, 63).credit_bytes,
		space.max.credit_bytes);
}

static void tell__refuses_what_is_no_time(void **state)
{
	static const double bad[] = {0, -1, NAN, INFINITY};
	struct sw_tune t;

	sw_tune_init(&t, SW_TUNE_BO, &space, 1);
	sw_tune_ask(&t);
	for (size_t i = 0; i < SW_ARRAY_SIZE(bad); i++)
		assert_int_equal(sw_tune_tell(&t, bad[i]), SW_EINVAL);
	assert_int_equal(t.n, 0);
}

static void tuning__units(void **state)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{"4000000", "write 4000000B, or 16000000B if it counts f32"},
		{"4ms", "unknown unit \"ms\""},
		{"4ms", "are bytes, such as 4MiB"},
		{"4Gb/s", "are bytes, such as 4MiB"},
		{"-4MiB", "sign"},
		{"zero", "are bytes"},
		{"", "are bytes"},
		{"0", "1KiB to 64GiB"},
		{"0B", "1KiB to 64GiB"},
		{"4B", "1KiB to 64GiB (bytes, not partitions)"},
		{"65GiB", "1KiB to 64GiB"},
		{"99999999999999999999GiB", "large"},
	};
	char why[256];
	uint64_t n = 7;

	for (size_t i = 0; i < SW_ARRAY_SIZE(rows); i++) {
		assert_int_equal(
			sw_tune_bytes_parse(rows[i].text, &n, why, sizeof(why)),
			SW_EINVAL);
		if (!strstr(why, rows[i].why))
			fail_msg("\"%s\" is not in \"%s\"", rows[i].why, why);
		assert_int_equal(n, 7);
	}
	assert_int_equal(sw_tune_bytes_parse("4MiB", &n, why, sizeof(why)), 0);
	assert_int_equal(n, 4 << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gp__goes_through_what_it_saw),
		cmocka_unit_test(gp__knows_nothing_far_away),
		cmocka_unit_test(gp__refuses),
		cmocka_unit_test(search__bo_needs_few_trials),
		cmocka_unit_test(search__all_stay_inside_and_learn),
		cmocka_unit_test(search__same_seed_same_points),
		cmocka_unit_test(search__grid_visits_all),
		cmocka_unit_test(tell__refuses_what_is_no_time),
		cmocka_unit_test(tuning__units),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
