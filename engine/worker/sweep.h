/* sweep.h - work on many tensors, a bounded part of it in each turn.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_WORKER_SWEEP_H
#define SW_ENGINE_WORKER_SWEEP_H

#include "engine/worker/wtensor.h"

/* sw_keys_some - return how many tensors may get their keys in one turn.  The
 * work grows with the links, since each tensor has a part at each link. */
static inline uint32_t sw_keys_some(const struct sw_worker *w)
{
	return 1 + 256 / w->n_links;
}

/* sw_wtensor_set_open - note whether something of the tensor is open. */
static inline void sw_wtensor_set_open(struct sw_wtensor *t, bool is_open)
{
	t->is_open = is_open;
	if (is_open)
		sw_bitmap_add(&t->worker->open, t->index);
	else
		sw_bitmap_remove(&t->worker->open, t->index);
}

/* sw_sweep - call @one for the tensors in @set, lowest index first, up to a
 * turn's share of work.  Returns the work of all calls.  @one returns its own,
 * and removes the tensor from the set when nothing is left. */
enum { SW_SWEEP_BURST = 64 };
static inline uint32_t sw_sweep(struct sw_worker *w,
	const struct sw_bitmap *set,
	uint32_t (*one)(struct sw_worker *w, struct sw_wtensor *t))
{
	uint32_t n = 0, i;

	while (n < SW_SWEEP_BURST &&
		(i = sw_bitmap_first(set)) != SW_BITMAP_NONE)
		n += one(w, &w->tensors[i]);
	return n;
}

#endif
