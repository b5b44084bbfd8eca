/* confine.h - give up rights that a daemon no longer needs.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A daemon that root starts needs root's rights to open its ports.  Afterwards
 * it reads frames of strangers, so it keeps none that an attacker could use.
 */
#ifndef SW_PMD_HOST_CONFINE_H
#define SW_PMD_HOST_CONFINE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/log.h"

struct sw_confine {
	bool has_user; /* become uid and gid, of root's daemons alone */
	uint32_t uid, gid;
	/* Capabilities that ports need to open again and to close, a bit each.
	 */
	uint64_t kept;
};

/* sw_confine_threads - become the user and give up capabilities, in all threads
 * of this process, and let no thread get them back.  Threads obey in a handler
 * of SIGRTMAX, so this fails if one of them blocks it. Errors, which are
 * logged: SW_EPERM; some threads may have lost theirs. */
int sw_confine_threads(const struct sw_confine *c, const struct sw_log *log);

/* sw_confine_calls - refuse with EPERM each system call that no daemon makes
 * after its start, such as to execute a program, in all threads.
 * @has_nics  it may open packet sockets again, when an interface comes back
 * Returns false, and changes nothing, where the kernel has no filters. */
bool sw_confine_calls(bool has_nics);

#endif
