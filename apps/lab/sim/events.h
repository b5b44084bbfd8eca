/* events.h - what happens next: a queue by time, then by order of entry.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A wheel of two levels: a list for each nanosecond of the current block, and
 * one for each of the blocks behind it. Lists keep the order of entry, so an
 * event enters and leaves by a few instructions. Events behind the wheel's
 * horizon of 4 ms lie in a heap until their block is within it.
 */
#ifndef SW_APPS_LAB_SIM_EVENTS_H
#define SW_APPS_LAB_SIM_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

enum sw_sim_kind {
	SW_SIM_ARRIVE, /* the first frame of a link reaches its end */
	SW_SIM_DEPART, /* a frame leaves a shared buffer */
	SW_SIM_STRAY,  /* a reordered frame reaches the end of its link */
	SW_SIM_WAKE,   /* a node takes a turn */
	SW_SIM_TIMER,
};

enum {
	SW_SIM_INDEX_BITS = 20,
	SW_SIM_BLOCK_BITS = 10,
	SW_SIM_BLOCK = 1 << SW_SIM_BLOCK_BITS, /* ns; fits the L1 cache */
	SW_SIM_WHEEL = 4096,                   /* slots of a level */
};

struct sw_sim_event {
	uint64_t at_ns;
	uint32_t what; /* kind, then 20 bits of index */
	uint32_t next; /* in a list: 1 + its index; 0: the last one */
};

/* A level of the wheel: first and last event of each slot, as next, and which
 * slots have some. Without a first event, the last one means nothing. */
struct sw_sim_level {
	struct {
		uint32_t first, last;
	} slots[SW_SIM_WHEEL];
	uint64_t used[SW_SIM_WHEEL / 64];
	uint64_t summary; /* words of used that are not 0 */
};

/* An event behind the horizon; equal times go by order of entry. */
struct sw_sim_far {
	uint64_t at_ns, number;
	uint32_t what;
};

struct sw_sim_events {
	uint64_t block; /* the current one: time >> SW_SIM_BLOCK_BITS */
	struct sw_sim_event *all;
	uint32_t free, n, size; /* free list, as next; entries used; room */
	struct sw_sim_far *far; /* a heap: [0] is the first, four children */
	uint32_t n_far, far_size;
	uint64_t n_entered;        /* into the heap */
	struct sw_sim_level now;   /* nanoseconds of the current block */
	struct sw_sim_level later; /* blocks, modulo their number */
};

static inline enum sw_sim_kind sw_sim_kind_of(const struct sw_sim_event *e)
{
	return (enum sw_sim_kind)(e->what >> SW_SIM_INDEX_BITS);
}

static inline uint32_t sw_sim_index_of(const struct sw_sim_event *e)
{
	return e->what & ((1u << SW_SIM_INDEX_BITS) - 1);
}

/* sw_sim_events_init - an empty queue.
 * sw_sim_events_close - free its memory. */
void sw_sim_events_init(struct sw_sim_events *q);
void sw_sim_events_close(struct sw_sim_events *q);

/* sw_sim_put - enter an event, which is not before the last one taken. Exits
 * the process when memory is short, as all of the simulation does: nothing can
 * be saved then. */
void sw_sim_put(struct sw_sim_events *q, uint64_t at_ns, enum sw_sim_kind kind,
	uint32_t index);

/* sw_sim_has - is there an event at @at_ns, a time of the current block? */
static inline bool sw_sim_has(const struct sw_sim_events *q, uint64_t at_ns)
{
	return q->now.slots[at_ns % SW_SIM_BLOCK].first;
}

/* sw_sim_go_on - go to the next block with events, if it begins by @until_ns;
 * returns whether there is one. */
bool sw_sim_go_on(struct sw_sim_events *q, uint64_t until_ns);

/* sw_sim_level_first - the first slot in use, of a level that has one.
 * sw_sim_level_clear - empty a slot in use. */
static inline uint32_t sw_sim_level_first(const struct sw_sim_level *l)
{
	uint32_t w = (uint32_t)__builtin_ctzll(l->summary);

	return w * 64 + (uint32_t)__builtin_ctzll(l->used[w]);
}

static inline void sw_sim_level_clear(struct sw_sim_level *l, uint32_t at)
{
	uint64_t word = l->used[at / 64] & ~(1ULL << at % 64);

	l->slots[at].first = 0;
	l->used[at / 64] = word;
	if (!word)
		l->summary &= ~(1ULL << at / 64);
}

/* sw_sim_take - remove the first event into @e, if it is not after @until_ns;
 * returns whether there was one. */
static inline bool sw_sim_take(
	struct sw_sim_events *q, uint64_t until_ns, struct sw_sim_event *e)
{
	struct sw_sim_event *first;
	uint32_t at, i;

	if (!q->now.summary && !sw_sim_go_on(q, until_ns))
		return false;
	at = sw_sim_level_first(&q->now);
	i = q->now.slots[at].first;
	first = &q->all[i - 1];
	*e = *first;
	if (e->at_ns > until_ns)
		return false;
	if (e->next)
		q->now.slots[at].first = e->next;
	else
		sw_sim_level_clear(&q->now, at);
	first->next = q->free;
	q->free = i;
	return true;
}

#endif
