/* signals.h - signals that end our processes in order, or do not end them.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_CLI_SIGNALS_H
#define SW_APPS_CLI_SIGNALS_H

#include <signal.h>

/* sw_hangup_add - add SIGHUP to @set, the signals that end this process and are
 * blocked.  Leave it out if nohup has had it ignored: a blocked signal would
 * arrive all the same. */
static inline void sw_hangup_add(sigset_t *set)
{
	struct sigaction hup = {0};

	sigaction(SIGHUP, NULL, &hup);
	if (hup.sa_handler != SIG_IGN)
		sigaddset(set, SIGHUP);
}

/* sw_signals_ignored - add to @set what a daemon blocks and never takes.
 * Schedulers send SIGUSR1, SIGUSR2 and SIGALRM to all processes of a job, as a
 * word to its ranks.  SIGPIPE and SIGXFSZ come with an error code. */
static inline void sw_signals_ignored(sigset_t *set)
{
	static const int numbers[] = {
		SIGUSR1, SIGUSR2, SIGALRM, SIGPIPE, SIGXFSZ};

	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaddset(set, numbers[i]);
}

#endif
