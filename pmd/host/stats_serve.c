/* stats_serve.c - let others read this daemon's counters.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/host/stats_serve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "pmd/host/stale.h"

struct sw_stats_serve {
	int fd;
	sw_stats_fill_fn fill;
	void *ctx;
	struct sockaddr_un address;
};

static int listen_at(struct sw_stats_serve *s, const struct sw_log *log)
{
	const struct sockaddr *a = (const struct sockaddr *)&s->address;

	int err = sw_stale_remove(
		s->address.sun_path, SOCK_STREAM, "stats socket", log);

	if (err)
		return err;
	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd >= 0 && !bind(s->fd, a, sizeof(s->address)) &&
		!listen(s->fd, 16))
		return 0;
	sw_log(log, SW_LOG_ERROR, "stats socket %s: %s", s->address.sun_path,
		strerror(errno));
	if (s->fd >= 0)
		close(s->fd);
	return SW_EIO;
}

int sw_stats_serve_open(const char *path, sw_stats_fill_fn fill, void *ctx,
	const struct sw_log *log, struct sw_stats_serve **out)
{
	struct sw_stats_serve *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return SW_ENOMEM;
	s->fill = fill;
	s->ctx = ctx;
	s->address.sun_family = AF_UNIX;
	if (strlen(path) >= sizeof(s->address.sun_path)) {
		sw_log(log, SW_LOG_ERROR,
			"stats socket %s: the path is longer than %zu bytes",
			path, sizeof(s->address.sun_path) - 1);
		free(s);
		return SW_EINVAL;
	}
	strcpy(s->address.sun_path, path);
	err = listen_at(s, log);
	if (err) {
		free(s);
		return err;
	}
	*out = s;
	return 0;
}

static void put(void *out, const char *name, uint64_t value)
{
	fprintf(out, "%s %llu\n", name, (unsigned long long)value);
}

/* As long as it gets: a server of 32 ports has over a thousand lines. */
static void answer(const struct sw_stats_serve *s, int fd)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return;
	s->fill(s->ctx, put, f);
	if (!fclose(f))
		(void)!send(fd, text, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	free(text);
}

void sw_stats_serve_poll(struct sw_stats_serve *s)
{
	int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	answer(s, fd);
	close(fd);
}

void sw_stats_serve_close(struct sw_stats_serve **s)
{
	if (!*s)
		return;
	close((*s)->fd);
	unlink((*s)->address.sun_path);
	free(*s);
	*s = NULL;
}
