/* proc_groups.h - the groups opened by tests of collectives.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef SW_TEST_PROC_PROC_GROUPS_H
#define SW_TEST_PROC_PROC_GROUPS_H

#include <stdint.h>

enum { RANKS = 64, GROUPS = 4 };

struct group {
	struct sw_group *g;
	uint32_t ranks[RANKS], n;
	uint32_t me; /* this rank's place; RANKS: not a member */
};

static inline void add_rank(struct group *g, uint32_t rank, uint32_t own)
{
	if (rank == own)
		g->me = g->n;
	g->ranks[g->n++] = rank;
}

/* List the groups: all ranks; all except the last, reversed; with four or more,
 * every other rank; and the first two, which may share an agent. Return the
 * number of groups. */
static inline uint32_t list_groups(
	struct group groups[GROUPS], uint32_t own, uint32_t size)
{
	for (uint32_t i = 0; i < GROUPS; i++)
		groups[i].me = RANKS;
	for (uint32_t r = 0; r < size; r++) {
		add_rank(&groups[0], r, own);
		if (r + 1 < size)
			add_rank(&groups[1], size - 2 - r, own);
		if (r % 2)
			add_rank(&groups[2], r, own);
		if (r < 2)
			add_rank(&groups[3], r, own);
	}
	return size < 3 ? 1 : size < 4 ? 2 : GROUPS;
}

#endif
