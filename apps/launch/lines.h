/* lines.h - the output of another process, in whole lines that say whose.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_LAUNCH_LINES_H
#define SW_APPS_LAUNCH_LINES_H

#include <stddef.h>
#include <stdio.h>

/* Longer lines are given out in pieces of this many bytes. */
enum { SW_LINES_MAX = 1 << 20 };

struct sw_lines {
	int fd; /* -1: closed */
	FILE *to;
	const char *tag; /* "[0] " */
	char *text;      /* what is no whole line yet */
	size_t n, room;
};

/* sw_lines_init - give out what comes from @fd, which becomes non-blocking and
 * is now owned by @l, to @to.
 * @tag  stands before each line; borrowed */
void sw_lines_init(struct sw_lines *l, int fd, FILE *to, const char *tag);

/* sw_lines_move - give out the lines that are there, 1 MiB of them at most, so
 * that a process that never stops writing does not hold up the others; never
 * waits for more.  A line ends with '\n', or with '\r' like that of a progress
 * bar.  A last one that ends with neither gets a '\n' when the other side has
 * closed, and @l->fd is then -1.  Errors: SW_EIO, @to cannot be written. */
int sw_lines_move(struct sw_lines *l);

/* sw_lines_fini - give out what is left, close. */
void sw_lines_fini(struct sw_lines *l);

#endif
