/* hangup.h - does SIGHUP end this process?
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_CLI_HANGUP_H
#define SW_APPS_CLI_HANGUP_H

#include <signal.h>

/* sw_hangup_add - SIGHUP into @set, the signals that end us and are blocked,
 * unless nohup has had it ignored: a blocked one would come all the same. */
static inline void sw_hangup_add(sigset_t *set)
{
	struct sigaction hup = {0};

	sigaction(SIGHUP, NULL, &hup);
	if (hup.sa_handler != SIG_IGN)
		sigaddset(set, SIGHUP);
}

#endif
