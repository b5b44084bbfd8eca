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
	SW_RESERVE_SLICE = 4 << 20,   /* made in one call, at most */
	SW_RESERVE_SMALL = 3 << 20,   /* what is taken from the stock */
	SW_RESERVE_STOCK = 4 << 20,   /* there is so much of it, at most */
	SW_RESERVE_UNMAP = 256 << 20, /* unmapped in one call, at most */
};

struct sw_reserve_dead; /* a block that was put back; lies in the block */

/* A block of one owner. */
struct sw_reserve_block {
	_Atomic int state; /* enum of reserve.c: says who may use the rest */
	char *mem;
	uint64_t bytes; /* in all */
	uint64_t made;  /* present */
	uint64_t taken; /* by the lcore */
};

struct sw_reserve {
	/* What the two threads hand to each other. */
	struct sw_reserve_block blocks[SW_MEM_OWNERS + 1]; /* last: the stock */
	_Atomic(struct sw_reserve_dead *) leaving; /* ports may refer to it */
	_Atomic(struct sw_reserve_dead *) to_unmap;
	/* lcore: */
	int node; /* that the memory is to come from; set at the start */
	struct sw_reserve_block *from; /* the batch at hand is taken from it */
	struct sw_reserve_dead *dead;
	/* control: */
	uint32_t turn; /* block that is looked at next */
	struct sw_reserve_dead *unmapping;
};

/* sw_reserve_open - fill the stock.  Control, before the lcore runs; @r is
 * zeros but for the node.  Where there is no memory the stock stays empty, and
 * the first batch is told. */
void sw_reserve_open(struct sw_reserve *r);

/* sw_reserve_env - the engine of that lcore has its memory from @r.  That is
 * the ctx of all functions then: random() must not look at it. */
void sw_reserve_env(struct sw_reserve *r, struct sw_env *env);

/* lcore, as of struct sw_env. */
bool sw_reserve_ready(struct sw_reserve *r, uint32_t owner, uint64_t bytes);
void sw_reserve_drop(struct sw_reserve *r, uint32_t owner);

/* lcore: zeroed, page-aligned memory; NULL: there is none. */
void *sw_reserve_get(struct sw_reserve *r, uint64_t bytes);

/* lcore: put it back. */
void sw_reserve_put(struct sw_reserve *r, void *mem, uint64_t bytes);

/* lcore, every turn: what was put back may go. */
void sw_reserve_turn(struct sw_reserve *r);

/* The lcore that polls the ports: is there something that may go; and no port
 * refers to it any more. */
bool sw_reserve_is_leaving(const struct sw_reserve *r);
void sw_reserve_pass(struct sw_reserve *r);

/* control: make one slice of what was asked for, unmap one of what went.
 * Returns whether there was something to do, and there may be more. */
bool sw_reserve_work(struct sw_reserve *r);

/* After the lcore was joined and the ports were closed: unmap the rest. */
void sw_reserve_close(struct sw_reserve *r);

#endif
