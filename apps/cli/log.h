/* log.h - write the log lines of a process to stderr.
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

/* A log to stderr for threads that must not wait.  If a line does not fit at
 * once, as in a full pipe without a reader, the sink drops it.  The next line
 * that fits is preceded by the number of dropped lines. */
struct sw_log_sink {
	int fd;
	enum sw_log_format format;
	atomic_int error_fd; /* file of the last error (agent_error.h), or -1 */
	atomic_ulong n_dropped;
};

/* sw_log_format_parse - read "text", "json", "journal" or "auto".  "auto" means
 * the journal's form if stderr is the journal, otherwise text.  Returns
 * SW_EINVAL for any other word. */
int sw_log_format_parse(const char *word, enum sw_log_format *out);

/* sw_log_init - make @log write lines of @level and more urgent ones to stderr,
 * as "TIME LEVEL TEXT" in one write per line.  TIME is the wall clock in UTC,
 * as 2026-11-22T09:49:34.123Z.  The sink may select another format.  @sink is
 * borrowed; NULL: a line may wait until stderr is read.  Thread: any; lines
 * stay whole. */
void sw_log_init(
	struct sw_log *log, struct sw_log_sink *sink, enum sw_log_level level);

/* sw_log_sink_open - open a sink; never fails. sw_log_sink_close - close it
 * after the last line. */
void sw_log_sink_open(struct sw_log_sink *sink);
void sw_log_sink_close(struct sw_log_sink *sink);

/* sw_log_sink_format - choose the format of all following lines. */
static inline void sw_log_sink_format(
	struct sw_log_sink *sink, enum sw_log_format format)
{
	sink->format = format;
}

/* sw_log_sink_keep - also write each further error to @fd, as
 * sw_agent_error_write does.  The sink owns @fd; -1 is ignored.
 * sw_log_sink_forget - clear the kept error. */
void sw_log_sink_keep(struct sw_log_sink *sink, int fd);
void sw_log_sink_forget(struct sw_log_sink *sink);

#endif
