/* tell.h - a Unix socket that sends each reader one text.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_HOST_TELL_H
#define SW_PMD_HOST_TELL_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/un.h>

#include "engine/base/log.h"

struct sw_tell {
	int fd; /* listens while address.sun_path is not empty */
	struct sockaddr_un address;
};

/* Write the text for one reader. */
typedef void (*sw_tell_fn)(void *ctx, FILE *to);

/* sw_tell_open - listen at @path (mode 0666 less the umask). Replaces a stale
 * socket file.
 * @t     zeroed
 * @what  kind of socket for messages, such as "stats socket"
 * Errors: SW_EBUSY a process listens there; SW_EINVAL the path is too long, or
 * is not a socket; SW_EIO; logged. */
int sw_tell_open(struct sw_tell *t, const char *path, const char *what,
	const struct sw_log *log);

/* sw_tell_has_reader - return whether a reader waits.  Never blocks. */
bool sw_tell_has_reader(const struct sw_tell *t);

/* sw_tell_poll - answer up to 64 waiting readers, and close their connections.
 * All get the same text, which @fill writes once. Never blocks: a slow reader
 * gets only as much as the kernel buffers. */
void sw_tell_poll(struct sw_tell *t, sw_tell_fn fill, void *ctx);

/* sw_tell_path - return the socket's path; "" if it is not open. */
static inline const char *sw_tell_path(const struct sw_tell *t)
{
	return t->address.sun_path;
}

/* sw_tell_close - stop and remove the socket file; @t may be zeroed. */
void sw_tell_close(struct sw_tell *t);

#endif
