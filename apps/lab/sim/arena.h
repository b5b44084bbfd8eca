/* arena.h - dense memory on huge pages, for the tables of simulated engines.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Each turn visits another node, so tables of many nodes on small pages miss
 * the TLB several times a frame.
 */
#ifndef SW_APPS_LAB_SIM_ARENA_H
#define SW_APPS_LAB_SIM_ARENA_H

#include <stdint.h>

/* All zeros: empty. */
struct sw_sim_arena {
	struct sw_sim_block *blocks, *holes;
	uint64_t n_used; /* bytes used of the first block */
	uint32_t n_blocks;
};

/* sw_sim_arena_take - return @bytes of zeros, 64-byte aligned; NULL: no memory.
 * sw_sim_arena_put - return memory; @bytes as it was taken.
 * sw_sim_arena_close - free what small tables used; others must be put. */
void *sw_sim_arena_take(struct sw_sim_arena *a, uint64_t bytes);
void sw_sim_arena_put(struct sw_sim_arena *a, void *mem, uint64_t bytes);
void sw_sim_arena_close(struct sw_sim_arena *a);

#endif
