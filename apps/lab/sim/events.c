/* events.c - what happens next: a queue by time, then by order of entry.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/sim/events.h"

#include <stdlib.h>
#include <string.h>

static bool is_earlier(
	const struct sw_sim_event *a, const struct sw_sim_event *b)
{
	return ((unsigned __int128)a->at_ns << 64 | a->tag) <
	       ((unsigned __int128)b->at_ns << 64 | b->tag);
}

static void *grow(void *mem, uint32_t *size, size_t bytes)
{
	*size = 2 * *size + 64;
	mem = realloc(mem, *size * bytes);
	if (!mem)
		abort();
	return mem;
}

/* --- a heap --- */

static void push(struct sw_sim_heap *h, const struct sw_sim_event *e)
{
	uint32_t i = h->n++;

	if (h->n > h->size)
		h->all = grow(h->all, &h->size, sizeof(*h->all));
	for (; i && is_earlier(e, &h->all[(i - 1) / 4]); i = (i - 1) / 4)
		h->all[i] = h->all[(i - 1) / 4];
	h->all[i] = *e;
}

static struct sw_sim_event pop(struct sw_sim_heap *h)
{
	struct sw_sim_event first = h->all[0], last = h->all[--h->n];
	uint32_t i = 0;

	for (;;) {
		uint32_t c = 4 * i + 1, best = c;

		if (c >= h->n)
			break;
		for (uint32_t k = c + 1; k < c + 4 && k < h->n; k++)
			best = is_earlier(&h->all[k], &h->all[best]) ? k : best;
		if (!is_earlier(&h->all[best], &last))
			break;
		h->all[i] = h->all[best];
		i = best;
	}
	h->all[i] = last;
	return first;
}

/* --- the wheel --- */

void sw_sim_events_init(struct sw_sim_events *q, uint32_t shift)
{
	memset(q, 0, sizeof(*q));
	q->shift = shift;
}

void sw_sim_events_close(struct sw_sim_events *q)
{
	free(q->now.all);
	free(q->far.all);
	free(q->waiting);
}

/* Return a free place, as next is counted. */
static uint32_t place(struct sw_sim_events *q)
{
	uint32_t i = q->free;

	if (i) {
		q->free = q->waiting[i - 1].next;
		return i;
	}
	if (q->n_waiting == q->size)
		q->waiting = grow(q->waiting, &q->size, sizeof(*q->waiting));
	return ++q->n_waiting;
}

void sw_sim_put(struct sw_sim_events *q, uint64_t at_ns, enum sw_sim_kind kind,
	uint32_t index)
{
	struct sw_sim_event e = {.at_ns = at_ns,
		.tag = q->n_entered++ << (SW_SIM_INDEX_BITS + 4) |
		       (uint64_t)kind << SW_SIM_INDEX_BITS | index};
	uint64_t slot = at_ns >> q->shift;
	uint32_t at = slot % SW_SIM_WHEEL, i;

	if (slot <= q->slot) {
		push(&q->now, &e);
		return;
	}
	if (slot - q->slot >= SW_SIM_WHEEL) {
		push(&q->far, &e);
		return;
	}
	i = place(q);
	q->waiting[i - 1] =
		(struct sw_sim_waiting){.event = e, .next = q->lists[at]};
	q->lists[at] = i;
	q->used[at / 64] |= 1ULL << at % 64;
}

/* The first slot with a list behind the current one; UINT64_MAX: none has. */
static uint64_t next_used(const struct sw_sim_events *q)
{
	uint32_t from = (q->slot + 1) % SW_SIM_WHEEL, w = from / 64;
	uint64_t word = q->used[w] & ~0ULL << from % 64;

	for (uint32_t i = 0; i <= SW_SIM_WHEEL / 64; i++) {
		if (word) {
			uint32_t at = w * 64 + (uint32_t)__builtin_ctzll(word);

			return q->slot + 1 + (at - from) % SW_SIM_WHEEL;
		}
		w = (w + 1) % (SW_SIM_WHEEL / 64);
		word = q->used[w];
	}
	return UINT64_MAX;
}

bool sw_sim_turn_wheel(struct sw_sim_events *q)
{
	uint64_t slot = next_used(q);
	uint64_t far = q->far.n ? q->far.all[0].at_ns >> q->shift : UINT64_MAX;
	uint32_t at;

	if (slot == UINT64_MAX && far == UINT64_MAX)
		return false;
	q->slot = slot < far ? slot : far;
	at = q->slot % SW_SIM_WHEEL;
	if (slot == q->slot) {
		for (uint32_t i = q->lists[at], next; i; i = next) {
			struct sw_sim_waiting *w = &q->waiting[i - 1];

			push(&q->now, &w->event);
			next = w->next;
			w->next = q->free;
			q->free = i;
		}
		q->lists[at] = 0;
		q->used[at / 64] &= ~(1ULL << at % 64);
	}
	while (q->far.n && q->far.all[0].at_ns >> q->shift == q->slot) {
		struct sw_sim_event e = pop(&q->far);

		push(&q->now, &e);
	}
	return true;
}

struct sw_sim_event sw_sim_take(struct sw_sim_events *q)
{
	return pop(&q->now);
}
