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
	uint32_t n_lines; /* 0: until a signal, or until the daemon ends */
	bool is_json;     /* one object per line */
	/* Names of counters; n = 0: the counters of traffic. */
	const struct sw_arg_list *names;
};

/* sw_rates_print - print a line per interval: a counter's growth per second, or
 * a gauge's value.  Ends on SIGINT, on SIGTERM and when the daemon ends.
 * Prints errors.  Returns the exit code. */
int sw_rates_print(const struct sw_rates *r);

/* sw_stats_error - return the reason why a daemon's counters cannot be read. */
const char *sw_stats_error(int err);

#endif
