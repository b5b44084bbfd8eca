/* scan.h - the lines of a configuration file: numbers, syntax, duplicates.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_CONF_SCAN_H
#define SW_CONF_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "conf/report.h"

enum {
	SW_SCAN_FILE_BYTES = 256 * 1024, /* larger files are refused */
	SW_SCAN_LINE_BYTES = 1000,       /* iniparser's own limit is 1,023 */
	SW_SCAN_LINES = 4096,
};

/* A section's header (@key NULL) or a key of it. */
struct sw_scan_entry {
	const char *section;
	const char *key;
	const char *value; /* as iniparser reads it */
	uint32_t line;     /* from 1 */
};

/* The lines of a file, which iniparser does not tell, and their values, which
 * it does.  Texts live as long as the scan. */
struct sw_scan {
	char *text;
	struct _dictionary_ *values; /* iniparser's */
	struct sw_scan_entry *entries;
	uint32_t n_entries;
};

/* sw_scan_open - read @path (r->path) and take it apart line by line.  Lines
 * that are wrong, and sections and keys given twice, are reported to @r and
 * left out; iniparser reads what is left.  Returns 0, also when errors were
 * reported; SW_ENOENT, SW_EIO, SW_ECONF (not a text file, too large) or
 * SW_ENOMEM, reported too, when there is no scan.  The caller closes @out after
 * 0.  Thread: one at a time (iniparser). */
int sw_scan_open(struct sw_report *r, struct sw_scan *out);

/* sw_scan_close - free what sw_scan_open took. */
void sw_scan_close(struct sw_scan *scan);

/* sw_scan_line - the line of @key in @section, else that of the section's
 * header (also for @key NULL), else 0.  @scan may be NULL. */
uint32_t sw_scan_line(
	const struct sw_scan *scan, const char *section, const char *key);

/* sw_scan_has - was @key given in @section? */
bool sw_scan_has(
	const struct sw_scan *scan, const char *section, const char *key);

#endif
