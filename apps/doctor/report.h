/* report.h - the lines that doctor prints.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_DOCTOR_REPORT_H
#define SW_APPS_DOCTOR_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { SW_DOCTOR_LINES = 96, SW_DOCTOR_TEXT = 320 };

/* One finding.  @cost and @mend are empty unless something is wrong. */
struct sw_doctor_line {
	const char *check; /* static: "memlock" */
	bool is_wrong;
	char found[SW_DOCTOR_TEXT], cost[SW_DOCTOR_TEXT], mend[SW_DOCTOR_TEXT];
};

struct sw_doctor_report {
	uint32_t n, n_wrong;
	struct sw_doctor_line lines[SW_DOCTOR_LINES];
};

/* sw_doctor_ok - add a line about a good finding of @check.  If the report is
 * full, the line is dropped. */
void sw_doctor_ok(struct sw_doctor_report *r, const char *check,
	const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* sw_doctor_wrong - add a line about a problem.
 * @cost  its effect, a sentence without a full stop
 * @mend  the command that solves it, or advice
 * @fmt   the finding */
void sw_doctor_wrong(struct sw_doctor_report *r, const char *check,
	const char *cost, const char *mend, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* sw_doctor_print - write all lines to @to, as text or as one JSON object.
 * Errors: SW_EIO. */
int sw_doctor_print(const struct sw_doctor_report *r, bool is_json, FILE *to);

#endif
