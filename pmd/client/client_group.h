/* client_group.h - libsumwire: a group, and the error that ended it.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_CLIENT_CLIENT_GROUP_H
#define SW_PMD_CLIENT_CLIENT_GROUP_H

#include "pmd/client/client.h"

enum {
	SW_GROUP_NAME_MAX = 100, /* bytes; the kind is appended */
	SW_GROUP_SHORT = 41,
	SW_OWN_CALL_BYTES =
		96, /* text about this rank's own call in an error */
};

/* Number of closed groups of a name.  It is part of the stream names of the
 * next group of that name. */
struct sw_group_past {
	struct sw_group_past *next;
	uint32_t n_closed;
	char name[SW_GROUP_NAME_MAX + 1];
};

struct sw_group {
	struct sw_client *client;
	struct sw_group *next;
	struct sw_group_past
		*past;       /* record of the closed groups of its name */
	uint32_t generation; /* closed groups of its name before this group */
	uint32_t timeout_s;  /* 0: none */
	uint32_t n_calls;    /* calls not yet reported */
	uint64_t n_called;   /* calls so far, of all kinds */
	/* The error of every call on a dead group, with why; 0: alive. */
	int death;
	bool is_closed;
	bool is_close_sent; /* the agent knows of the close */
	bool is_given;      /* streams and stages are released */
	bool is_due;        /* release them: no handle is left */
	bool is_released;   /* sw_group_release was called */
	bool is_expired;    /* the agent has been told to abort it */
	struct sw_edge_why why;
	char text[SW_EDGE_WHY_BYTES + SW_OWN_CALL_BYTES];
	struct sw_channel channels[SW_N_COLL_KINDS];
	char name[SW_GROUP_NAME_MAX + 1];
	uint32_t n;
	uint16_t ranks[]; /* ranks of the job, in the group's order */
};

/* sw_group_place - return the index of @rank in the group; g->n if @rank is no
 * member. */
uint32_t sw_group_place(const struct sw_group *g, uint32_t rank);

/* sw_group_has - return whether @rank is a member. */
bool sw_group_has(const struct sw_group *g, uint32_t rank);

/* sw_group_name - return the name given to sw_group_open. */
const char *sw_group_name(const struct sw_group *g);

/* sw_group_short - copy the name for a sentence; cut a long name, ending with
 * "...".  Returns @out. */
const char *sw_group_short(const struct sw_group *g, char out[SW_GROUP_SHORT]);

/* sw_coll_priority - return the priority of all collectives of @kind. */
uint32_t sw_coll_priority(enum sw_coll_kind kind);

/* --- death --- */

/* sw_client_is_death - return whether @err ends a group. */
bool sw_client_is_death(int err);

/* sw_group_die - end @g with this error and reason, unless the group has ended
 * before. */
void sw_group_die(struct sw_group *g, int death, const struct sw_edge_why *why);

/* sw_group_note_death - end @g if a piece of @stream ended with a @status that
 * ends groups. */
void sw_group_note_death(
	struct sw_group *g, const struct sw_tensor *stream, int status);

/* sw_group_fail - return 0, or the error of every call on @g. */
int sw_group_fail(const struct sw_group *g);

#endif
