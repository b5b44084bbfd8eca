/* log.h - where log lines go: a callback, since the engine does no I/O.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_BASE_LOG_H
#define SW_ENGINE_BASE_LOG_H

#include <stdint.h>

enum sw_log_level { SW_LOG_ERROR, SW_LOG_WARN, SW_LOG_INFO, SW_LOG_DEBUG };

/* Levels by volume: error = something failed, warn = something a person should
 * look at, info = proportional to objects (jobs, members, tensors), debug =
 * anything else but packets.  Lower case, no full stop, the exact cause. */
struct sw_log {
	void (*line)(void *ctx, enum sw_log_level level, const char *text);
	void *ctx;
	enum sw_log_level level; /* lines above it are not formatted */
};

/* sw_log_set_level - change the level of a log that other threads may use. */
static inline void sw_log_set_level(struct sw_log *log, enum sw_log_level level)
{
	__atomic_store_n(&log->level, level, __ATOMIC_RELAXED);
}

/* sw_log - format one line and hand it to @log (NULL: dropped).
 * Never on the packet path.  Lines are cut at 511 bytes, and what does
 * not print is a '?' (text.h). */
void sw_log(const struct sw_log *log, enum sw_log_level level, const char *fmt,
	...) __attribute__((format(printf, 3, 4)));

/* sw_agents_text - write the bits of @agents into @out as "agent 2" or
 * "agents 0, 2-5".  Returns @out. */
enum { SW_AGENTS_TEXT = 192 };
const char *sw_agents_text(uint64_t agents, char out[SW_AGENTS_TEXT]);

#endif
