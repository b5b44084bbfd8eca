/* stats.c - the table of counters.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/base/stats.h"

#include "engine/base/bytes.h"

static const struct sw_stat_row rows[] = {
#define SW_STAT(name, unit, text) \
	{#name, unit, text, offsetof(struct sw_stats, name), false},
#define SW_STAT_MAX(name, unit, text) \
	{#name, unit, text, offsetof(struct sw_stats, name), true},
#include "engine/base/stats.def"
#undef SW_STAT
};

static const struct sw_stat_times times[] = {
#define SW_STAT(name, unit, text)
#define SW_STAT_TIMES(name, text) \
	{#name, text, offsetof(struct sw_stats, name)},
#include "engine/base/stats.def"
#undef SW_STAT
};

const struct sw_stat_times *sw_stats_times(uint32_t *n)
{
	*n = SW_ARRAY_SIZE(times);
	return times;
}

const struct sw_stat_row *sw_stats_rows(uint32_t *n)
{
	*n = SW_ARRAY_SIZE(rows);
	return rows;
}

static void add_times(struct sw_histogram *sum, const struct sw_histogram *more)
{
	sw_count(&sum->sum_ns, sw_word(&more->sum_ns));
	for (uint32_t i = 0; i < SW_HISTOGRAM_BUCKETS; i++)
		sw_count(&sum->n[i], sw_word(&more->n[i]));
}

void sw_stats_add(struct sw_stats *sum, const struct sw_stats *more)
{
	for (uint32_t i = 0; i < SW_ARRAY_SIZE(rows); i++) {
		uint64_t *a = (uint64_t *)((char *)sum + rows[i].offset);
		uint64_t b = sw_word((
			const uint64_t *)((const char *)more + rows[i].offset));

		sw_set_word(a, rows[i].is_max ? sw_max64(*a, b) : *a + b);
	}
	for (uint32_t i = 0; i < SW_ARRAY_SIZE(times); i++)
		add_times(
			(struct sw_histogram *)((char *)sum + times[i].offset),
			(const struct sw_histogram *)((const char *)more +
						      times[i].offset));
}
