/* stats.h - counters by name: one block per engine instance.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_BASE_STATS_H
#define SW_ENGINE_BASE_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/histogram.h"
#include "engine/base/limits.h"

/* Free-running counters.  Only the owning lcore writes them, by sw_count.
 * Another thread may read them at any time, by sw_stats_add: each counter is
 * one aligned word, but a snapshot of several is not consistent. */
struct sw_stats {
#define SW_STAT(name, unit, text)       uint64_t name;
#define SW_STAT_CLASS(name, unit, text) uint64_t class_##name[SW_N_CLASSES];
#define SW_STAT_TIMES(name, text)       struct sw_histogram name;
#include "engine/base/stats.def"
#undef SW_STAT
};

struct sw_stat_row {
	const char *name, *unit, *text; /* unit: "bytes" */
	size_t offset; /* offset of its uint64_t in struct sw_stats */
	bool is_max;   /* the largest of several counts, not their sum */
	/* One counter per class of data: SW_N_CLASSES words, named classN.NAME.
	 */
	bool is_by_class;
};

/* sw_set_word - write a word that other threads read.  Thread: the owner. */
static inline void sw_set_word(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
}

/* sw_word - read such a word.  Thread: any. */
static inline uint64_t sw_word(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

/* sw_count - add @n to a counter.  Thread: the owner, so that no locked add is
 * needed. */
static inline void sw_count(uint64_t *counter, uint64_t n)
{
	sw_set_word(counter, *counter + n);
}

/* sw_stats_rows - return the static table of all counters, *n rows. */
const struct sw_stat_row *sw_stats_rows(uint32_t *n);

/* A histogram of times in ns. */
struct sw_stat_times {
	const char *name, *text;
	size_t offset; /* its struct sw_histogram, in struct sw_stats */
};

/* sw_stats_times - return the static table of all histograms, *n rows. */
const struct sw_stat_times *sw_stats_times(uint32_t *n);

/* sw_stats_add - add the counters of another instance to @sum.  Thread: the
 * owner of @sum. */
void sw_stats_add(struct sw_stats *sum, const struct sw_stats *more);

#endif
