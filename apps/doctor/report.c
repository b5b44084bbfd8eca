/* report.c - the lines that doctor prints.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/doctor/report.h"

#include <stdarg.h>
#include <string.h>

#include "apps/cli/json.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

/* Add a line.  Returns NULL if the report is full; a problem counts anyway. */
static struct sw_doctor_line *line_add(
	struct sw_doctor_report *r, const char *check, bool is_wrong)
{
	struct sw_doctor_line *line;

	r->n_wrong += is_wrong;
	if (r->n == SW_DOCTOR_LINES)
		return NULL;
	line = &r->lines[r->n++];
	memset(line, 0, sizeof(*line));
	line->check = check;
	line->is_wrong = is_wrong;
	return line;
}

/* Write the finding without control characters: names of interfaces and
 * datagrams of unknown senders may contain anything. */
static void found_write(
	struct sw_doctor_line *line, const char *fmt, va_list args)
{
	vsnprintf(line->found, sizeof(line->found), fmt, args);
	sw_text_clean(line->found, sizeof(line->found));
}

void sw_doctor_ok(
	struct sw_doctor_report *r, const char *check, const char *fmt, ...)
{
	struct sw_doctor_line *line = line_add(r, check, false);
	va_list args;

	if (!line)
		return;
	va_start(args, fmt);
	found_write(line, fmt, args);
	va_end(args);
}

void sw_doctor_wrong(struct sw_doctor_report *r, const char *check,
	const char *cost, const char *mend, const char *fmt, ...)
{
	struct sw_doctor_line *line = line_add(r, check, true);
	va_list args;

	if (!line)
		return;
	snprintf(line->cost, sizeof(line->cost), "%s", cost);
	snprintf(line->mend, sizeof(line->mend), "%s", mend);
	sw_text_clean(line->mend, sizeof(line->mend));
	va_start(args, fmt);
	found_write(line, fmt, args);
	va_end(args);
}

static int print_json(const struct sw_doctor_report *r, FILE *to)
{
	struct sw_json j;

	sw_json_init(&j, to);
	sw_json_object_open(&j, NULL);
	sw_json_bool(&j, "is_good", !r->n_wrong);
	sw_json_u64(&j, "wrong", r->n_wrong);
	sw_json_array_open(&j, "checks");
	for (uint32_t i = 0; i < r->n; i++) {
		const struct sw_doctor_line *line = &r->lines[i];

		sw_json_object_open(&j, NULL);
		sw_json_text(&j, "check", line->check);
		sw_json_text(&j, "state", line->is_wrong ? "wrong" : "ok");
		sw_json_text(&j, "found", line->found);
		if (line->is_wrong) {
			sw_json_text(&j, "cost", line->cost);
			sw_json_text(&j, "mend", line->mend);
		}
		sw_json_close(&j);
	}
	sw_json_close(&j);
	sw_json_close(&j);
	return sw_json_fini(&j);
}

int sw_doctor_print(const struct sw_doctor_report *r, bool is_json, FILE *to)
{
	int width = 0;

	if (is_json)
		return print_json(r, to);
	for (uint32_t i = 0; i < r->n; i++)
		if ((int)strlen(r->lines[i].check) > width)
			width = (int)strlen(r->lines[i].check);
	for (uint32_t i = 0; i < r->n; i++) {
		const struct sw_doctor_line *line = &r->lines[i];

		fprintf(to, "%-5s  %-*s  %s\n", line->is_wrong ? "WRONG" : "OK",
			width, line->check, line->found);
		if (!line->is_wrong)
			continue;
		fprintf(to, "%*s  cost: %s\n", width + 7, "", line->cost);
		fprintf(to, "%*s  mend: %s\n", width + 7, "", line->mend);
	}
	if (r->n_wrong)
		fprintf(to, "%u of %u checks found something wrong\n",
			r->n_wrong, r->n);
	return fflush(to) || ferror(to) ? SW_EIO : 0;
}
