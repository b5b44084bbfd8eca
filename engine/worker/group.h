/* group.h - the ranks of a stream, as a worker knows them.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The wire and the servers know members only.  At a worker, a group is a list
 * of ranks in the order of their parts; each is a local rank of some member. */
#ifndef SW_ENGINE_WORKER_GROUP_H
#define SW_ENGINE_WORKER_GROUP_H

#include "engine/base/bits.h"
#include "engine/worker/worker.h"

struct sw_wrank {
	/* A rank, its member, its number among the member's local ranks. */
	uint16_t rank, member, local;
};

struct sw_wgroup {
	struct sw_wrank *ranks; /* in the order of their parts */
	uint32_t n;
	uint32_t crc;     /* CRC of the list */
	uint64_t members; /* members that have ranks of the group */
	uint32_t n_here;  /* local ranks of this worker, in ascending order: */
	uint16_t *here;
	uint64_t has_local[SW_LOCAL_WORDS]; /* the same, as a set */
	uint64_t *bits;                     /* the ranks, as a set */
	/* Places in the list, sorted by member; member m's begin at
	 * start[m]. */
	uint16_t *by_member;
	uint16_t start[SW_MAX_MEMBERS + 1];
};

/* sw_wgroup_check - are @ranks different ranks of the job, with one of this
 * worker among them? */
bool sw_wgroup_check(
	const struct sw_worker *w, const uint16_t *ranks, uint32_t n);

/* sw_wgroup_fill - fill @g from @ranks, which sw_wgroup_check has accepted;
 * copies them.  @g must be zeroed, except the number of ranks and the pointers
 * to its memory. */
void sw_wgroup_fill(
	const struct sw_worker *w, const uint16_t *ranks, struct sw_wgroup *g);

/* sw_wgroup_has_local - is local rank @local of this worker in the group? */
static inline bool sw_wgroup_has_local(
	const struct sw_wgroup *g, uint32_t local)
{
	return sw_bits_has(g->has_local, local);
}

/* sw_fault_received - finish a server's fault about @t.  A server names a
 * member by its first rank, which need not be in the group. */
void sw_fault_received(const struct sw_worker *w, const struct sw_wtensor *t,
	struct sw_fault *f);

/* sw_wgroup_find - return the place of @rank in the list; g->n if it is not
 * there. */
uint32_t sw_wgroup_find(const struct sw_wgroup *g, uint32_t rank);

/* --- the life that the streams of a group share --- */

/* sw_life_enter - put added stream @t into its group. Lane 0 takes the open
 * group of its name, or a new group; another lane takes lane 0's choice.
 * sw_life_retire - let no later stream enter the group of @t. */
void sw_life_enter(struct sw_worker *w, struct sw_wtensor *t);
void sw_life_retire(struct sw_worker *w, const struct sw_wtensor *t);

/* sw_life_identify - note the identifier of a tensor, or of a stream's group.
 * Returns false if the group has another identifier. */
bool sw_life_identify(
	struct sw_worker *w, const struct sw_wtensor *t, uint32_t id);

/* --- group_end.c: the end of a group --- */

/* sw_life_release - end the open collectives of a group that has ended, if its
 * end is settled here and, in lane 0, all other lanes have released it. */
void sw_life_release(struct sw_worker *w, const struct sw_wtensor *slot);

/* sw_dead_work - end collectives of the ended groups in w->dying, some in each
 * turn; returns the work done. */
uint32_t sw_dead_work(struct sw_worker *w);

/* sw_life_closed - note that all local ranks have closed the group whose life
 * lies in @slot, and tell the servers. */
void sw_life_closed(struct sw_worker *w, struct sw_wtensor *slot);

/* sw_stream_gone_work - free closed streams that all servers and lanes know to
 * be closed.  Looks at some in each turn; returns how many it freed. */
uint32_t sw_stream_gone_work(struct sw_worker *w);

#endif
