/* client_group.h - inside of libsumwire: groups, from open to given back.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_CLIENT_CLIENT_GROUP_H
#define SW_PMD_CLIENT_CLIENT_GROUP_H

#include "pmd/client/client.h"

/* --- client_death.c --- */

/* sw_client_is_death - is it an error after which a group is dead? */
bool sw_client_is_death(int err);

/* sw_group_die - it is, with this error and sentence, if it was not before. */
void sw_group_die(struct sw_group *g, int death, const char *why);

/* sw_group_fail - 0, or why nothing can be called on @g any more. */
int sw_group_fail(const struct sw_group *g);

/* sw_group_note_death - a piece of @stream ended with @status, which may be the
 * end of its group. */
void sw_group_note_death(
	struct sw_group *g, const struct sw_tensor *stream, int status);

/* --- client_expire.c --- */

/* sw_group_short - its name in a sentence; a long one ends with "...".  Returns
 * @out. */
enum { SW_GROUP_SHORT = 41 };
const char *sw_group_short(const struct sw_group *g, char out[SW_GROUP_SHORT]);

/* sw_group_stream - any that it has opened; NULL: none. */
const struct sw_tensor *sw_group_stream(const struct sw_group *g);

/* sw_group_tell - have the agent end the group, which has a stream. */
int sw_group_tell(
	struct sw_group *g, enum sw_edge_end_kind what, const char *why);

/* sw_client_expire - abort groups whose collectives have taken too long; when
 * to look again. */
uint64_t sw_client_expire(struct sw_client *c);

/* --- client_group.c: how groups begin --- */

/* sw_group_place - the place of @rank in the group; g->n: it is not there.
 * sw_group_has - is it? */
uint32_t sw_group_place(const struct sw_group *g, uint32_t rank);
bool sw_group_has(const struct sw_group *g, uint32_t rank);

/* sw_group_open_stream - for collectives of @kind; all members are there. */
int sw_group_open_stream(struct sw_group *g, enum sw_coll_kind kind);

/* --- client_group_end.c: how they end --- */

/* sw_group_put - one that was called on it is reported.  A group that was
 * closed goes with the last, or is due to be given back. */
void sw_group_put(struct sw_group *g);

/* sw_client_give_due - give back what groups that are due have.  The lock is
 * released meanwhile. */
void sw_client_give_due(struct sw_client *c);

/* sw_client_free_groups - at the end. */
void sw_client_free_groups(struct sw_client *c);

#endif
