/* log.h - log lines through a callback, since the engine does no I/O.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_BASE_LOG_H
#define SW_ENGINE_BASE_LOG_H

#include <stdint.h>

enum sw_log_level { SW_LOG_ERROR, SW_LOG_WARN, SW_LOG_INFO, SW_LOG_DEBUG };

/* Error: a failure.  Warn: an event that a person should look at.  Info: a
 * bounded number of lines per object (job, member, tensor).  Debug: all else
 * except packets.  A line is lower case, without full stop, and names the exact
 * cause. */
struct sw_log {
	void (*line)(void *ctx, enum sw_log_level level, const char *text);
	void *ctx;
	enum sw_log_level level; /* lines above this level are not formatted */
};

/* sw_log_set_level - change the level of a log; other threads may use it. */
static inline void sw_log_set_level(struct sw_log *log, enum sw_log_level level)
{
	__atomic_store_n(&log->level, level, __ATOMIC_RELAXED);
}

/* sw_log - format one line and hand it to @log (NULL: dropped).  Never call on
 * the packet path.  Cuts lines at 511 bytes, and replaces characters that do
 * not print by '?' (text.h). */
void sw_log(const struct sw_log *log, enum sw_log_level level, const char *fmt,
	...) __attribute__((format(printf, 3, 4)));

/* sw_agents_text - write the bits of @agents into @out as "agent 2" or
 * "agents 0, 2-5".  Returns @out. */
enum { SW_AGENTS_TEXT = 192 };
const char *sw_agents_text(uint64_t agents, char out[SW_AGENTS_TEXT]);

#endif
