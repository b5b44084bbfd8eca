/* tell.c - a Unix socket that sends each reader one text.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/host/tell.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "pmd/host/stale.h"

enum { READERS = 64, BACKLOG = 512 };

int sw_tell_open(struct sw_tell *t, const char *path, const char *what,
	const struct sw_log *log)
{
	const struct sockaddr *a = (const struct sockaddr *)&t->address;
	int err;

	if (strlen(path) >= sizeof(t->address.sun_path)) {
		sw_log(log, SW_LOG_ERROR,
			"%s %s: the path is longer than %zu bytes", what, path,
			sizeof(t->address.sun_path) - 1);
		return SW_EINVAL;
	}
	err = sw_stale_remove(path, SOCK_STREAM, what, log);
	if (err)
		return err;
	t->address.sun_family = AF_UNIX;
	strcpy(t->address.sun_path, path);
	t->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (t->fd >= 0 && !bind(t->fd, a, sizeof(t->address)) &&
		!listen(t->fd, BACKLOG))
		return 0;
	sw_log(log, SW_LOG_ERROR, "%s %s: %s", what, path, strerror(errno));
	if (t->fd >= 0)
		close(t->fd);
	*t = (struct sw_tell){0};
	return SW_EIO;
}

bool sw_tell_has_reader(const struct sw_tell *t)
{
	struct pollfd p = {.fd = t->fd, .events = POLLIN};

	return t->address.sun_path[0] && poll(&p, 1, 0) > 0;
}

static int next_reader(const struct sw_tell *t)
{
	return accept4(t->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

void sw_tell_poll(struct sw_tell *t, sw_tell_fn fill, void *ctx)
{
	int fd = t->address.sun_path[0] ? next_reader(t) : -1;
	char *text = NULL;
	size_t n = 0;
	FILE *f;

	if (fd < 0)
		return;
	f = open_memstream(&text, &n);
	if (f) {
		fill(ctx, f);
		if (fclose(f))
			n = 0;
	}
	for (int i = 1; fd >= 0; i++) {
		(void)!send(fd, text, n, MSG_NOSIGNAL | MSG_DONTWAIT);
		close(fd);
		fd = i < READERS ? next_reader(t) : -1;
	}
	free(text);
}

void sw_tell_close(struct sw_tell *t)
{
	if (!t->address.sun_path[0])
		return;
	close(t->fd);
	unlink(t->address.sun_path);
	*t = (struct sw_tell){0};
}
