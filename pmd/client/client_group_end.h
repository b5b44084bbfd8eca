/* client_group_end.h - libsumwire: end a group; the library's thread.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_CLIENT_CLIENT_GROUP_END_H
#define SW_PMD_CLIENT_CLIENT_GROUP_END_H

#include "pmd/client/client_group.h"

/* sw_client_abort - as sw_group_abort, with the lock held.  Another thread may
 * close @g meanwhile. */
int sw_client_abort(struct sw_group *g, int reason, const char *text);

/* sw_group_put - drop one reference, after a call on @g was reported.  The last
 * drop frees a closed group, or has the library's thread release the group's
 * streams. */
void sw_group_put(struct sw_group *g);

/* sw_client_free_groups - free all groups when the client is closed. */
void sw_client_free_groups(struct sw_client *c);

/* sw_client_start_thread - start the library's thread, unless it runs.  The
 * thread does the work for which no other thread waits, aborts groups that have
 * timed out, and releases closed groups.  Errors: SW_ENOMEM. */
int sw_client_start_thread(struct sw_client *c);

/* sw_client_end_thread - end the library's thread, and join it. */
void sw_client_end_thread(struct sw_client *c);

#endif
