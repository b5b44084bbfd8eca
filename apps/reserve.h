/* reserve.h - the server's memory, made and unmade beside the polling lcore.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * To make gigabytes of pages present takes seconds, to unmap them tens of
 * milliseconds; the lcore must do neither.  It asks, the control thread works.
 *
 * Memory that is put back may still be read by a frame that a port holds, so it
 * is unmapped only when every port has let go.
 */
#ifndef SW_RESERVE_H
#define SW_RESERVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct sw_reserve_dead; /* a block that was put back; lies in the block */

struct sw_reserve {
	/* What the two threads hand to each other. */
	_Atomic int state;                         /* enum of reserve.c */
	_Atomic(struct sw_reserve_dead *) leaving; /* ports may refer to it */
	_Atomic(struct sw_reserve_dead *) to_unmap;
	uint64_t wanted_bytes;
	/* lcore: */
	int node;   /* that the memory is to come from; set at the start */
	char *next; /* of the block that was made */
	uint64_t left_bytes;
	bool is_taken; /* a batch has had its part of it */
	struct sw_reserve_dead *dead;
};

/* lcore: is there memory for @bytes?  False: it is being made, ask again. */
bool sw_reserve_ready(struct sw_reserve *r, uint64_t bytes);

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

/* control: make and unmap what was asked for. */
void sw_reserve_work(struct sw_reserve *r);

/* After the lcore was joined and the ports were closed: unmap the rest. */
void sw_reserve_close(struct sw_reserve *r);

#endif
