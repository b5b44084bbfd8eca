/* frame.h - the lines of sumwire top.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_WATCH_FRAME_H
#define SW_APPS_WATCH_FRAME_H

#include <stdbool.h>
#include <stdio.h>

#include "apps/watch/scan.h"

enum sw_frame_sort { SW_SORT_RATE, SW_SORT_LOSS, SW_SORT_NAME, SW_SORTS };

struct sw_frame {
	/* the rates cover the time between them */
	const struct sw_scan *before, *now;
	uint32_t lines, columns; /* available; lines 0: no limit */
	enum sw_frame_sort sort;
	bool is_terminal; /* show heads of tables in reverse video */
};

/* sw_frame_sort_name - return "rate", "loss" or "name". */
const char *sw_frame_sort_name(enum sw_frame_sort sort);

/* sw_frame_write - write tables of jobs, members, daemons, ports and polling
 * cores to @to, at most @f->lines lines of at most @f->columns characters.
 * Tables share the room; if rows are hidden, the table's head shows their
 * number as +N.  A name that is too long loses its middle: '~' replaces it, or
 * '?' if another name looks the same.  Errors: SW_ENOMEM. */
int sw_frame_write(const struct sw_frame *f, FILE *to);

#endif
