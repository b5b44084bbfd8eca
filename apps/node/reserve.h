/* reserve.h - an lcore's memory, which the control thread maps and unmaps.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Making gigabytes of pages present takes seconds, and unmapping them takes
 * tens of milliseconds; an lcore must do neither.  The lcore asks, and the
 * control thread works in slices.  It serves waiting owners round robin, so a
 * small request does not wait for a large one, and it handles signals and
 * requests between slices.  Small batches come at once, from a stock.
 *
 * An agent's lcores take no memory: there the control thread also asks.
 *
 * Memory that is put back may still be read by a frame that a port holds, so it
 * is unmapped only when every port has released it.
 */
#ifndef SW_APPS_NODE_RESERVE_H
#define SW_APPS_NODE_RESERVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/base/env.h"

enum {
	SW_RESERVE_SLICE = 4 << 20,   /* most bytes made in one call */
	SW_RESERVE_SMALL = 3 << 20,   /* largest batch from the stock */
	SW_RESERVE_STOCK = 4 << 20,   /* size of the stock */
	SW_RESERVE_UNMAP = 256 << 20, /* most bytes unmapped in one call */
};

struct sw_reserve_dead; /* header of a block that was put back, inside it */

/* A block of one owner. */
struct sw_reserve_block {
	_Atomic int state; /* enum of reserve.c: says who may use the rest */
	char *mem;
	uint64_t bytes; /* in all */
	uint64_t made;  /* present */
	uint64_t taken; /* by the lcore */
};

struct sw_reserve {
	/* Shared by both threads. */
	struct sw_reserve_block blocks[SW_MEM_OWNERS + 1]; /* last: the stock */
	_Atomic(struct sw_reserve_dead *) leaving; /* ports may refer to it */
	_Atomic(struct sw_reserve_dead *) to_unmap;
	/* lcore: */
	int node; /* NUMA node of the memory; set at the start */
	struct sw_reserve_block *from; /* source of the current batch */
	struct sw_reserve_dead *dead;
	/* control: */
	uint32_t turn; /* next block to work on */
	struct sw_reserve_dead *unmapping;
};

/* sw_reserve_open - fill the stock.  Control thread, before the lcore runs. All
 * fields of @r except node are zero.  Without memory the stock stays empty, and
 * the first batch fails. */
void sw_reserve_open(struct sw_reserve *r);

/* sw_reserve_env - let the engine with @env take its memory from @r.  @r
 * becomes the ctx of all functions of @env, so random() must not use its ctx.
 */
void sw_reserve_env(struct sw_reserve *r, struct sw_env *env);

/* As in struct sw_env.  Thread: the lcore. */
bool sw_reserve_ready(struct sw_reserve *r, uint32_t owner, uint64_t bytes);
void sw_reserve_drop(struct sw_reserve *r, uint32_t owner);

/* Return zeroed, page-aligned memory, or NULL.  Thread: the lcore. */
void *sw_reserve_get(struct sw_reserve *r, uint64_t bytes);

/* Put memory back.  Thread: the lcore. */
void sw_reserve_put(struct sw_reserve *r, void *mem, uint64_t bytes);

/* Pass on the memory that was put back, in every turn.  Thread: the lcore. */
void sw_reserve_turn(struct sw_reserve *r);

/* Return whether memory waits for its release by the ports; let it be unmapped
 * after all ports have released it.  Thread: the lcore that polls the ports. */
bool sw_reserve_is_leaving(const struct sw_reserve *r);
void sw_reserve_pass(struct sw_reserve *r);

/* Make one slice of requested memory present, and unmap one slice of released
 * memory.  Returns whether there was work, so there may be more.  Control
 * thread. */
bool sw_reserve_work(struct sw_reserve *r);

/* Unmap all memory, after the lcore was joined and the ports were closed. */
void sw_reserve_close(struct sw_reserve *r);

#endif
