/* log.c - format one log line.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/base/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "engine/base/text.h"

void sw_log(
	const struct sw_log *log, enum sw_log_level level, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (!log || !log->line ||
		level > __atomic_load_n(&log->level, __ATOMIC_RELAXED))
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* cutting may have left half a character */
	sw_text_clean(text, sizeof(text));
	log->line(log->ctx, level, text);
}

const char *sw_agents_text(uint64_t agents, char out[SW_AGENTS_TEXT])
{
	bool are_some = agents & (agents - 1);
	size_t n = (size_t)snprintf(
		out, SW_AGENTS_TEXT, are_some ? "agents " : "agent ");

	sw_text_runs(out + n, SW_AGENTS_TEXT - n, &agents, 64);
	return out;
}
