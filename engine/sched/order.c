/* order.c - the numbers by which tensors go, lowest first.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/sched/order.h"

#include <string.h>

#include "engine/base/bytes.h"

void sw_orders_open(struct sw_orders *o, uint32_t size, uint32_t *mem)
{
	*o = (struct sw_orders){.by_order = mem,
		.priority = mem + SW_ORDERS_EACH * (size_t)size,
		.number = mem + (SW_ORDERS_EACH + 1) * (size_t)size,
		.size = size,
		.next = size,
		.from = size,
		.to = size};
}

/* How many go before @index by priority. */
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
	for (; o->n_numbered < o->n; o->n_numbered++) {
		uint32_t *number = &o->number[o->by_order[o->n_numbered]];

		if (*number < o->size)
			*number = o->n_numbered;
	}
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
	o->number[index] = 0; /* it has no number by readiness */
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

/* Compact the numbers by readiness: look at four for each one given. A tensor
 * that leaves its number behind @from leaves a gap. So with @size in use, size
 * / 2 more have a number afterwards; compaction of these 3/2 size ends before 2
 * size are given. */
static void close_ranks(struct sw_orders *o, sw_orders_move_fn move, void *ctx)
{
	for (uint32_t i = 0; i < 4 && o->from < o->next; i++, o->from++) {
		uint32_t index = o->by_order[o->from];

		if (o->number[index] != o->from ||
			!move(ctx, index, o->from, o->to))
			continue;
		o->number[index] = o->to;
		o->by_order[o->to++] = index;
	}
	if (o->from < o->next)
		return;
	o->next = o->to;
	o->from = o->to = o->size;
}

void sw_orders_change(struct sw_orders *o, uint32_t index, bool by_priority,
	sw_orders_move_fn move, void *ctx)
{
	o->number[index] = by_priority ? find(o, index) : 0;
	if (by_priority)
		return;
	if (o->from > o->size || o->next >= 2 * o->size)
		close_ranks(o, move, ctx);
	o->by_order[o->next] = index;
	o->number[index] = o->next++;
}
