/* feed.h - a Unix socket from which one reader at a time takes a stream.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_HOST_FEED_H
#define SW_PMD_HOST_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pmd/host/tell.h"

enum { SW_FEED_BYTES = 1 << 20 }; /* capacity: bytes that wait for the reader */

/* Closed if zeroed. Thread: one at a time. */
struct sw_feed {
	struct sw_tell tell; /* its socket */
	bool has_reader;
	int fd;         /* the reader's socket */
	char *bytes;    /* SW_FEED_BYTES while there is a reader */
	size_t n_bytes; /* bytes still to send */
};

/* sw_feed_open - listen at @path, for its owner and root.  Errors: as
 * sw_tell_open. */
int sw_feed_open(struct sw_feed *f, const char *path, const char *what,
	const struct sw_log *log);

/* sw_feed_path - return the path of the socket, "" if it is closed. */
static inline const char *sw_feed_path(const struct sw_feed *f)
{
	return f->tell.address.sun_path;
}

/* sw_feed_begin - accept a waiting reader; return whether a new stream begins.
 * A second reader gets the @n bytes of @refusal and is disconnected. Never
 * blocks. */
bool sw_feed_begin(struct sw_feed *f, const void *refusal, size_t n);

/* sw_feed_ask - take the reader's first @n bytes, which it must write in one
 * call. Returns 1; 0 if they have not arrived yet; -1 if the reader wrote
 * another number of bytes or has closed. */
int sw_feed_ask(struct sw_feed *f, void *bytes, size_t n);

/* sw_feed_is_over - return whether the reader asked for the end of the stream
 * or has closed. */
bool sw_feed_is_over(struct sw_feed *f);

/* sw_feed_has_reader - return whether there is a reader. */
static inline bool sw_feed_has_reader(const struct sw_feed *f)
{
	return f->has_reader;
}

/* sw_feed_room - return how many bytes may be put. */
static inline size_t sw_feed_room(const struct sw_feed *f)
{
	return SW_FEED_BYTES - f->n_bytes;
}

/* sw_feed_put - append @n bytes, at most sw_feed_room.
 * sw_feed_send - send as many bytes as the kernel accepts; return whether none
 * remain. If the reader has closed, drop all bytes. */
void sw_feed_put(struct sw_feed *f, const void *bytes, size_t n);
bool sw_feed_send(struct sw_feed *f);

/* sw_feed_end - disconnect the reader; unsent bytes are lost. */
void sw_feed_end(struct sw_feed *f);
void sw_feed_close(struct sw_feed *f);

/* sw_feed_dial - connect to @path as its reader and set *@fd: read(2) takes the
 * stream, and a byte written after the request for sw_feed_ask ends it. Errors:
 * SW_EINVAL @path is too long; SW_EPERM; SW_EIO no socket is left; SW_ECLOSED
 * no process listens there. */
int sw_feed_dial(const char *path, int *fd);

#endif
