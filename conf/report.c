/* report.c - errors of a configuration file, each with file and line.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "conf/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PATH_SHOWN = 128 }; /* a longer path is cut to its tail */

static void place_format(const struct sw_report *r, uint32_t line,
	const char *section, const char *key, char *buf, size_t len)
{
	const char *path = r->path ? r->path : "configuration";
	size_t n = strlen(path);
	char number[16] = "";

	if (line)
		snprintf(number, sizeof(number), "%u:", line);
	snprintf(buf, len, "%s%s:%s%s%.70s%s%s%.70s%s",
		n > PATH_SHOWN ? "..." : "",
		n > PATH_SHOWN ? path + n - PATH_SHOWN : path, number,
		section ? " [" : "", section ? section : "", section ? "]" : "",
		key ? " " : "", key ? key : "", key || section ? ":" : "");
}

void sw_report_error(struct sw_report *r, uint32_t line, const char *section,
	const char *key, const char *fmt, ...)
{
	char place[320], text[480];
	va_list ap;

	r->n_errors++;
	if (r->n_errors > SW_REPORT_MAX)
		return;
	place_format(r, line, section, key, place, sizeof(place));
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	sw_log(r->log, SW_LOG_ERROR, "%s %s", place, text);
	if (r->n_errors == SW_REPORT_MAX)
		sw_log(r->log, SW_LOG_ERROR, "%s: more errors are not shown",
			r->path ? r->path : "configuration");
}
