/* order.h - the numbers by which tensors go, lowest first.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Numbers below @size are places by (priority, index).  Twice as many follow
 * that are given by readiness: a tensor that becomes ready goes behind all that
 * are.  When half of these have been given, those in use close ranks, some with
 * each that is given.
 *
 * Who keeps the tensors has sets of numbers.  Of those that a new tensor moves
 * only the members of sets are touched, and the table of numbers, not tensors.
 *
 * Thread: the lcore of the tensors.
 */
#ifndef SW_ENGINE_SCHED_ORDER_H
#define SW_ENGINE_SCHED_ORDER_H

#include "engine/base/bitmap.h"

struct sw_orders {
	uint32_t *by_order; /* tensor of each number, SW_ORDERS_EACH * size */
	uint32_t *priority; /* of each tensor, size; */
	uint32_t *number;   /* by which it goes: of those in a set up to date */
	uint32_t size, n, n_numbered;
	uint32_t next; /* by readiness */
	/* Ranks are closed as far as @from, which is below next, and the
	 * numbers from @to to there are free.  Both size: not at all. */
	uint32_t from, to;
};

/* For each tensor: numbers; words of @mem below. */
enum { SW_ORDERS_EACH = 3, SW_ORDERS_WORDS = SW_ORDERS_EACH + 2 };

/* sw_orders_open - of up to @size tensors; there is none yet.
 * @mem  SW_ORDERS_WORDS * @size, borrowed; zeros */
void sw_orders_open(struct sw_orders *o, uint32_t size, uint32_t *mem);

/* sw_orders_at - the tensor that goes by @number. */
static inline uint32_t sw_orders_at(const struct sw_orders *o, uint32_t number)
{
	return o->by_order[number];
}

/* sw_orders_number - of tensor @index, if a set has it.  sw_orders_update - of
 * any tensor: after a batch all are numbered first. */
static inline uint32_t sw_orders_number(
	const struct sw_orders *o, uint32_t index)
{
	return o->number[index];
}

void sw_orders_renumber(struct sw_orders *o);

static inline uint32_t sw_orders_update(struct sw_orders *o, uint32_t index)
{
	if (__builtin_expect(o->n_numbered != o->n, 0))
		sw_orders_renumber(o);
	return o->number[index];
}

/* sw_orders_admit - tensor @index is new, and goes by priority.  Returns its
 * number: those from there on move up, in each set by sw_orders_shift. */
uint32_t sw_orders_admit(
	struct sw_orders *o, uint32_t index, uint32_t priority);

/* sw_orders_shift - after sw_orders_admit returned @at: members of @set from
 * there on, of those by priority, move up by one. */
void sw_orders_shift(struct sw_orders *o, struct sw_bitmap *set, uint32_t at);

/* sw_orders_remove - tensor @index, which is in no set, goes: those by priority
 * from the number that is returned on move down, in each set by
 * sw_orders_shift_down. */
uint32_t sw_orders_remove(struct sw_orders *o, uint32_t index);
void sw_orders_shift_down(
	struct sw_orders *o, struct sw_bitmap *set, uint32_t at);

/* sw_orders_take - tensor @index, which is in no set, goes by priority, or by
 * the next number by readiness: then @move says of others whether they, who go
 * by @from, are in use; if so they are moved in all sets. */
typedef bool (*sw_orders_move_fn)(
	void *ctx, uint32_t index, uint32_t from, uint32_t to);
void sw_orders_change(struct sw_orders *o, uint32_t index, bool by_priority,
	sw_orders_move_fn move, void *ctx);
static inline void sw_orders_take(struct sw_orders *o, uint32_t index,
	bool by_priority, sw_orders_move_fn move, void *ctx)
{
	if (!by_priority || o->number[index] >= o->size)
		sw_orders_change(o, index, by_priority, move, ctx);
}

#endif
