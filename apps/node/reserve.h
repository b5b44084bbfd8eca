/* reserve.h - an lcore's memory, made and unmade by the control thread.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * To make gigabytes of pages present takes seconds, to unmap them tens of
 * milliseconds; the lcore must do neither.  It asks, the control thread works,
 * in slices, which it takes in turn among the owners that wait: nobody waits
 * for a larger one to be done, and between two slices the control thread serves
 * signals and answers.  Small batches are served at once, from a stock.
 *
 * An agent's lcores take no memory: there the control thread asks, too.
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
	SW_RESERVE_SLICE = 4 << 20, /* made in one call, at most */
	SW_RESERVE_SMALL = 3 << 20, /* largest request served from the stock */
	SW_RESERVE_STOCK = 4 << 20, /* size of the stock */
	SW_RESERVE_UNMAP = 256 << 20, /* unmapped in one call, at most */
};

struct sw_reserve_dead; /* a released block; its record lies in the block */

/* A block of one owner. */
struct sw_reserve_block {
	_Atomic int state; /* enum of reserve.c: who may use the rest */
	char *mem;
	uint64_t bytes; /* size */
	uint64_t made;  /* present */
	uint64_t taken; /* by the lcore */
};

struct sw_reserve {
	/* Exchanged between the two threads. */
	struct sw_reserve_block blocks[SW_MEM_OWNERS + 1]; /* last: the stock */
	/* May still be used by ports. */
	_Atomic(struct sw_reserve_dead *) leaving;
	_Atomic(struct sw_reserve_dead *) to_unmap;
	/* lcore: */
	int node; /* node of the memory; set at the start */
	struct sw_reserve_block *from; /* source of the current batch */
	struct sw_reserve_dead *dead;
	/* control: */
	uint32_t turn; /* next block to work on */
	struct sw_reserve_dead *unmapping;
};

/* sw_reserve_open - fill the stock. Control thread, before the lcore runs; @r
 * is zeros except the node. Without memory the stock stays empty, and the first
 * batch fails. */
void sw_reserve_open(struct sw_reserve *r);

/* sw_reserve_env - let the lcore's engine allocate from @r, which becomes the
 * ctx of all functions: random() must not use it. */
void sw_reserve_env(struct sw_reserve *r, struct sw_env *env);

/* lcore: as in struct sw_env. */
bool sw_reserve_ready(struct sw_reserve *r, uint32_t owner, uint64_t bytes);
void sw_reserve_drop(struct sw_reserve *r, uint32_t owner);

/* lcore: allocate zeroed, page-aligned memory; NULL: there is none. */
void *sw_reserve_get(struct sw_reserve *r, uint64_t bytes);

/* lcore: release memory. */
void sw_reserve_put(struct sw_reserve *r, void *mem, uint64_t bytes);

/* lcore, every turn: hand released memory on. */
void sw_reserve_turn(struct sw_reserve *r);

/* The lcore that polls the ports: return whether released memory waits; note
 * that no port uses it. */
bool sw_reserve_is_leaving(const struct sw_reserve *r);
void sw_reserve_pass(struct sw_reserve *r);

/* control: make one slice of the requested memory, unmap one of the released
 * memory. Returns whether more may be left to do. */
bool sw_reserve_work(struct sw_reserve *r);

/* After the lcore was joined and the ports were closed: unmap the rest. */
void sw_reserve_close(struct sw_reserve *r);

#endif
