/* log.c - format one log line.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/log.h"

#include <stdarg.h>
#include <stdio.h>

void sw_log(
	const struct sw_log *log, enum sw_log_level level, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (!log || !log->line || level > log->level)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	log->line(log->ctx, level, text);
}

const char *sw_ip_text(uint32_t ip, char out[SW_IP_TEXT])
{
	snprintf(out, SW_IP_TEXT, "%u.%u.%u.%u", ip >> 24, ip >> 16 & 255,
		ip >> 8 & 255, ip & 255);
	return out;
}
