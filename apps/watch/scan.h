/* scan.h - the jobs and counters of all daemons, read at the same time.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_WATCH_SCAN_H
#define SW_APPS_WATCH_SCAN_H

#include "apps/cli/counters.h"
#include "pmd/host/daemons.h"

struct sw_scan_value {
	char name[SW_COUNTER_NAME];
	uint64_t value;
};

struct sw_scan_daemon {
	const struct sw_found_daemon *d;
	uint64_t at_ns;   /* time of the values */
	uint32_t n, room; /* n 0: reading failed */
	struct sw_scan_value *values;
};

struct sw_scan {
	struct sw_found_daemons found;
	struct sw_scan_daemon *all; /* one for each of found */
};

/* sw_scan_daemons - ask all daemons (daemons.h) for their jobs and counters.
 * The caller must free @out, even after an error.
 * @name  name of a daemon or job, or a pid; NULL: all
 * Errors: SW_ENOMEM. */
int sw_scan_daemons(const char *name, struct sw_scan *out);
void sw_scan_free(struct sw_scan *scan);

/* sw_scan_value - return counter @name of @d, or @absent. */
uint64_t sw_scan_value(
	const struct sw_scan_daemon *d, const char *name, uint64_t absent);

#endif
