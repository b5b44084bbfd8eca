/* unit_tuner.c - tuning during a run, also when the job changes.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <math.h>
#include <string.h>

#include "apps/lab/plan_sim.h"
#include "pmd/client/tuner/tuner.h"

static const struct sw_tune_space space = {
	.min = {64 << 10, 64 << 10}, .max = {64 << 20, 256 << 20}};

/* A parabola with its minimum at a partition of @mib. */
static double bowl(const struct sw_tuner *t, double mib)
{
	double a = log2((double)t->now.partition_bytes / (mib * (1 << 20)));
	double b = log2((double)t->now.credit_bytes / (32 << 20));

	return 1 + 0.02 * a * a + 0.01 * b * b;
}

static struct sw_tuner open_tuner(void)
{
	struct sw_tuner_settings s;
	struct sw_tuner t;

	sw_tuner_settings_init(&s, &space);
	sw_tuner_init(&t, &s);
	return t;
}

static void told__searches_then_keeps_the_best(void **state)
{
	struct sw_tuner t = open_tuner();
	struct sw_tune_point kept;
	uint32_t n = 0;

	while (t.is_searching) {
		bool has_changed = sw_tuner_observe(&t, bowl(&t, 4));

		assert_int_equal(has_changed, ++n % 4 == 0);
		assert_int_equal(t.text[0] != '\0', has_changed);
	}
	assert_int_equal(n, 40);
	assert_non_null(strstr(t.text, "trial 10"));
	assert_non_null(strstr(t.text, "kept"));
	assert_true(bowl(&t, 4) < 1.05);
	kept = t.now;
	for (n = 0; n < 100; n++)
		assert_false(sw_tuner_observe(&t, bowl(&t, 4)));
	assert_memory_equal(&kept, &t.now, sizeof(kept));
}

/* The tuner ignores the first iteration after a change and single slow ones. */
static void told__not_misled(void **state)
{
	struct sw_tuner t = open_tuner();
	uint32_t n = 0;

	for (; t.is_searching; n++)
		sw_tuner_observe(&t, n % 4 < 2 ? 50 : bowl(&t, 4));
	assert_true(bowl(&t, 4) < 1.05);
	for (n = 0; n < 100; n++)
		assert_false(
			sw_tuner_observe(&t, n % 5 == 4 ? 9 : bowl(&t, 4)));
	assert_false(sw_tuner_observe(&t, NAN));
	assert_false(sw_tuner_observe(&t, -1));
}

static void told__drift_begins_a_search(void **state)
{
	struct sw_tuner t = open_tuner();
	uint32_t n = 0;

	while (t.is_searching)
		sw_tuner_observe(&t, bowl(&t, 4));
	for (n = 0; n < 20; n++)
		assert_false(sw_tuner_observe(&t, bowl(&t, 4)));
	for (n = 0; !t.is_searching; n++)
		sw_tuner_observe(&t, bowl(&t, 0.25));
	assert_in_range(n, 5, 10);
	assert_non_null(strstr(t.text, "search again"));
	assert_int_equal(t.n_searches, 2);
	while (t.is_searching)
		sw_tuner_observe(&t, bowl(&t, 0.25));
	assert_true(bowl(&t, 0.25) < 1.08);
}

/* Simulate ResNet50 by events; the link becomes ten times slower halfway. */
static double simulated(const struct sw_plan_run *run, const struct sw_tuner *t)
{
	struct sw_policy p = {.by_priority = true,
		.part_bytes = t->now.partition_bytes,
		.credit_bytes = t->now.credit_bytes};
	double s = 0;

	assert_int_equal(sw_plan_simulate(run, &p, &s), 0);
	return s;
}

static void told__bandwidth_changes(void **state)
{
	struct sw_tuner t = open_tuner();
	struct sw_model m;
	struct sw_plan_run run = {.model = &m,
		.link = {.rate_bytes_s = 5e9 / 8,
			.overhead_s = 300e-6,
			.latency_s = 100e-6,
			.credit_s = 100e-6},
		.time_scale = 1};
	double before_s, ideal_s;
	char why[256];

	assert_int_equal(sw_model_open(&m, "resnet50", why, sizeof(why)), 0);
	while (t.is_searching)
		sw_tuner_observe(&t, simulated(&run, &t));
	for (uint32_t n = 0; n < 10; n++)
		assert_false(sw_tuner_observe(&t, simulated(&run, &t)));
	run.link.rate_bytes_s /= 10;
	before_s = simulated(&run, &t);
	while (!t.is_searching)
		sw_tuner_observe(&t, simulated(&run, &t));
	while (t.is_searching)
		sw_tuner_observe(&t, simulated(&run, &t));
	sw_plan_ideal(&run, &ideal_s);
	assert_true(simulated(&run, &t) <= before_s);
	assert_true(simulated(&run, &t) <= 1.1 * ideal_s);
	sw_model_close(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(told__searches_then_keeps_the_best),
		cmocka_unit_test(told__not_misled),
		cmocka_unit_test(told__drift_begins_a_search),
		cmocka_unit_test(told__bandwidth_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
