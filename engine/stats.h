/* stats.h - counters by name: one block per engine instance.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_STATS_H
#define SW_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Free-running; written by the owning lcore only.  Another thread may read
 * them at any time: each is one aligned word, a snapshot is not consistent. */
struct sw_stats {
#define SW_STAT(name, text) uint64_t name;
#include "engine/stats.def"
#undef SW_STAT
};

struct sw_stat_row {
	const char *name, *text;
	size_t offset; /* of its uint64_t in struct sw_stats */
	bool is_max;   /* the largest of several counts, not their sum */
};

/* sw_stats_rows - the table of all counters, *n rows.  Static. */
const struct sw_stat_row *sw_stats_rows(uint32_t *n);

/* sw_stats_add - add the counters of another instance to @sum. */
void sw_stats_add(struct sw_stats *sum, const struct sw_stats *more);

#endif
