/* release.h - what a client does for pmd/nccl, whose callers wait for nobody.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_CLIENT_RELEASE_H
#define SW_PMD_CLIENT_RELEASE_H

struct sw_group;

/* sw_group_release - when it returns, no buffer of what was called on @g is
 * read or written any more, nor will be, also by an sw_coll that another thread
 * is in.  What is open then ends with SW_EABORTED, when the agent is through
 * with it; sw_group_abort tells the others. Waits for no other process: for a
 * copy, of a piece at most, that a thread of this one is making.  Thread: any,
 * until sw_group_close begins. */
void sw_group_release(struct sw_group *g);

#endif
