/* unit_stats.c - the table of counters.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include "engine/base/stats.h"

/* Each counter has one row and each row its own counter. */
static void rows__cover_the_struct(void **state)
{
	uint32_t n, n_times, n_words = 0;
	const struct sw_stat_row *rows = sw_stats_rows(&n);
	const struct sw_stat_times *times = sw_stats_times(&n_times);

	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(rows[i].offset, n_words * sizeof(uint64_t));
		n_words += rows[i].is_by_class ? SW_N_CLASSES : 1;
		assert_true(
			rows[i].name[0] && rows[i].unit[0] && rows[i].text[0]);
		for (uint32_t j = 0; j < i; j++)
			assert_true(strcmp(rows[i].name, rows[j].name) ||
				    rows[i].is_by_class != rows[j].is_by_class);
	}
	for (uint32_t i = 0; i < n_times; i++)
		assert_int_equal(times[i].offset,
			n_words * sizeof(uint64_t) +
				i * sizeof(struct sw_histogram));
	assert_int_equal(n_words * sizeof(uint64_t) +
				 n_times * sizeof(struct sw_histogram),
		sizeof(struct sw_stats));
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
	struct sw_stats sum = {.rx_frames = 3,
		.class_tx_bytes = {0, 5},
		.poll_gap_max_us = 40};
	struct sw_stats more = {.rx_frames = 4,
		.class_tx_bytes = {1, 6, [SW_N_CLASSES - 1] = 7},
		.poll_gap_max_us = 9};

	sw_stats_add(&sum, &more);
	assert_int_equal(sum.rx_frames, 7);
	assert_int_equal(sum.class_tx_bytes[0], 1);
	assert_int_equal(sum.class_tx_bytes[1], 11);
	assert_int_equal(sum.class_tx_bytes[SW_N_CLASSES - 1], 7);
	assert_int_equal(sum.poll_gap_max_us, 40);
	sw_stats_add(&more, &sum);
	assert_int_equal(more.rx_frames, 11);
	assert_int_equal(more.poll_gap_max_us, 40);
}

static void add__histograms(void **state)
{
	struct sw_stats sum = {0}, more = {0};

	sw_histogram_note(&sum.rtt_ns, 3000);
	sw_histogram_note(&more.rtt_ns, 4000);
	sw_histogram_note(&more.late_ns, 5);
	sw_stats_add(&sum, &more);
	assert_int_equal(sum.rtt_ns.n[2], 2);
	assert_int_equal(sum.rtt_ns.sum_ns, 7000);
	assert_int_equal(sum.late_ns.n[0], 1);
	assert_int_equal(sw_histogram_count(&sum.rtt_ns), 2);
}

/* Each bucket includes its bound, and the next bucket starts above it. */
static void histogram__bounds(void **state)
{
	uint32_t last = SW_HISTOGRAM_BUCKETS - 1;

	assert_int_equal(sw_histogram_bucket(0), 0);
	assert_int_equal(sw_histogram_bound(0), 1024);
	for (uint32_t i = 0; i < last; i++) {
		uint64_t bound = sw_histogram_bound(i);

		assert_int_equal(sw_histogram_bucket(bound), i);
		assert_int_equal(sw_histogram_bucket(bound + 1), i + 1);
	}
	assert_true(sw_histogram_bound(last) == UINT64_MAX);
	assert_int_equal(sw_histogram_bucket(UINT64_MAX), last);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows__cover_the_struct),
		cmocka_unit_test(rows__name_what_they_count),
		cmocka_unit_test(add__sums_and_maxima),
		cmocka_unit_test(add__histograms),
		cmocka_unit_test(histogram__bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
