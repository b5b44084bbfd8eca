/* crew.h - processes that run side by side: start, output, signals, ends.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Each process leads a process group of its own, so that signals also reach its
 * children.  Its output comes through pipes, and it ends when the crew's owner
 * ends.  The owner decides how a failure affects the other processes.  One
 * thread.
 */
#ifndef SW_APPS_LAUNCH_CREW_H
#define SW_APPS_LAUNCH_CREW_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "apps/launch/lines.h"

enum {
	/* The exit code of a process that signal S has ended is this + S, as
	 * in shells. */
	SW_CREW_SIGNALLED = 128,
	SW_CREW_MAX = 128, /* processes */
	SW_CREW_NAME = 80,
};

/* One process.  Zeroed; the owner sets the first part before the start. */
struct sw_proc {
	char name[SW_CREW_NAME]; /* "rank 0" */
	char tag[24];            /* before its lines: "[0] ", or "" */
	const char *program;     /* file to execute, if not the name */
	bool is_daemon; /* it is stopped after all processes that are not
			   daemons; all its output goes to stderr */
	bool is_fork;   /* it stays this program: sw_crew.be returns */
	bool has_pipe;  /* @pipe is the owner's end of a pipe from it */
	int pipe;       /* read end, non-blocking; the owner's to close */

	/* Read only. */
	pid_t pid;        /* 0: ended, or not begun */
	bool is_stopping; /* its end was asked for */
	int code;         /* as of a shell; once it has ended */
	char how[56];     /* "ended with exit code 3" */
	struct sw_lines lines[2];
};

struct sw_crew {
	const char *who; /* begins its messages: "sumwire run" */
	struct sw_proc *procs;
	uint32_t n; /* number of started processes */
	/* Become process @i.  Executes a program and returns only if that
	 * fails, with errno set; with is_fork returns the exit code.
	 * @pipe  the other end of its pipe, if it has one */
	int (*be)(void *ctx, uint32_t i, int pipe);
	/* Process @i has ended; all its output has been written. */
	void (*ended)(void *ctx, uint32_t i);
	/* A signal came: SIGUSR1, SIGUSR2, SIGALRM, or one that ends programs.
	 */
	void (*signalled)(void *ctx, int number);
	void *ctx;

	/* Inside. */
	pid_t pid; /* ours */
	sigset_t old_mask;
	void (*old_sigpipe)(int);
	int signals; /* a signalfd */
	/* Time at which all processes except daemons get end_signal;
	 * UINT64_MAX: never. */
	uint64_t end_ns;
	int end_signal; /* 0: no end was begun */
	bool is_hurried;
};

/* sw_crew_open - take over the signals of this process.
 * Errors: SW_EIO, said on stderr. */
int sw_crew_open(struct sw_crew *c);

/* sw_crew_close - restore the signals.  Call it when no process runs. */
void sw_crew_close(struct sw_crew *c);

/* sw_crew_start - start process sw_crew.n.
 * Errors: SW_EIO, said on stderr. */
int sw_crew_start(struct sw_crew *c);

/* sw_crew_turn - sleep until output, a signal or an end arrives, or until the
 * next end signal is due, but at most @max_ms; then write lines.
 * Errors: SW_EIO, the output cannot be written. */
int sw_crew_turn(struct sw_crew *c, uint32_t max_ms);

/* sw_crew_signal - send @number to the groups of the daemons, or of all others.
 */
void sw_crew_signal(struct sw_crew *c, bool is_daemon, int number);

/* sw_crew_tell - mark the daemons, or all others, as stopping: their ends are
 * not failures. */
void sw_crew_tell(struct sw_crew *c, bool is_daemon);

/* sw_crew_running - return how many daemons, or others, run. */
uint32_t sw_crew_running(const struct sw_crew *c, bool is_daemon);

/* sw_crew_end - begin to end all processes that are not daemons, after a
 * failure.  They have @grace_ns; then sw_crew_press sends SIGTERM, later
 * SIGKILL.  Returns false if the end has begun before. */
bool sw_crew_end(struct sw_crew *c, uint64_t grace_ns);

/* sw_crew_press - send the signal that is due; after each turn. */
void sw_crew_press(struct sw_crew *c);

/* sw_crew_stop - send SIGQUIT to the daemons, wait for them, and send SIGKILL
 * to any that still runs. */
void sw_crew_stop(struct sw_crew *c);

#endif
