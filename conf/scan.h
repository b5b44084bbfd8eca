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

/* A section's header (@key NULL), or a key of the section. */
struct sw_scan_entry {
	const char *section;
	const char *key;
	const char *value; /* as iniparser reads it */
	uint32_t line;     /* counts from 1 */
};

/* The lines of a file, which iniparser does not tell, and the values that it
 * reads.  Texts live as long as the scan. */
struct sw_scan {
	char *text;
	struct _dictionary_ *values; /* iniparser's */
	struct sw_scan_entry *entries;
	uint32_t n_entries;
};

/* sw_scan_open - read the file r->path and split it into entries.  Reports
 * wrong lines, and sections and keys that occur twice, to @r and drops them;
 * iniparser reads the remaining lines.  Returns 0, even after reporting such
 * errors: then the caller must close @out.  Without a scan it returns
 * SW_ENOENT, SW_EIO, SW_ECONF (not a text file, too large) or SW_ENOMEM, also
 * reported.  Thread: one at a time (iniparser). */
int sw_scan_open(struct sw_report *r, struct sw_scan *out);

/* sw_scan_close - free the scan. */
void sw_scan_close(struct sw_scan *scan);

/* sw_scan_line - return the line of @key in @section, else the line of the
 * section's header (also for @key NULL), else 0.  @scan may be NULL. */
uint32_t sw_scan_line(
	const struct sw_scan *scan, const char *section, const char *key);

/* sw_scan_has - return whether @section sets @key. */
bool sw_scan_has(
	const struct sw_scan *scan, const char *section, const char *key);

#endif
