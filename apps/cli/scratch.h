/* scratch.h - a folder that lives as long as its process.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_CLI_SCRATCH_H
#define SW_APPS_CLI_SCRATCH_H

enum { SW_SCRATCH_BYTES = 128 };

/* All zero: no folder.  It is locked while its process, or a fork of it,
 * lives. */
struct sw_scratch {
	char path[SW_SCRATCH_BYTES];
	int fd;
};

/* sw_scratch_open - make a folder @parent/@prefix-XXXXXX with mode 0700.  First
 * removes folders of such a name that killed processes of this user have left.
 * Errors: SW_EINVAL the path would be too long; SW_EIO, errno says why. */
int sw_scratch_open(
	struct sw_scratch *s, const char *parent, const char *prefix);

/* sw_scratch_close - remove the folder with its contents; @s may be zeroed. */
void sw_scratch_close(struct sw_scratch *s);

#endif
