/* log.c - log lines of a process, to stderr.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/log.h"

#include <stdio.h>
#include <time.h>

static const char *const level_names[] = {
	[SW_LOG_ERROR] = "error",
	[SW_LOG_WARN] = "warn",
	[SW_LOG_INFO] = "info",
	[SW_LOG_DEBUG] = "debug",
};

/* Names from outside get into lines; a control character must not. */
static void control_mask(char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			*s = '?';
}

static void line_write(void *ctx, enum sw_log_level level, const char *text)
{
	char line[600];
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(line, sizeof(line), "%lld.%06ld %s %s", (long long)now.tv_sec,
		now.tv_nsec / 1000, level_names[level], text);
	control_mask(line);
	fprintf(stderr, "%s\n", line);
}

void sw_log_init(struct sw_log *log, enum sw_log_level level)
{
	*log = (struct sw_log){.line = line_write, .level = level};
}
