/* order.h - the numbers by which tensors go, lowest first.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Numbers below n_ranks are places by priority; those who keep the tensors give
 * them.  As many follow that are given by readiness: a tensor that becomes
 * ready goes behind all that are.  When all have been given, those in use close
 * ranks.
 *
 * Thread: the lcore of the tensors.
 */
#ifndef SW_ORDER_H
#define SW_ORDER_H

#include <stdbool.h>
#include <stdint.h>

/* Tensor @index goes by number @to instead of @from.  False: it does not go by
 * @from any more. */
typedef bool (*sw_order_move_fn)(
	void *ctx, uint32_t index, uint32_t from, uint32_t to);

/* sw_order_take - the next number by readiness, for tensor @index, which has
 * none.
 * @by_order  tensor of each number, 2 * n_ranks of them
 * @next      the next that is free; n_ranks at first */
static inline uint32_t sw_order_take(uint32_t *by_order, uint32_t *next,
	uint32_t n_ranks, uint32_t index, sw_order_move_fn move, void *ctx)
{
	uint32_t to = n_ranks;

	if (*next == 2 * n_ranks) {
		for (uint32_t from = to; from < *next; from++)
			if (move(ctx, by_order[from], from, to))
				by_order[to++] = by_order[from];
		*next = to;
	}
	by_order[*next] = index;
	return (*next)++;
}

#endif
