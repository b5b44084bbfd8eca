/* run.h - a job on this machine: daemons, and ranks that train over them.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Subcommands use it to run a temporary job.  The daemons of net.h start first,
 * then the ranks, one process each.  When all ranks have ended, the daemons are
 * stopped.  All output is written in whole lines.
 */
#ifndef SW_APPS_LAUNCH_RUN_H
#define SW_APPS_LAUNCH_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/launch/net.h"

enum {
	SW_RUN_RANKS_MAX = 64,
	/* The exit code of a rank that signal S has ended is this + S. */
	SW_RUN_SIGNALLED = 128,
};

/* The caller sets fields; all others are zero. */
struct sw_run {
	const char *who; /* begins its messages: "sumwire run" */
	uint32_t n_ranks;
	uint64_t grace_ns; /* time to end for other ranks after a failure */
	bool has_no_tags;
	bool is_async;  /* other ranks go on after a rank has failed */
	char **command; /* each rank's arguments; ends with NULL */
	/* Replaces the command of a single rank: runs in a process of its own
	 * and returns the exit code.  @work_name names it in messages: "the
	 * measurement". */
	int (*work)(void *ctx, const struct sw_net *net);
	void *ctx;
	const char *work_name;
	struct sw_net net; /* the caller sets all fields except scratch */
	int number;        /* output: the signal that ended the job, or 0 */
};

/* sw_run_all - start everything, wait for the ranks, stop everything.  It
 * leaves no process or file behind.  Signals that end a program end the ranks
 * first. Returns the exit code: 0, that of the first rank that failed, 128 + S
 * when signal S came, or 1. */
int sw_run_all(struct sw_run *r);

#endif
