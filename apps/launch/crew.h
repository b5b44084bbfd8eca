/* crew.h - processes side by side: start, output, signals, end.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Each process leads its own process group, so signals also reach its children.
 * The crew reads its output through pipes, and the process ends when the crew's
 * owner ends.  The owner decides how a failure affects the other processes.
 * One thread.
 */
#ifndef SW_APPS_LAUNCH_CREW_H
#define SW_APPS_LAUNCH_CREW_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "apps/launch/lines.h"

enum {
	/* If signal S ends a process, its exit code is this value + S, as in
	 * shells. */
	SW_CREW_SIGNALLED = 128,
	SW_CREW_MAX = 128, /* processes */
	SW_CREW_NAME = 80,
};

/* One process.  Zero it, then set the first part before the start. */
struct sw_proc {
	char name[SW_CREW_NAME]; /* "rank 0" */
	char tag[24];            /* prefix of its lines: "[0] ", or "" */
	const char *program;     /* file that be executes, named in messages */
	/* stopped after all processes that are not daemons; all its output goes
	 * to stderr */
	bool is_daemon;
	/* it runs sw_crew.be in this program, and exits when be returns */
	bool is_fork;
	/* @pipe is the owner's end of a pipe from the process */
	bool has_pipe;
	int pipe; /* read end, non-blocking; the owner closes it */

	/* Read only. */
	pid_t pid;        /* 0: ended, or not started */
	bool is_stopping; /* the crew has asked it to end */
	int code;         /* exit code as in a shell, once it has ended */
	char how[56];     /* "ended with exit code 3" */
	struct sw_lines lines[2];
};

struct sw_crew {
	const char *who; /* prefix of its messages: "sumwire run" */
	struct sw_proc *procs;
	uint32_t n; /* number of started processes */
	/* Become process @i.  Executes a program, and returns only if that
	 * fails, with errno set; with is_fork, returns the exit code.
	 * @pipe  the process's end of its pipe, if it has one */
	int (*be)(void *ctx, uint32_t i, int pipe);
	/* Called when process @i has ended and all its output is written. */
	void (*ended)(void *ctx, uint32_t i);
	/* Called for SIGUSR1, SIGUSR2, SIGALRM and signals that end programs.
	 */
	void (*signalled)(void *ctx, int number);
	void *ctx;

	/* Private. */
	pid_t pid; /* the owner's */
	sigset_t old_mask;
	void (*old_sigpipe)(int);
	int signals; /* a signalfd */
	/* Time at which all processes except daemons receive end_signal;
	 * UINT64_MAX: never. */
	uint64_t end_ns;
	int end_signal; /* 0: the end has not begun */
	bool is_hurried;
};

/* sw_crew_open - take over the signals of this process.
 * Errors: SW_EIO, reported on stderr. */
int sw_crew_open(struct sw_crew *c);

/* sw_crew_close - restore the signals.  Called when no process runs. */
void sw_crew_close(struct sw_crew *c);

/* sw_crew_start - start process sw_crew.n.
 * Errors: SW_EIO, reported on stderr. */
int sw_crew_start(struct sw_crew *c);

/* sw_crew_turn - sleep until output, a signal or an end arrives, or until the
 * next end signal is due, but at most @max_ms; then write lines.
 * Errors: SW_EIO, the output cannot be written. */
int sw_crew_turn(struct sw_crew *c, uint32_t max_ms);

/* sw_crew_signal - send @number to the groups of the daemons, or of all other
 * processes. */
void sw_crew_signal(struct sw_crew *c, bool is_daemon, int number);

/* sw_crew_tell - mark the daemons, or all other processes, as stopping: their
 * end is not a failure. */
void sw_crew_tell(struct sw_crew *c, bool is_daemon);

/* sw_crew_running - return how many daemons, or how many other processes,
 * run. */
uint32_t sw_crew_running(const struct sw_crew *c, bool is_daemon);

/* sw_crew_end - begin to end all processes that are not daemons, after a
 * failure.  They have @grace_ns; then sw_crew_press sends SIGTERM, and later
 * SIGKILL.  Returns false if the end has already begun. */
bool sw_crew_end(struct sw_crew *c, uint64_t grace_ns);

/* sw_crew_press - send the signal that is due.  Called after each turn. */
void sw_crew_press(struct sw_crew *c);

/* sw_crew_stop - send SIGQUIT to the daemons, wait for them, and send SIGKILL
 * to any that still runs. */
void sw_crew_stop(struct sw_crew *c);

#endif
