/* run.h - a job on this machine: daemons, and ranks that train over them.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * For the subcommands that need one for a while.  The daemons are as net.h says
 * and run first; then the ranks, each a process; when all ranks have ended the
 * daemons are stopped.  What they write is given out in whole lines.
 */
#ifndef SW_APPS_LAUNCH_RUN_H
#define SW_APPS_LAUNCH_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/launch/net.h"

enum {
	SW_RUN_RANKS_MAX = 64,
	/* Exit code for what was ended by signal S is this + S. */
	SW_RUN_SIGNALLED = 128,
};

/* Zeroed but for what is said. */
struct sw_run {
	const char *who; /* begins its messages: "sumwire run" */
	uint32_t n_ranks;
	uint64_t grace_ns; /* for the others, once one has failed */
	bool has_no_tags;
	bool is_async;  /* the others go on when one has failed */
	char **command; /* of each rank; ends with NULL */
	/* Instead of a command, with one rank: called in a process of its own;
	 * returns its exit code.  @work_name is what it is called: "the
	 * measurement". */
	int (*work)(void *ctx, const struct sw_net *net);
	void *ctx;
	const char *work_name;
	struct sw_net net; /* all but its folder */
	int number;        /* set: the signal that ended it; 0: none did */
};

/* sw_run_all - start everything, wait for the ranks, stop everything.  Nothing
 * is left, whatever happened.  Signals that end a program end the ranks first.
 * Returns the exit code: 0, that of the first rank that failed, 128 + S when
 * signal S came, or 1. */
int sw_run_all(struct sw_run *r);

#endif
