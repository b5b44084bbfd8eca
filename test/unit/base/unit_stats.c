/* unit_stats.c - the table of counters.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include "engine/base/stats.h"

/* Each counter has one row and each row its own counter. */
static void rows__cover_the_struct(void **state)
{
	uint32_t n;
	const struct sw_stat_row *rows = sw_stats_rows(&n);

	assert_int_equal(n * sizeof(uint64_t), sizeof(struct sw_stats));
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(rows[i].offset, i * sizeof(uint64_t));
		assert_true(
			rows[i].name[0] && rows[i].unit[0] && rows[i].text[0]);
		for (uint32_t j = 0; j < i; j++)
			assert_string_not_equal(rows[i].name, rows[j].name);
	}
}

static void rows__name_what_they_count(void **state)
{
	uint32_t n;
	const struct sw_stat_row *rows = sw_stats_rows(&n);

	assert_string_equal(rows[0].name, "rx_frames");
	assert_int_equal(rows[0].offset, offsetof(struct sw_stats, rx_frames));
}

static void add__sums_and_maxima(void **state)
{
	struct sw_stats sum = {.rx_frames = 3, .poll_gap_max_us = 40};
	struct sw_stats more = {.rx_frames = 4, .poll_gap_max_us = 9};

	sw_stats_add(&sum, &more);
	assert_int_equal(sum.rx_frames, 7);
	assert_int_equal(sum.poll_gap_max_us, 40);
	sw_stats_add(&more, &sum);
	assert_int_equal(more.rx_frames, 11);
	assert_int_equal(more.poll_gap_max_us, 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows__cover_the_struct),
		cmocka_unit_test(rows__name_what_they_count),
		cmocka_unit_test(add__sums_and_maxima),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
