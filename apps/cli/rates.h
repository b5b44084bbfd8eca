/* rates.h - sumwire stats --interval: rates of counters, line by line.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_CLI_RATES_H
#define SW_APPS_CLI_RATES_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/cli/args.h"

struct sw_rates {
	const char *path; /* socket of the daemon's counters */
	double interval_s;
	uint32_t n_lines; /* 0: until a signal, or the daemon's end */
	bool is_json;     /* one object per line */
	/* Names of counters; n 0: those of the traffic. */
	const struct sw_arg_list *names;
};

/* sw_rates_print - print a line per interval: what a counter has grown per
 * second, or the value of a gauge.  Ends on SIGINT, SIGTERM and when the daemon
 * ends.  Returns the exit code; errors were printed. */
int sw_rates_print(const struct sw_rates *r);

/* sw_stats_error - return why a daemon's counters cannot be read. */
const char *sw_stats_error(int err);

#endif
