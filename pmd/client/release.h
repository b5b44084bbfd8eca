/* release.h - release a group's buffers without waiting, for pmd/nccl.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_CLIENT_RELEASE_H
#define SW_PMD_CLIENT_RELEASE_H

struct sw_group;

/* sw_group_release - stop all use of the buffers of calls on @g, including by
 * an sw_coll in another thread.  Open calls end with SW_EABORTED once the agent
 * has finished with them; use sw_group_abort to tell the other ranks.  Does not
 * wait for other processes, only for a copy of at most one piece in this
 * process.  Thread: any, until sw_group_close begins. */
void sw_group_release(struct sw_group *g);

#endif
