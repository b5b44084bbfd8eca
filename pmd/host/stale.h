/* stale.h - remove stale socket files, at which no process listens.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_HOST_STALE_H
#define SW_PMD_HOST_STALE_H

#include "engine/base/log.h"

/* sw_stale_remove - make @path free to listen at: remove a socket that a killed
 * process left; leave anything else in place.
 * @path   shorter than sun_path
 * @type   of the socket, SOCK_STREAM or SOCK_SEQPACKET
 * @what   kind of path for messages, such as "stats socket"
 * Thread: control. Errors: SW_EBUSY a process listens there; SW_EINVAL it is
 * not a socket; SW_EIO. */
int sw_stale_remove(
	const char *path, int type, const char *what, const struct sw_log *log);

/* sw_stale_sweep - remove stale stream sockets @folder/@prefixPID.sock of this
 * user, for root also those of the folder's owner, and in root's folder those
 * of all users. A socket is stale if no process listens there and no process
 * has that PID.
 * Thread: control. */
void sw_stale_sweep(const char *folder, const char *prefix);

#endif
