/* stats.c - the table of counters.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/stats.h"

#include "engine/bytes.h"

static const struct sw_stat_row rows[] = {
#define SW_STAT(name, text) {#name, text, offsetof(struct sw_stats, name)},
#include "engine/stats.def"
#undef SW_STAT
};

const struct sw_stat_row *sw_stats_rows(uint32_t *n)
{
	*n = SW_ARRAY_SIZE(rows);
	return rows;
}
