/* group.h - the ranks of a stream, as a worker knows them.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The wire and the servers know members.  A group is a list of ranks, in an
 * order that decides about its parts; each is a local rank of some member.
 */
#ifndef SW_ENGINE_WORKER_GROUP_H
#define SW_ENGINE_WORKER_GROUP_H

#include "engine/base/bits.h"
#include "engine/worker/worker.h"

struct sw_wrank {
	uint16_t rank, member, local; /* whose, and which of its local ranks */
};

struct sw_wgroup {
	struct sw_wrank *ranks;
	uint32_t n;
	uint32_t crc;     /* of the list */
	uint64_t members; /* that have some of them */
	uint32_t n_here;  /* local ranks of this worker, in their order: */
	uint16_t *here;
	uint64_t has_local[SW_LOCAL_WORDS]; /* the same */
	uint16_t *list;                     /* as declared */
	uint64_t *bits;                     /* the ranks, as a set */
	/* Places in the list by member, each one's in order; a member's begin
	 * at start. */
	uint16_t *by_member;
	uint16_t start[SW_MAX_MEMBERS + 1];
};

/* sw_wgroup_check - are these different ranks of the job, one of this worker
 * among them? */
bool sw_wgroup_check(
	const struct sw_worker *w, const uint16_t *ranks, uint32_t n);

/* sw_wgroup_fill - @ranks were checked, and are copied; @g has zeros, their
 * number, and memory for all. */
void sw_wgroup_fill(
	const struct sw_worker *w, const uint16_t *ranks, struct sw_wgroup *g);

/* sw_wgroup_has_local - is local rank @local of this worker in it? */
static inline bool sw_wgroup_has_local(
	const struct sw_wgroup *g, uint32_t local)
{
	return sw_bits_has(g->has_local, local);
}

/* sw_wgroup_name - a server says "stream NAME: …", and knows a member by its
 * first rank; where that is not in the group, the first of the member's that is
 * takes its place. */
void sw_wgroup_name(const struct sw_worker *w, const struct sw_wgroup *g,
	char text[SW_TEXT_MAX]);

/* sw_wgroup_find - the place of @rank in the list; n: it is not there. */
uint32_t sw_wgroup_find(const struct sw_wgroup *g, uint32_t rank);

#endif
