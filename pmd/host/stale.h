/* stale.h - socket files that nobody listens at any more.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_HOST_STALE_H
#define SW_PMD_HOST_STALE_H

#include "engine/base/log.h"

/* sw_stale_remove - make @path free to listen at: a socket that a killed
 * process left is removed, anything else is left where it is.
 * @path   shorter than sun_path
 * @type   of the socket, SOCK_STREAM or SOCK_SEQPACKET
 * @what   whose path it is, for messages, as "stats socket"
 * Thread: control.  Errors: SW_EBUSY somebody listens there; SW_EINVAL it is no
 * socket; SW_EIO. */
int sw_stale_remove(
	const char *path, int type, const char *what, const struct sw_log *log);

/* sw_stale_sweep - remove the stream sockets @folder/@prefixPID.sock that
 * killed processes of this user have left: nobody listens there, and no process
 * has that number.  Thread: control. */
void sw_stale_sweep(const char *folder, const char *prefix);

#endif
