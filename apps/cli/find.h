/* find.h - find the daemon that a user names on a command line.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_CLI_FIND_H
#define SW_APPS_CLI_FIND_H

#include <stdio.h>

#include "pmd/host/daemons.h"

enum sw_find {
	SW_FIND_STATS, /* socket that serves its counters */
	SW_FIND_AGENT, /* socket to which training processes attach */
};

enum { SW_FIND_BYTES = 108 };

/* sw_find_socket - write the path of a socket of daemon @name to @out.  @name
 * is the daemon's name, pid or job; a name with a slash is the path itself;
 * NULL means the only daemon of this machine.  If no daemon matches, @name may
 * be a socket in the folders for sockets, or in the working folder.
 * Returns 0, or SW_EINVAL if @name is unknown or ambiguous: then it has printed
 * the error with a list of all daemons to stderr, for command @who. */
int sw_find_socket(const char *who, const char *name, enum sw_find kind,
	char out[SW_FIND_BYTES]);

/* sw_find_unknown - print for command @who that @name is unknown, with a list
 * of all daemons.  Returns SW_EINVAL. */
int sw_find_unknown(const char *who, const char *name,
	const struct sw_found_daemons *found);

/* sw_find_print - print a table of daemons and their jobs. */
void sw_find_print(FILE *to, const struct sw_found_daemons *found);

/* sw_find_state - return the word for the state of daemon @d, or of its job
 * @job; NULL: it has no job. */
const char *sw_find_state(
	const struct sw_found_daemon *d, const struct sw_daemon_job *job);

#endif
