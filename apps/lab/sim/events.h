/* events.h - what happens next: a heap by time, then by order of entry.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_LAB_SIM_EVENTS_H
#define SW_APPS_LAB_SIM_EVENTS_H

#include <stdint.h>
#include <stdlib.h>

enum sw_sim_kind {
	SW_SIM_ARRIVE, /* the first frame of a link reaches its end */
	SW_SIM_DEPART, /* a frame leaves a shared buffer */
	SW_SIM_STRAY,  /* a reordered frame reaches the end of its link */
	SW_SIM_WAKE,   /* a node takes a turn */
	SW_SIM_TIMER,
};

enum { SW_SIM_INDEX_BITS = 20 };

struct sw_sim_event {
	uint64_t at_ns;
	/* 40 bits of entry order, 4 of kind, 20 of index: equal times go in the
	 * order of entry on every machine. */
	uint64_t tag;
};

struct sw_sim_events {
	struct sw_sim_event *heap;
	uint32_t n, size;
	uint64_t n_entered;
};

static inline enum sw_sim_kind sw_sim_kind_of(const struct sw_sim_event *e)
{
	return (enum sw_sim_kind)(e->tag >> SW_SIM_INDEX_BITS & 15);
}

static inline uint32_t sw_sim_index_of(const struct sw_sim_event *e)
{
	return (uint32_t)e->tag & ((1u << SW_SIM_INDEX_BITS) - 1);
}

static inline int sw_sim_is_earlier(
	const struct sw_sim_event *a, const struct sw_sim_event *b)
{
	return a->at_ns < b->at_ns || (a->at_ns == b->at_ns && a->tag < b->tag);
}

/* sw_sim_put - enter an event.  Exits the process when memory is short, as all
 * of the simulation does: nothing can be saved then. */
static inline void sw_sim_put(struct sw_sim_events *q, uint64_t at_ns,
	enum sw_sim_kind kind, uint32_t index)
{
	struct sw_sim_event e = {.at_ns = at_ns,
		.tag = q->n_entered++ << (SW_SIM_INDEX_BITS + 4) |
		       (uint64_t)kind << SW_SIM_INDEX_BITS | index};
	uint32_t i = q->n++;

	if (q->n > q->size) {
		q->size = 2 * q->size + 64;
		q->heap = realloc(q->heap, q->size * sizeof(*q->heap));
		if (!q->heap)
			abort();
	}
	for (; i && sw_sim_is_earlier(&e, &q->heap[(i - 1) / 4]);
		i = (i - 1) / 4)
		q->heap[i] = q->heap[(i - 1) / 4];
	q->heap[i] = e;
}

/* sw_sim_take - remove and return the first event; there must be one. */
static inline struct sw_sim_event sw_sim_take(struct sw_sim_events *q)
{
	struct sw_sim_event first = q->heap[0], last = q->heap[--q->n];
	uint32_t i = 0;

	for (;;) {
		uint32_t c = 4 * i + 1, best = c;

		if (c >= q->n)
			break;
		for (uint32_t k = c + 1; k < c + 4 && k < q->n; k++)
			if (sw_sim_is_earlier(&q->heap[k], &q->heap[best]))
				best = k;
		if (!sw_sim_is_earlier(&q->heap[best], &last))
			break;
		q->heap[i] = q->heap[best];
		i = best;
	}
	q->heap[i] = last;
	return first;
}

#endif
