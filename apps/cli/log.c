/* log.c - log lines of a process, to stderr.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/cli/log.h"

#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "pmd/client/agent_error.h"

enum { TIME_BYTES = 40 };

static const char *const level_names[] = {
	[SW_LOG_ERROR] = "error",
	[SW_LOG_WARN] = "warn",
	[SW_LOG_INFO] = "info",
	[SW_LOG_DEBUG] = "debug",
};

/* Write whole or not at all, and do not wait.  A line is shorter than
 * PIPE_BUF, so a pipe takes all of it or none. */
static bool try_write(
	const struct sw_log_sink *sink, const char *line, size_t n)
{
	struct pollfd p = {.fd = sink->fd, .events = POLLOUT};

	return poll(&p, 1, 0) == 1 && write(sink->fd, line, n) == (ssize_t)n;
}

static void tell_dropped(struct sw_log_sink *sink)
{
	unsigned long dropped = atomic_exchange(&sink->n_dropped, 0);
	char line[80];
	int n;

	if (!dropped)
		return;
	n = snprintf(line, sizeof(line),
		"(%lu log lines dropped: stderr was full)\n", dropped);
	if (!try_write(sink, line, (size_t)n))
		atomic_fetch_add(&sink->n_dropped, dropped);
}

/* "2026-11-22T09:49:34.123Z": the same on all nodes, wherever they are. */
static void time_write(char out[TIME_BYTES])
{
	struct timespec now;
	struct tm tm;
	size_t n;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	n = strftime(out, TIME_BYTES, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + n, TIME_BYTES - n, ".%03dZ",
		(int)(now.tv_nsec / 1000000));
}

static void line_write(void *ctx, enum sw_log_level level, const char *text)
{
	struct sw_log_sink *sink = ctx;
	char line[600], when[TIME_BYTES];
	size_t n;

	time_write(when);
	snprintf(line, sizeof(line) - 1, "%s %s %s", when, level_names[level],
		text);
	n = strlen(line);
	line[n++] = '\n';
	if (!sink) {
		fwrite(line, 1, n, stderr);
		return;
	}
	if (level == SW_LOG_ERROR)
		sw_agent_error_write(sink->error_fd, text);
	tell_dropped(sink);
	if (!try_write(sink, line, n))
		atomic_fetch_add(&sink->n_dropped, 1);
}

void sw_log_init(
	struct sw_log *log, struct sw_log_sink *sink, enum sw_log_level level)
{
	*log = (struct sw_log){.line = line_write, .ctx = sink, .level = level};
}

void sw_log_sink_open(struct sw_log_sink *sink)
{
	struct stat st;

	*sink = (struct sw_log_sink){.fd = STDERR_FILENO, .error_fd = -1};
	/* O_NONBLOCK belongs to the open file, which others share: a pipe is
	 * opened once more for us alone. */
	if (!fstat(STDERR_FILENO, &st) && S_ISFIFO(st.st_mode))
		sink->fd = open(
			"/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (sink->fd < 0) /* e.g. another user's terminal: poll before lines */
		sink->fd = STDERR_FILENO;
}

void sw_log_sink_close(struct sw_log_sink *sink)
{
	if (sink->fd > STDERR_FILENO)
		close(sink->fd);
	sink->fd = STDERR_FILENO;
	if (sink->error_fd >= 0)
		close(sink->error_fd);
	sink->error_fd = -1;
}

void sw_log_sink_keep(struct sw_log_sink *sink, int fd)
{
	sink->error_fd = fd;
}

void sw_log_sink_forget(struct sw_log_sink *sink)
{
	sw_agent_error_write(sink->error_fd, "");
}
