/* order.h - order numbers of tensors; the lowest goes first.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A tensor's number is its position by (priority, index).  The owner of the
 * tensors keeps sets of numbers.  When a new tensor shifts numbers, only the
 * sets and the table of numbers change; the tensors do not.
 *
 * Thread: the lcore that owns the tensors. */
#ifndef SW_ENGINE_SCHED_ORDER_H
#define SW_ENGINE_SCHED_ORDER_H

#include "engine/base/bitmap.h"

struct sw_orders {
	uint32_t *by_order; /* tensor of each number; size entries */
	uint32_t *priority; /* priority of each tensor; size entries */
	uint32_t *number; /* number of each tensor; valid for members of sets */
	uint32_t n, n_numbered;
};

/* Words of @mem for each tensor. */
enum { SW_ORDERS_WORDS = 3 };

/* sw_orders_open - open an empty order for at most @size tensors.
 * @mem  SW_ORDERS_WORDS * @size zeroed words, borrowed */
void sw_orders_open(struct sw_orders *o, uint32_t size, uint32_t *mem);

/* sw_orders_at - return the tensor with @number. */
static inline uint32_t sw_orders_at(const struct sw_orders *o, uint32_t number)
{
	return o->by_order[number];
}

/* sw_orders_number - return the number of tensor @index, which a set must
 * contain.
 * sw_orders_update - return the number of any tensor; after a batch of new
 * tensors, first renumber all. */
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

/* sw_orders_admit - add tensor @index by priority and return its number.  The
 * numbers from the returned one on move up; call sw_orders_shift for each set.
 */
uint32_t sw_orders_admit(
	struct sw_orders *o, uint32_t index, uint32_t priority);

/* sw_orders_shift - increment the members of @set from @at on.  Call after
 * sw_orders_admit has returned @at. */
void sw_orders_shift(struct sw_orders *o, struct sw_bitmap *set, uint32_t at);

/* sw_orders_remove - remove tensor @index, which no set may contain.  The
 * numbers from the returned one on move down; call sw_orders_shift_down for
 * each set. */
uint32_t sw_orders_remove(struct sw_orders *o, uint32_t index);
void sw_orders_shift_down(
	struct sw_orders *o, struct sw_bitmap *set, uint32_t at);

#endif
