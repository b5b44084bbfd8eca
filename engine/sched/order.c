/* order.c - the order numbers of tensors; the lowest goes first.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/sched/order.h"

#include <string.h>

#include "engine/base/bytes.h"

void sw_orders_open(struct sw_orders *o, uint32_t size, uint32_t *mem)
{
	*o = (struct sw_orders){.by_order = mem,
		.priority = mem + (size_t)size,
		.number = mem + 2 * (size_t)size};
}

/* Return how many tensors go before @index by priority. */
static uint32_t find(const struct sw_orders *o, uint32_t index)
{
	uint32_t low = 0, high = o->n, priority = o->priority[index];

	while (low < high) {
		uint32_t mid = (low + high) / 2, other = o->by_order[mid];

		if (o->priority[other] < priority ||
			(o->priority[other] == priority && other < index))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

uint32_t sw_orders_admit(struct sw_orders *o, uint32_t index, uint32_t priority)
{
	uint32_t at;

	o->priority[index] = priority;
	at = find(o, index);
	memmove(&o->by_order[at + 1], &o->by_order[at],
		(o->n++ - at) * sizeof(*o->by_order));
	o->by_order[at] = index;
	o->n_numbered = (uint32_t)sw_min64(o->n_numbered, at);
	return at;
}

void sw_orders_renumber(struct sw_orders *o)
{
	for (; o->n_numbered < o->n; o->n_numbered++)
		o->number[o->by_order[o->n_numbered]] = o->n_numbered;
}

/* Shift each run of neighbours by changing only its ends in the set. */
void sw_orders_shift(struct sw_orders *o, struct sw_bitmap *set, uint32_t at)
{
	uint32_t n = o->n - 1, from = sw_bitmap_next(set, at), end;

	for (; from < n; from = sw_bitmap_next(set, end + 1)) {
		for (end = from; end < n && sw_bitmap_has(set, end);) {
			end++;
			o->number[o->by_order[end]] = end;
		}
		sw_bitmap_remove(set, from);
		sw_bitmap_add(set, end);
	}
}

uint32_t sw_orders_remove(struct sw_orders *o, uint32_t index)
{
	uint32_t at = find(o, index);

	memmove(&o->by_order[at], &o->by_order[at + 1],
		(--o->n - at) * sizeof(*o->by_order));
	o->n_numbered = (uint32_t)sw_min64(o->n_numbered, at);
	return at;
}

void sw_orders_shift_down(
	struct sw_orders *o, struct sw_bitmap *set, uint32_t at)
{
	uint32_t from = sw_bitmap_next(set, at + 1), end;

	for (; from <= o->n; from = sw_bitmap_next(set, end)) {
		for (end = from; end <= o->n && sw_bitmap_has(set, end); end++)
			o->number[o->by_order[end - 1]] = end - 1;
		sw_bitmap_add(set, from - 1);
		sw_bitmap_remove(set, end - 1);
	}
}
