/* log.c - write the log lines of a process to stderr.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/cli/log.h"

#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "pmd/client/agent_error.h"

enum { TIME_BYTES = 40, LINE_BYTES = 1200 };

static const char *const level_names[] = {
	[SW_LOG_ERROR] = "error",
	[SW_LOG_WARN] = "warn",
	[SW_LOG_INFO] = "info",
	[SW_LOG_DEBUG] = "debug",
};

/* Write a whole line or nothing, without waiting.  A line is shorter than
 * PIPE_BUF, so a pipe takes all of it or nothing. */
static bool try_write(
	const struct sw_log_sink *sink, const char *line, size_t n)
{
	struct pollfd p = {.fd = sink->fd, .events = POLLOUT};

	return poll(&p, 1, 0) == 1 && write(sink->fd, line, n) == (ssize_t)n;
}

/* Write the time as "2026-11-22T09:49:34.123Z": UTC, so that all nodes
 * agree. */
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

int sw_log_format_parse(const char *word, enum sw_log_format *out)
{
	static const char *const words[] = {[SW_LOG_TEXT] = "text",
		[SW_LOG_JSON] = "json",
		[SW_LOG_JOURNAL] = "journal"};
	const char *journal = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(word, words[i])) {
			*out = (enum sw_log_format)i;
			return 0;
		}
	if (strcmp(word, "auto"))
		return SW_EINVAL;
	/* Processes inherit the variable, but stderr may have changed. */
	*out = journal && sscanf(journal, "%llu:%llu", &dev, &ino) == 2 &&
			       !fstat(STDERR_FILENO, &st) && st.st_dev == dev &&
			       st.st_ino == ino
		       ? SW_LOG_JOURNAL
		       : SW_LOG_TEXT;
	return 0;
}

/* Write a line as JSON. sw_log has removed control characters, so only quotes
 * and backslashes need an escape. */
static size_t json_write(char *line, size_t n, const char *when,
	const char *level, const char *text)
{
	size_t at = (size_t)snprintf(line, n,
		"{\"time\": \"%s\", \"level\": \"%s\", \"text\": \"", when,
		level);

	for (; *text && at + 4 < n; text++) {
		if (*text == '"' || *text == '\\')
			line[at++] = '\\';
		line[at++] = *text;
	}
	line[at++] = '"';
	line[at++] = '}';
	return at;
}

/* Format a line.  Returns its length, without a newline. */
static size_t line_format(char line[LINE_BYTES], enum sw_log_format format,
	enum sw_log_level level, const char *text)
{
	static const int priorities[] = {[SW_LOG_ERROR] = 3,
		[SW_LOG_WARN] = 4,
		[SW_LOG_INFO] = 6,
		[SW_LOG_DEBUG] = 7}; /* levels of syslog(3) */
	char when[TIME_BYTES];

	time_write(when);
	if (format == SW_LOG_JSON)
		return json_write(
			line, LINE_BYTES - 1, when, level_names[level], text);
	if (format == SW_LOG_JOURNAL)
		snprintf(line, LINE_BYTES - 1, "<%d>%s", priorities[level],
			text);
	else
		snprintf(line, LINE_BYTES - 1, "%s %s %s", when,
			level_names[level], text);
	return strlen(line);
}

static void tell_dropped(struct sw_log_sink *sink)
{
	unsigned long dropped = atomic_exchange(&sink->n_dropped, 0);
	char line[LINE_BYTES], text[80];
	size_t n;

	if (!dropped)
		return;
	snprintf(text, sizeof(text), "%lu log lines dropped: stderr was full",
		dropped);
	n = line_format(line, sink->format, SW_LOG_WARN, text);
	line[n++] = '\n';
	if (!try_write(sink, line, n))
		atomic_fetch_add(&sink->n_dropped, dropped);
}

static void line_write(void *ctx, enum sw_log_level level, const char *text)
{
	struct sw_log_sink *sink = ctx;
	char line[LINE_BYTES];
	size_t n = line_format(
		line, sink ? sink->format : SW_LOG_TEXT, level, text);

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
	/* Other processes share the open file, and with it O_NONBLOCK.  So open
	 * a pipe again for this process alone. */
	if (!fstat(STDERR_FILENO, &st) && S_ISFIFO(st.st_mode))
		sink->fd = open(
			"/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	/* e.g. another user's terminal: poll before each line */
	if (sink->fd < 0)
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
