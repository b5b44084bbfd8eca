/* scratch.h - a folder for the time that a process lives.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_CLI_SCRATCH_H
#define SW_APPS_CLI_SCRATCH_H

enum { SW_SCRATCH_BYTES = 128 };

/* Zeroed: none.  It is locked while its process, or a fork of it, lives. */
struct sw_scratch {
	char path[SW_SCRATCH_BYTES];
	int fd;
};

/* sw_scratch_open - make a folder @parent/@prefix-XXXXXX of our own, with mode
 * 0700; those of that name that killed processes of this user have left are
 * removed first.
 * Errors: SW_EINVAL the path would be too long; SW_EIO, errno says why. */
int sw_scratch_open(
	struct sw_scratch *s, const char *parent, const char *prefix);

/* sw_scratch_close - remove it with all that is in it; may be zeroed. */
void sw_scratch_close(struct sw_scratch *s);

#endif
