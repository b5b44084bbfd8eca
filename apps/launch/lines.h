/* lines.h - copy the output of another process in whole, tagged lines.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_LAUNCH_LINES_H
#define SW_APPS_LAUNCH_LINES_H

#include <stddef.h>
#include <stdio.h>

/* A longer line is split into pieces of this many bytes. */
enum { SW_LINES_MAX = 1 << 20 };

struct sw_lines {
	int fd; /* -1: closed */
	FILE *to;
	const char *tag; /* prefix of each line: "[0] " */
	char *text;      /* the incomplete last line */
	size_t n, room;
};

/* sw_lines_init - copy the output of @fd to @to.  @fd becomes non-blocking, and
 * @l owns it.
 * @tag  prefix of each line; borrowed */
void sw_lines_init(struct sw_lines *l, int fd, FILE *to, const char *tag);

/* sw_lines_move - write the available lines, without waiting for more.  It
 * writes at most 1 MiB, so that a process that never stops writing does not
 * delay others.  A line ends with '\n', or with '\r' as in a progress bar.
 * When the other side has closed, an incomplete last line gets a '\n', and
 * @l->fd becomes -1.  Errors: SW_EIO, @to cannot be written. */
int sw_lines_move(struct sw_lines *l);

/* sw_lines_fini - write the remaining output, and close. */
void sw_lines_fini(struct sw_lines *l);

#endif
