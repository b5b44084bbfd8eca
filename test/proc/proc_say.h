/* proc_say.h - how the test programs end and report their progress.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef SW_TEST_PROC_PROC_SAY_H
#define SW_TEST_PROC_PROC_SAY_H

#include <stdio.h>
#include <stdlib.h>

#include <sumwire/sumwire.h>

enum { EXIT_ERROR = 3, EXIT_WRONG = 4 };

static inline void proc_say(const char *text)
{
	printf("%s\n", text);
	fflush(stdout);
}

/* On an error print it, leave the job and exit. */
static inline void proc_must(struct sw_client **c, int err, const char *where)
{
	if (!err)
		return;
	printf("error %s %s: %s\n", where, sw_error_name(err),
		sw_last_error(*c));
	fflush(stdout);
	sw_close(c);
	exit(EXIT_ERROR);
}

#endif
