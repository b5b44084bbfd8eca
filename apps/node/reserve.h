/* reserve.h - an lcore's memory, which the control thread maps and unmaps.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Making gigabytes of pages present takes seconds, and unmapping them takes
 * tens of milliseconds; an lcore must do neither.  The lcore asks, and the
 * control thread works in slices.  It serves waiting owners round robin, so a
 * small request does not wait for a large one, and it handles signals and
 * requests between slices.  Small batches get memory at once, from a stock.
 *
 * An agent's lcores never ask: the control thread asks for them.
 *
 * A port may still hold frames that refer to released memory, so the memory is
 * unmapped only after every port has released it.
 */
#ifndef SW_APPS_NODE_RESERVE_H
#define SW_APPS_NODE_RESERVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/base/env.h"

enum {
	SW_RESERVE_SLICE = 4 << 20,   /* most bytes made present in one call */
	SW_RESERVE_SMALL = 3 << 20,   /* largest batch from the stock */
	SW_RESERVE_STOCK = 4 << 20,   /* size of the stock */
	SW_RESERVE_UNMAP = 256 << 20, /* most bytes unmapped in one call */
};

struct sw_reserve_dead; /* header of a released block, inside it */

/* A block of one owner. */
struct sw_reserve_block {
	/* enum of reserve.c: names the owner of the other fields */
	_Atomic int state;
	char *mem;
	uint64_t bytes; /* total size */
	uint64_t made;  /* bytes present */
	uint64_t taken; /* bytes that the lcore took */
};

struct sw_reserve {
	/* Shared by both threads. */
	struct sw_reserve_block blocks[SW_MEM_OWNERS + 1]; /* last: the stock */
	_Atomic(struct sw_reserve_dead *) leaving; /* ports may refer to it */
	_Atomic(struct sw_reserve_dead *) to_unmap;
	/* Used by the lcore: */
	int node; /* NUMA node of the memory; set at the start */
	struct sw_reserve_block *from; /* source of the current batch */
	struct sw_reserve_dead *dead;
	/* Used by the control thread: */
	uint32_t turn; /* next block to work on */
	struct sw_reserve_dead *unmapping;
};

/* sw_reserve_open - fill the stock.  Called on the control thread before the
 * lcore runs.  All fields of @r except node must be zero.  Without memory the
 * stock stays empty, and the first batch fails. */
void sw_reserve_open(struct sw_reserve *r);

/* sw_reserve_env - let the engine with @env take its memory from @r.  @r
 * becomes the ctx of all functions of @env, so random() must not use its ctx.
 */
void sw_reserve_env(struct sw_reserve *r, struct sw_env *env);

/* Implement the functions of struct sw_env.  Thread: the lcore. */
bool sw_reserve_ready(struct sw_reserve *r, uint32_t owner, uint64_t bytes);
void sw_reserve_drop(struct sw_reserve *r, uint32_t owner);

/* Return zeroed, page-aligned memory, or NULL.  Thread: the lcore. */
void *sw_reserve_get(struct sw_reserve *r, uint64_t bytes);

/* Release memory.  Thread: the lcore. */
void sw_reserve_put(struct sw_reserve *r, void *mem, uint64_t bytes);

/* Pass released memory on for unmapping.  Called in every turn.  Thread: the
 * lcore. */
void sw_reserve_turn(struct sw_reserve *r);

/* sw_reserve_is_leaving - return whether released memory waits for the ports.
 * sw_reserve_pass - let it be unmapped, after all ports have released it.
 * Thread: the lcore that polls the ports. */
bool sw_reserve_is_leaving(const struct sw_reserve *r);
void sw_reserve_pass(struct sw_reserve *r);

/* Make one slice of requested memory present, and unmap one slice of released
 * memory.  Returns whether there was work: there may be more.  Thread:
 * control. */
bool sw_reserve_work(struct sw_reserve *r);

/* Unmap all memory, after the lcore has been joined and the ports are
 * closed. */
void sw_reserve_close(struct sw_reserve *r);

#endif
