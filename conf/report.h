/* report.h - errors of a configuration file, each with file and line.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_CONF_REPORT_H
#define SW_CONF_REPORT_H

#include <stdint.h>

#include "engine/base/log.h"

enum { SW_REPORT_MAX = 100 }; /* most errors written; all are counted */

/* Destination of errors (log may be NULL), and their number. */
struct sw_report {
	const struct sw_log *log;
	const char *path; /* NULL: a program made the configuration */
	uint32_t n_errors;
};

/* sw_report_error - count an error, and log it as "PATH:LINE: [SECTION] KEY:
 * TEXT".  Omits the parts with @line 0, @section NULL or @key NULL. */
void sw_report_error(struct sw_report *r, uint32_t line, const char *section,
	const char *key, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

#endif
