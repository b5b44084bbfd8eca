/* run.h - a job on this machine: daemons, and ranks that train over them.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Subcommands use it to run a temporary job.  The daemons of net.h start first,
 * then the ranks, one process each.  When all ranks have ended, the daemons
 * stop.  All output is written in whole lines.
 */
#ifndef SW_APPS_LAUNCH_RUN_H
#define SW_APPS_LAUNCH_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/launch/net.h"

enum {
	SW_RUN_RANKS_MAX = 64,
	/* If signal S ends a rank, its exit code is this value + S. */
	SW_RUN_SIGNALLED = 128,
};

/* The caller sets the fields it needs; the others must be zero. */
struct sw_run {
	const char *who; /* prefix of its messages: "sumwire run" */
	uint32_t n_ranks;
	uint64_t grace_ns; /* time for other ranks to end after a failure */
	bool has_no_tags;
	bool is_async;  /* other ranks continue after a rank has failed */
	char **command; /* each rank's arguments; ends with NULL */
	/* Replaces the command of a single rank.  It runs in its own process
	 * and returns the exit code.  Messages call it @work_name: "the
	 * measurement". */
	int (*work)(void *ctx, const struct sw_net *net);
	void *ctx;
	const char *work_name;
	struct sw_net net; /* the caller sets all fields except scratch */
	int number;        /* output: signal that ended the job, or 0 */
};

/* sw_run_all - start everything, wait for the ranks, stop everything.  It
 * leaves no process or file behind.  A signal that ends programs ends the ranks
 * first.  Returns the exit code: 0; the code of the first rank that failed; 128
 * + S after signal S; or 1. */
int sw_run_all(struct sw_run *r);

#endif
