/* events.h - a queue of events, by time, then by order of entry.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The queue is a wheel of two levels: a list for each nanosecond of the current
 * block, and a list for each of the following blocks.  Lists keep the order of
 * entry, so an event enters and leaves by a few instructions.  Events beyond
 * the wheel's horizon of 4 ms wait in a heap until the horizon reaches their
 * block.
 */
#ifndef SW_APPS_LAB_SIM_EVENTS_H
#define SW_APPS_LAB_SIM_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

enum sw_sim_kind {
	/* the first frame in flight reaches the end of its link */
	SW_SIM_ARRIVE,
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
	uint32_t what; /* kind, followed by 20 bits of index */
	uint32_t next; /* next of a list: 1 + its index; 0: the last one */
};

/* A level of the wheel: first and last event of each slot, as next, and a
 * bitmap of the used slots.  In an empty slot first is 0, and last is
 * undefined. */
struct sw_sim_level {
	struct {
		uint32_t first, last;
	} slots[SW_SIM_WHEEL];
	uint64_t used[SW_SIM_WHEEL / 64];
	uint64_t summary; /* bitmap of the non-zero words of used */
};

/* An event beyond the horizon.  Equal times go by order of entry. */
struct sw_sim_far {
	uint64_t at_ns, number;
	uint32_t what;
};

struct sw_sim_events {
	uint64_t block; /* current block: time >> SW_SIM_BLOCK_BITS */
	struct sw_sim_event *all;
	/* free list, as next; used entries; allocated entries */
	uint32_t free, n, size;
	/* a heap with four children; [0] is the first event */
	struct sw_sim_far *far;
	uint32_t n_far, far_size;
	uint64_t n_entered;      /* events that ever entered the heap */
	struct sw_sim_level now; /* nanoseconds of the current block */
	/* following blocks, by their number modulo the slots */
	struct sw_sim_level later;
};

static inline enum sw_sim_kind sw_sim_kind_of(const struct sw_sim_event *e)
{
	return (enum sw_sim_kind)(e->what >> SW_SIM_INDEX_BITS);
}

static inline uint32_t sw_sim_index_of(const struct sw_sim_event *e)
{
	return e->what & ((1u << SW_SIM_INDEX_BITS) - 1);
}

/* sw_sim_events_init - make an empty queue.
 * sw_sim_events_close - free its memory. */
void sw_sim_events_init(struct sw_sim_events *q);
void sw_sim_events_close(struct sw_sim_events *q);

/* sw_sim_put - enter an event, not earlier than the last one taken.  If memory
 * is short, it exits the process, as everywhere in the simulation: nothing can
 * be saved then. */
void sw_sim_put(struct sw_sim_events *q, uint64_t at_ns, enum sw_sim_kind kind,
	uint32_t index);

/* sw_sim_has - return whether there is an event at @at_ns, a time of the
 * current block. */
static inline bool sw_sim_has(const struct sw_sim_events *q, uint64_t at_ns)
{
	return q->now.slots[at_ns % SW_SIM_BLOCK].first;
}

/* sw_sim_go_on - advance to the next block with events, if it begins by
 * @until_ns.  Returns whether there is one. */
bool sw_sim_go_on(struct sw_sim_events *q, uint64_t until_ns);

/* sw_sim_level_first - return the first used slot of a level, which must have
 * one.
 * sw_sim_level_clear - empty a used slot. */
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

/* sw_sim_take - remove the first event into @e, unless it is after @until_ns.
 * Returns whether it took one. */
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
