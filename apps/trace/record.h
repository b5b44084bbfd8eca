/* record.h - record the events or frames of this machine's daemons.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_TRACE_RECORD_H
#define SW_APPS_TRACE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "apps/cli/args.h"
#include "apps/cli/trace_format.h"
#include "pmd/host/daemons.h"

struct sw_record {
	const char *who;  /* name of the command, in messages */
	const char *verb; /* "traced" */
	const struct sw_trace_ask *ask;
	/* names of daemons or jobs; empty: all */
	const struct sw_arg_list *names;
	uint64_t time_ns; /* duration; 0: until a signal */
	uint64_t max_bytes;
	FILE *to;         /* a new file, or a pipe */
	const char *path; /* name of @to in messages */
	/* Write the contents of a block to @to, and return their length.
	 * @b->daemon numbers the daemons; @d is that daemon. */
	size_t (*write)(void *ctx, FILE *to, const struct sw_found_daemon *d,
		const struct sw_trace_block *b, const void *bytes);
	/* Return whether the recording is complete.  NULL: never. */
	bool (*has_enough)(const void *ctx);
	void *ctx;
};

/* sw_record_run - record until the time or the size is reached, the writer has
 * enough, or a signal arrives.  In each case @r->to ends up with whole blocks,
 * after a head of @n_head bytes that the caller has written.  Returns 0, or 1
 * after printing an error: then the recording before it may be usable. */
int sw_record_run(const struct sw_record *r, size_t n_head);

#endif
