/* confine.h - give up rights that a daemon no longer needs.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A daemon that root starts needs root's rights to open its ports. Afterwards
 * it reads frames of strangers, so it keeps no right that an attacker could
 * use.
 */
#ifndef SW_PMD_HOST_CONFINE_H
#define SW_PMD_HOST_CONFINE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/log.h"

struct sw_confine {
	bool has_user; /* become uid and gid; only if root started it */
	uint32_t uid, gid;
	/* Capabilities that ports need to reopen and close, a bit each. */
	uint64_t kept;
};

/* sw_confine_threads - become the user and give up capabilities, in all threads
 * of this process, and keep all threads from regaining them. Threads obey in a
 * handler of SIGRTMAX, so this fails if a thread blocks that signal. Errors:
 * SW_ENOMEM; SW_EPERM, which is logged: some threads may have lost their
 * capabilities. */
int sw_confine_threads(const struct sw_confine *c, const struct sw_log *log);

/* sw_confine_calls - in all threads, refuse with EPERM each system call that no
 * daemon makes after its start, such as execve.
 * @has_nics  allow bpf and packet sockets, which reopen a port when its
 *            interface returns
 * Returns false, without a filter, if the kernel cannot filter. */
bool sw_confine_calls(bool has_nics);

#endif
