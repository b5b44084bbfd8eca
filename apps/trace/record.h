/* record.h - record what this machine's daemons do.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_TRACE_RECORD_H
#define SW_APPS_TRACE_RECORD_H

#include <stdint.h>
#include <stdio.h>

#include "apps/cli/args.h"

struct sw_record {
	const struct sw_arg_list *names; /* daemons, jobs; empty: all */
	uint64_t time_ns;                /* how long; 0: until a signal */
	uint64_t max_bytes;
	FILE *to;         /* a new file, read later or kept */
	const char *path; /* its name in messages */
};

/* sw_record_run - record until the time or the size is over, or a signal comes.
 * Whatever ends it, @r->to holds whole blocks.  Returns 0; 1: there was an
 * error, which was printed; then what was recorded before may be of use. */
int sw_record_run(const struct sw_record *r);

#endif
