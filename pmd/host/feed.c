/* feed.c - a Unix socket from which one reader at a time takes a stream.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/host/feed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/error.h"

int sw_feed_open(struct sw_feed *f, const char *path, const char *what,
	const struct sw_log *log)
{
	int err = sw_tell_open(&f->tell, path, what, log);

	if (!err && chmod(path, S_IRUSR | S_IWUSR)) {
		sw_log(log, SW_LOG_ERROR, "%s %s: %s", what, path,
			strerror(errno));
		sw_tell_close(&f->tell);
		err = SW_EIO;
	}
	return err;
}

/* Refuse a second reader. */
static void refuse(int fd, const void *refusal, size_t n)
{
	(void)!send(fd, refusal, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

bool sw_feed_begin(struct sw_feed *f, const void *refusal, size_t n)
{
	int fd = f->tell.address.sun_path[0]
			 ? accept4(f->tell.fd, NULL, NULL,
				   SOCK_CLOEXEC | SOCK_NONBLOCK)
			 : -1;

	if (fd < 0)
		return false;
	if (f->has_reader) {
		refuse(fd, refusal, n);
		return false;
	}
	f->bytes = malloc(SW_FEED_BYTES);
	if (!f->bytes) {
		close(fd);
		return false;
	}
	f->fd = fd;
	f->n_bytes = 0;
	f->has_reader = true;
	return true;
}

int sw_feed_ask(struct sw_feed *f, void *bytes, size_t n)
{
	ssize_t got = recv(f->fd, bytes, n, MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	return got == (ssize_t)n ? 1 : -1;
}

bool sw_feed_is_over(struct sw_feed *f)
{
	char c;
	ssize_t n = recv(f->fd, &c, 1, MSG_DONTWAIT);

	return n >= 0 || (errno != EAGAIN && errno != EINTR);
}

void sw_feed_put(struct sw_feed *f, const void *bytes, size_t n)
{
	memcpy(f->bytes + f->n_bytes, bytes, n);
	f->n_bytes += n;
}

bool sw_feed_send(struct sw_feed *f)
{
	ssize_t n;

	if (!f->n_bytes)
		return true;
	n = send(f->fd, f->bytes, f->n_bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		n = (ssize_t)f->n_bytes; /* the reader has closed */
	if (n > 0) {
		f->n_bytes -= (size_t)n;
		memmove(f->bytes, f->bytes + n, f->n_bytes);
	}
	return !f->n_bytes;
}

void sw_feed_end(struct sw_feed *f)
{
	if (!f->has_reader)
		return;
	close(f->fd);
	free(f->bytes);
	f->bytes = NULL;
	f->n_bytes = 0;
	f->has_reader = false;
}

void sw_feed_close(struct sw_feed *f)
{
	sw_feed_end(f);
	sw_tell_close(&f->tell);
}

int sw_feed_dial(const char *path, int *fd)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int err = SW_ECLOSED;

	if (strlen(path) >= sizeof(a.sun_path))
		return SW_EINVAL;
	strcpy(a.sun_path, path);
	*fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*fd < 0)
		return SW_EIO;
	if (!connect(*fd, (struct sockaddr *)&a, sizeof(a)))
		return 0;
	if (errno == EACCES || errno == EPERM)
		err = SW_EPERM;
	close(*fd);
	return err;
}
