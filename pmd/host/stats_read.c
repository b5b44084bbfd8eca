/* stats_read.c - read the counters of a running daemon.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/host/stats_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/base/error.h"

enum { LINE_BYTES = 256, SILENCE_S = 5 };

static int dial(const char *path, int *out)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct timeval silence = {.tv_sec = SILENCE_S};
	int sock, err;

	if (strlen(path) >= sizeof(a.sun_path))
		return SW_EINVAL;
	memcpy(a.sun_path, path, strlen(path));
	sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return SW_EIO;
	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof(silence));
	if (connect(sock, (struct sockaddr *)&a, sizeof(a))) {
		err = errno == EPROTOTYPE ? SW_EPROTO
		      : errno == EACCES   ? SW_EPERM
					  : SW_ECLOSED;
		close(sock);
		return err;
	}
	*out = sock;
	return 0;
}

/* Split "NAME VALUE"; @line is changed. */
static int split(char *line, uint64_t *value)
{
	char *space = strchr(line, ' ');
	char *end;

	if (!space || space == line || space[1] < '0' || space[1] > '9')
		return SW_EPROTO;
	*space = 0;
	errno = 0;
	*value = strtoull(space + 1, &end, 10);
	return *end || errno ? SW_EPROTO : 0;
}

static int read_error(FILE *f)
{
	if (!ferror(f))
		return 0;
	if (errno == ECONNRESET)
		return SW_ECLOSED;
	return errno == EAGAIN || errno == EWOULDBLOCK ? SW_ETIMEDOUT : SW_EIO;
}

/* Receive again after EINTR: if the process is stopped and continued, a receive
 * with a timeout fails with EINTR. */
static ssize_t receive(void *sock, char *to, size_t n)
{
	ssize_t got;

	do
		got = recv(*(const int *)sock, to, n, 0);
	while (got < 0 && errno == EINTR);
	return got;
}

int sw_stats_read(const char *path,
	void (*each)(void *ctx, const char *name, uint64_t value), void *ctx)
{
	char line[LINE_BYTES];
	uint64_t value;
	FILE *f;
	int sock, err = dial(path, &sock);

	if (err)
		return err;
	f = fopencookie(&sock, "r", (cookie_io_functions_t){.read = receive});
	if (!f) {
		close(sock);
		return SW_ENOMEM;
	}
	while (!err && fgets(line, sizeof(line), f)) {
		size_t n = strlen(line);

		if (!n || line[n - 1] != '\n') {
			err = SW_EPROTO;
			break;
		}
		line[n - 1] = 0;
		err = split(line, &value);
		if (!err)
			each(ctx, line, value);
	}
	if (!err)
		err = read_error(f);
	fclose(f);
	close(sock);
	return err;
}
