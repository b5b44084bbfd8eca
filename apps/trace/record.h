/* record.h - record what this machine's daemons do.
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
	const char *who;  /* the command, in messages */
	const char *verb; /* "traced" */
	const struct sw_trace_ask *ask;
	const struct sw_arg_list *names; /* daemons, jobs; empty: all */
	uint64_t time_ns;                /* how long; 0: until a signal */
	uint64_t max_bytes;
	FILE *to;         /* a new file, or a pipe */
	const char *path; /* its name in messages */
	/* Write to @to what a block says; return how many bytes that is.
	 * @b->daemon counts the daemons, and @d is this one. */
	size_t (*write)(void *ctx, FILE *to, const struct sw_found_daemon *d,
		const struct sw_trace_block *b, const void *bytes);
	/* Return whether that was enough.  NULL: never. */
	bool (*has_enough)(const void *ctx);
	void *ctx;
};

/* sw_record_run - record until the time or the size is over, the writer has
 * enough, or a signal comes.  Whatever ends it, @r->to holds whole blocks; it
 * may have a head of @n_head bytes, which were written before.  Returns 0; 1:
 * there was an error, which was printed; then what was recorded before may be
 * of use. */
int sw_record_run(const struct sw_record *r, size_t n_head);

#endif
