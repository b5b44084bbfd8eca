/* stats.c - the table of counters.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/base/stats.h"

#include "engine/base/bytes.h"

static const struct sw_stat_row rows[] = {
#define SW_STAT(name, unit, text) \
	{#name, unit, text, offsetof(struct sw_stats, name), false, false},
#define SW_STAT_MAX(name, unit, text) \
	{#name, unit, text, offsetof(struct sw_stats, name), true, false},
#define SW_STAT_CLASS(name, unit, text)                                     \
	{#name, unit, text, offsetof(struct sw_stats, class_##name), false, \
		true},
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

static void add_row(const struct sw_stat_row *row, struct sw_stats *sum,
	const struct sw_stats *more)
{
	uint64_t *a = (uint64_t *)((char *)sum + row->offset);
	const uint64_t *b =
		(const uint64_t *)((const char *)more + row->offset);
	uint32_t n = row->is_by_class ? SW_N_CLASSES : 1;

	for (uint32_t i = 0; i < n; i++)
		sw_set_word(&a[i], row->is_max ? sw_max64(a[i], sw_word(&b[i]))
					       : a[i] + sw_word(&b[i]));
}

void sw_stats_add(struct sw_stats *sum, const struct sw_stats *more)
{
	for (uint32_t i = 0; i < SW_ARRAY_SIZE(rows); i++)
		add_row(&rows[i], sum, more);
	for (uint32_t i = 0; i < SW_ARRAY_SIZE(times); i++)
		add_times(
			(struct sw_histogram *)((char *)sum + times[i].offset),
			(const struct sw_histogram *)((const char *)more +
						      times[i].offset));
}
