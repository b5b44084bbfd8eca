/* arena.c - dense memory on huge pages, for the tables of simulated engines.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/sim/arena.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

enum {
	ALIGN = 64,
	BLOCK = 32 << 20,
	/* A larger table is mapped by itself: most of it may stay unused. */
	TABLE_MOST = 4 << 20,
	/* Huge pages also hold what tables leave unused.  Beyond the first GiB
	 * the simulator saves memory. */
	HUGE_BLOCKS = (1 << 30) / BLOCK,
};

/* The header of a block, or of a hole. */
struct sw_sim_block {
	struct sw_sim_block *next;
	uint64_t bytes;
};

static void *map(uint64_t bytes)
{
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return mem == MAP_FAILED ? NULL : mem;
}

static bool add_block(struct sw_sim_arena *a)
{
	struct sw_sim_block *b = map(BLOCK);

	if (!b)
		return false;
	if (a->n_blocks++ < HUGE_BLOCKS)
		(void)!madvise(b, BLOCK, MADV_HUGEPAGE);
	b->next = a->blocks;
	a->blocks = b;
	a->n_used = ALIGN;
	return true;
}

/* Take a hole of exactly @bytes, which a closed engine has left. */
static void *take_hole(struct sw_sim_arena *a, uint64_t bytes)
{
	struct sw_sim_block **at = &a->holes, *hole;

	while (*at && (*at)->bytes != bytes)
		at = &(*at)->next;
	hole = *at;
	if (!hole)
		return NULL;
	*at = hole->next;
	return memset(hole, 0, bytes);
}

static uint64_t round_up(uint64_t bytes)
{
	return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

void *sw_sim_arena_take(struct sw_sim_arena *a, uint64_t bytes)
{
	void *mem;

	if (bytes > TABLE_MOST)
		return map(bytes);
	bytes = round_up(bytes);
	mem = take_hole(a, bytes);
	if (mem)
		return mem;
	if ((!a->blocks || a->n_used + bytes > BLOCK) && !add_block(a))
		return NULL;
	mem = (uint8_t *)a->blocks + a->n_used;
	a->n_used += bytes;
	return mem;
}

void sw_sim_arena_put(struct sw_sim_arena *a, void *mem, uint64_t bytes)
{
	struct sw_sim_block *hole = mem;

	if (bytes > TABLE_MOST && mem) {
		munmap(mem, bytes);
	} else if (bytes && mem) {
		*hole = (struct sw_sim_block){a->holes, round_up(bytes)};
		a->holes = hole;
	}
}

void sw_sim_arena_close(struct sw_sim_arena *a)
{
	while (a->blocks) {
		struct sw_sim_block *next = a->blocks->next;

		munmap(a->blocks, BLOCK);
		a->blocks = next;
	}
	*a = (struct sw_sim_arena){0};
}
