/* scan.h - what all daemons of this machine say, read at one time.
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
	uint64_t at_ns;   /* of its values */
	uint32_t n, room; /* n 0: they could not be read */
	struct sw_scan_value *values;
};

struct sw_scan {
	struct sw_found_daemons found;
	struct sw_scan_daemon *all; /* found.n */
};

/* sw_scan_daemons - ask all daemons (daemons.h) for their jobs and counters.
 * @name  of a daemon or job, a pid; NULL: all
 * The caller must free @out, also after an error.  Errors: SW_ENOMEM. */
int sw_scan_daemons(const char *name, struct sw_scan *out);
void sw_scan_free(struct sw_scan *scan);

/* sw_scan_value - return counter @name of @d, or @absent. */
uint64_t sw_scan_value(
	const struct sw_scan_daemon *d, const char *name, uint64_t absent);

#endif
