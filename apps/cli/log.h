/* log.h - log lines of a process, to stderr.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_CLI_LOG_H
#define SW_APPS_CLI_LOG_H

#include <stdatomic.h>

#include "engine/base/log.h"

enum sw_log_format {
	SW_LOG_TEXT,    /* TIME LEVEL TEXT */
	SW_LOG_JSON,    /* {"time": ..., "level": ..., "text": ...} */
	SW_LOG_JOURNAL, /* <PRIORITY>TEXT; the journal has time and level */
};

/* Stderr for threads that must not wait.  A line that does not fit at once, as
 * in a full pipe that nobody reads, is dropped.  The next line that fits is
 * preceded by the number of dropped lines. */
struct sw_log_sink {
	int fd;
	enum sw_log_format format;
	atomic_int error_fd; /* keeps the last error (agent_error.h), or -1 */
	atomic_ulong n_dropped;
};

/* sw_log_format_parse - read "text", "json", "journal" or "auto", which is the
 * journal's form if stderr is the journal, else text.  Returns SW_EINVAL for
 * another word. */
int sw_log_format_parse(const char *word, enum sw_log_format *out);

/* sw_log_init - make @log write "TIME LEVEL TEXT" to stderr, one write per
 * line, for @level and what is more urgent.  TIME is the wall clock's in UTC,
 * as 2026-11-22T09:49:34.123Z.  The sink may have another format.  @sink is
 * borrowed; NULL: lines may wait until they are read. Thread: lines of any
 * thread stay whole. */
void sw_log_init(
	struct sw_log *log, struct sw_log_sink *sink, enum sw_log_level level);

/* sw_log_sink_open, sw_log_sink_close - open a sink, which never fails; close
 * it after the last line. */
void sw_log_sink_open(struct sw_log_sink *sink);
void sw_log_sink_close(struct sw_log_sink *sink);

/* sw_log_sink_format - choose the format of all lines from now on. */
static inline void sw_log_sink_format(
	struct sw_log_sink *sink, enum sw_log_format format)
{
	sink->format = format;
}

/* sw_log_sink_keep, sw_log_sink_forget - keep later errors also in @fd, as
 * sw_agent_error_write does; clear the kept error.  The sink owns @fd; -1 is
 * ignored. */
void sw_log_sink_keep(struct sw_log_sink *sink, int fd);
void sw_log_sink_forget(struct sw_log_sink *sink);

#endif
