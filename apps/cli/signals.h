/* signals.h - signals that end our processes in order, or do not end them.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_CLI_SIGNALS_H
#define SW_APPS_CLI_SIGNALS_H

#include <signal.h>

/* sw_hangup_add - add SIGHUP to @set, the blocked signals that end this
 * process. Leave SIGHUP out if nohup has set it to be ignored, because a
 * blocked signal would arrive anyway. */
static inline void sw_hangup_add(sigset_t *set)
{
	struct sigaction hup = {0};

	sigaction(SIGHUP, NULL, &hup);
	if (hup.sa_handler != SIG_IGN)
		sigaddset(set, SIGHUP);
}

/* sw_signals_ignored - add to @set the signals that a daemon blocks and never
 * takes.  Schedulers send SIGUSR1, SIGUSR2 and SIGALRM to all processes of a
 * job, as messages to its ranks.  SIGPIPE and SIGXFSZ come with an error code.
 */
static inline void sw_signals_ignored(sigset_t *set)
{
	static const int numbers[] = {
		SIGUSR1, SIGUSR2, SIGALRM, SIGPIPE, SIGXFSZ};

	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaddset(set, numbers[i]);
}

/* sw_signals_take_ends - block what a command ignores and what ends it, and set
 * @ends to the latter, for sigwait or signalfd. */
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
