/* signals.h - the signals that end a process in order, and ignored signals.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_CLI_SIGNALS_H
#define SW_APPS_CLI_SIGNALS_H

#include <signal.h>

/* sw_hangup_add - add SIGHUP to @set, the blocked signals that end this
 * process.  If nohup has set SIGHUP to be ignored, leave it out: a blocked
 * signal would arrive anyway. */
static inline void sw_hangup_add(sigset_t *set)
{
	struct sigaction hup = {0};

	sigaction(SIGHUP, NULL, &hup);
	if (hup.sa_handler != SIG_IGN)
		sigaddset(set, SIGHUP);
}

/* sw_signals_ignored - add the signals that a daemon blocks and never takes to
 * @set.  Schedulers send SIGUSR1, SIGUSR2 and SIGALRM to all processes of a
 * job, as messages to its ranks.  SIGPIPE and SIGXFSZ accompany an error code.
 */
static inline void sw_signals_ignored(sigset_t *set)
{
	static const int numbers[] = {
		SIGUSR1, SIGUSR2, SIGALRM, SIGPIPE, SIGXFSZ};

	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaddset(set, numbers[i]);
}

/* sw_signals_take_ends - block the signals that a command ignores and those
 * that end it.  Set @ends to the latter, for sigwait or signalfd. */
static inline void sw_signals_take_ends(sigset_t *ends)
{
	sigset_t all;

	sigemptyset(ends);
	sigaddset(ends, SIGINT);
	sigaddset(ends, SIGTERM);
	sw_hangup_add(ends);
	all = *ends;
	sw_signals_ignored(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
}

#endif
