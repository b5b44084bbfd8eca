/* feed.h - a Unix socket from which one reader at a time takes a stream.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_HOST_FEED_H
#define SW_PMD_HOST_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pmd/host/tell.h"

enum { SW_FEED_BYTES = 1 << 20 }; /* capacity: bytes that wait for the reader */

/* Zeroed: closed.  Thread: one. */
struct sw_feed {
	struct sw_tell tell; /* its socket */
	bool has_reader;
	int fd;         /* of the reader */
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

/* sw_feed_begin - return whether a new reader has come.  A second reader gets
 * @refusal, @n bytes, and is closed.  Never blocks. */
bool sw_feed_begin(struct sw_feed *f, const void *refusal, size_t n);

/* sw_feed_ask - take the first @n bytes that the reader says, which it must
 * write at once.  Returns 1; 0: not yet; -1: it has said something else, or is
 * gone. */
int sw_feed_ask(struct sw_feed *f, void *bytes, size_t n);

/* sw_feed_is_over - return whether the reader has said that it has enough, or
 * is gone. */
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

/* sw_feed_put - append @n bytes, at most the room.
 * sw_feed_send - send what the kernel takes; returns whether all has left.
 * Nothing is left for a reader that is gone. */
void sw_feed_put(struct sw_feed *f, const void *bytes, size_t n);
bool sw_feed_send(struct sw_feed *f);

/* sw_feed_end - let the reader go; what has not left is lost. */
void sw_feed_end(struct sw_feed *f);
void sw_feed_close(struct sw_feed *f);

/* sw_feed_dial - become the reader at @path, *fd: read(2) takes the stream, and
 * a byte that is written after what sw_feed_ask takes ends it.  Errors:
 * SW_EINVAL, SW_EPERM, SW_ECLOSED nobody listens there. */
int sw_feed_dial(const char *path, int *fd);

#endif
