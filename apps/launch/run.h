/* run.h - inside of sumwire run: its processes, their output, their ends.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The command starts a server and agents (net.h), then N processes of the
 * user's program, the ranks.  Each process is the leader of a group of its own,
 * so that signals reach what it starts too, and its output comes through pipes.
 */
#ifndef SW_RUN_H
#define SW_RUN_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "apps/launch/lines.h"
#include "apps/launch/net.h"

enum {
	SW_RUN_RANKS_MAX = 64,
	SW_RUN_PROCS_MAX = 1 + SW_NET_AGENTS_MAX + SW_RUN_RANKS_MAX,
	/* Exit code for a rank that was ended by signal S, as shells have it,
	 * is this + S. */
	SW_RUN_SIGNALLED = 128,
};

/* A process of the run: first the daemons as in net.h, then the ranks. */
struct sw_run_proc {
	char name[20]; /* "server", "agent 0", "rank 0" */
	char tag[24];  /* "[server] ", "[0] ", or "" */
	bool is_rank;
	bool is_told; /* its end was asked for */
	pid_t pid;    /* 0: ended, or not begun */
	int code;     /* as of a shell; once it has ended */
	char how[56]; /* "ended with exit code 3" */
	struct sw_lines lines[2];
};

struct sw_run {
	uint32_t n_ranks;
	uint64_t grace_ns; /* for the others, once one has failed */
	bool is_verbose, has_no_tags;
	bool is_async;  /* the others go on when one has failed */
	char **command; /* ends with NULL */
	struct sw_net net;
	struct sw_run_proc procs[SW_RUN_PROCS_MAX];
	uint32_t n_procs;
	pid_t pid; /* of the command */
	sigset_t old_mask;
	int signals; /* a signalfd */
	int port;    /* for MASTER_PORT */
	/* The first failure is the exit code; 0: none. */
	int code;
	uint64_t limit_ns; /* when what is awaited is late; UINT64_MAX: never */
	int end_signal;    /* what the ranks get then */
};

/* run_proc.c */

/* sw_run_start - start process @i, whose name is not set yet.  It has its
 * environment and pipes, and ends when this process does.
 * Errors: SW_EIO, said on stderr. */
int sw_run_start(struct sw_run *r, uint32_t i);

/* sw_run_reap - has @p ended just now?  Then p->code and p->how are set, all it
 * has written was given out, and nothing of its group is left. */
bool sw_run_reap(struct sw_run_proc *p);

/* sw_run_signal - send @number to the group of @p, if it runs. */
void sw_run_signal(const struct sw_run_proc *p, int number);

/* run_watch.c */

/* sw_run_all - start everything, wait for the ranks, stop everything.  Returns
 * the exit code.  Nothing is left, whatever happened. */
int sw_run_all(struct sw_run *r);

#endif
