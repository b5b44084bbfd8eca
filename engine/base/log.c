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

	if (!log || !log->line || level > log->level)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* what is cut may end in half a character */
	sw_text_clean(text, sizeof(text));
	log->line(log->ctx, level, text);
}

const char *sw_ip_text(uint32_t ip, char out[SW_IP_TEXT])
{
	snprintf(out, SW_IP_TEXT, "%u.%u.%u.%u", ip >> 24, ip >> 16 & 255,
		ip >> 8 & 255, ip & 255);
	return out;
}

/* The first bit at or above @from that is @is_set, 64 when there is none. */
static uint32_t next_rank(uint64_t ranks, uint32_t from, bool is_set)
{
	uint64_t left =
		from < 64 ? (is_set ? ranks : ~ranks) >> from << from : 0;

	return left ? (uint32_t)__builtin_ctzll(left) : 64;
}

const char *sw_ranks_text(uint64_t ranks, char out[SW_RANKS_TEXT])
{
	uint32_t first = next_rank(ranks, 0, true), end;
	size_t n = (size_t)snprintf(
		out, SW_RANKS_TEXT, ranks & (ranks - 1) ? "ranks" : "rank");

	for (const char *sep = " "; first < 64; sep = ", ") {
		end = next_rank(ranks, first, false);
		n += (size_t)snprintf(
			out + n, SW_RANKS_TEXT - n, "%s%u", sep, first);
		if (end - first > 1)
			n += (size_t)snprintf(out + n, SW_RANKS_TEXT - n,
				end - first > 2 ? "-%u" : ", %u", end - 1);
		first = next_rank(ranks, end, true);
	}
	return out;
}
