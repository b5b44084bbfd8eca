/* events.c - a queue of events, by time, then by order of entry.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/lab/sim/events.h"

#include <stdlib.h>
#include <string.h>

static void *grow(void *mem, uint32_t *size, size_t bytes)
{
	*size = 2 * *size + 64;
	mem = realloc(mem, *size * bytes);
	if (!mem)
		abort();
	return mem;
}

void sw_sim_events_init(struct sw_sim_events *q)
{
	memset(q, 0, sizeof(*q));
}

void sw_sim_events_close(struct sw_sim_events *q)
{
	free(q->all);
	free(q->far);
}

/* --- a level --- */

/* Append the event at place @i to a slot's list. */
static inline void append(struct sw_sim_events *q, struct sw_sim_level *l,
	uint32_t at, uint32_t i)
{
	q->all[i - 1].next = 0;
	if (l->slots[at].first) {
		q->all[l->slots[at].last - 1].next = i;
	} else {
		l->slots[at].first = i;
		l->used[at / 64] |= 1ULL << at % 64;
		l->summary |= 1ULL << at / 64;
	}
	l->slots[at].last = i;
}

/* Return the first used slot from @from on, wrapping around.  The level must
 * have one. */
static uint32_t next_of(const struct sw_sim_level *l, uint32_t from)
{
	uint64_t word = l->used[from / 64] >> from % 64;
	uint64_t words = l->summary & (~1ULL << from / 64);
	uint32_t w;

	if (word)
		return from + (uint32_t)__builtin_ctzll(word);
	if (!words)
		return sw_sim_level_first(l);
	w = (uint32_t)__builtin_ctzll(words);
	return w * 64 + (uint32_t)__builtin_ctzll(l->used[w]);
}

/* --- beyond the horizon --- */

static bool is_earlier(const struct sw_sim_far *a, const struct sw_sim_far *b)
{
	return a->at_ns < b->at_ns ||
	       (a->at_ns == b->at_ns && a->number < b->number);
}

static __attribute__((noinline)) void push_far(
	struct sw_sim_events *q, uint64_t at_ns, uint32_t what)
{
	struct sw_sim_far e = {
		.at_ns = at_ns, .number = q->n_entered++, .what = what};
	uint32_t i = q->n_far++;

	if (q->n_far > q->far_size)
		q->far = grow(q->far, &q->far_size, sizeof(*q->far));
	for (; i && is_earlier(&e, &q->far[(i - 1) / 4]); i = (i - 1) / 4)
		q->far[i] = q->far[(i - 1) / 4];
	q->far[i] = e;
}

static struct sw_sim_far pop_far(struct sw_sim_events *q)
{
	struct sw_sim_far first = q->far[0], last = q->far[--q->n_far];
	uint32_t i = 0;

	for (;;) {
		uint32_t c = 4 * i + 1, best = c;

		if (c >= q->n_far)
			break;
		for (uint32_t k = c + 1; k < c + 4 && k < q->n_far; k++)
			best = is_earlier(&q->far[k], &q->far[best]) ? k : best;
		if (!is_earlier(&q->far[best], &last))
			break;
		q->far[i] = q->far[best];
		i = best;
	}
	q->far[i] = last;
	return first;
}

/* --- all --- */

static uint64_t block_of(uint64_t at_ns)
{
	return at_ns >> SW_SIM_BLOCK_BITS;
}

/* Make room for more events. */
static __attribute__((noinline)) void grow_all(struct sw_sim_events *q)
{
	q->all = grow(q->all, &q->size, sizeof(*q->all));
}

/* Return a free place, numbered from 1 as next is. */
static inline uint32_t place(struct sw_sim_events *q)
{
	uint32_t i = q->free;

	if (i) {
		q->free = q->all[i - 1].next;
		return i;
	}
	if (q->n == q->size)
		grow_all(q);
	return ++q->n;
}

/* Enter an event of the current block, or of a block within the horizon. */
static inline void enter(struct sw_sim_events *q, uint64_t at_ns, uint32_t what)
{
	uint64_t block = block_of(at_ns);
	uint32_t i = place(q);

	q->all[i - 1].at_ns = at_ns;
	q->all[i - 1].what = what;
	if (block == q->block)
		append(q, &q->now, at_ns % SW_SIM_BLOCK, i);
	else
		append(q, &q->later, block % SW_SIM_WHEEL, i);
}

void sw_sim_put(struct sw_sim_events *q, uint64_t at_ns, enum sw_sim_kind kind,
	uint32_t index)
{
	uint32_t what = (uint32_t)kind << SW_SIM_INDEX_BITS | index;

	if (block_of(at_ns) - q->block < SW_SIM_WHEEL)
		enter(q, at_ns, what);
	else
		push_far(q, at_ns, what);
}

/* Distribute the current block's list over its nanoseconds. */
static void spread(struct sw_sim_events *q)
{
	uint32_t at = q->block % SW_SIM_WHEEL, i;

	i = q->later.slots[at].first;
	if (!i)
		return;
	sw_sim_level_clear(&q->later, at);
	while (i) {
		uint32_t next = q->all[i - 1].next;

		append(q, &q->now, q->all[i - 1].at_ns % SW_SIM_BLOCK, i);
		i = next;
	}
}

/* Events beyond the horizon must enter their lists as soon as the horizon
 * reaches them, before any later event can. */
bool sw_sim_go_on(struct sw_sim_events *q, uint64_t until_ns)
{
	uint64_t block;

	if (q->later.summary) {
		uint32_t from = (q->block + 1) % SW_SIM_WHEEL;

		block = q->block + 1 +
			(next_of(&q->later, from) - from) % SW_SIM_WHEEL;
	} else if (q->n_far) {
		block = block_of(q->far[0].at_ns);
	} else {
		return false;
	}
	if (block > block_of(until_ns))
		return false;
	q->block = block;
	spread(q);
	while (q->n_far &&
		block_of(q->far[0].at_ns) - q->block < SW_SIM_WHEEL) {
		struct sw_sim_far e = pop_far(q);

		enter(q, e.at_ns, e.what);
	}
	return true;
}
