/* events.h - what happens next: a queue by time, then by order of entry.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A wheel of slots, each a list of the events of some nanoseconds. The events
 * of the current slot lie in a heap, as do those behind the wheel's horizon.
 * Entering and taking an event costs O(1) as long as slots have few events.
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
	SW_SIM_WHEEL = 8192, /* slots */
};

struct sw_sim_event {
	uint64_t at_ns;
	/* 40 bits of entry order, 4 of kind, 20 of index: equal times go in the
	 * order of entry on every machine. */
	uint64_t tag;
};

struct sw_sim_heap {
	struct sw_sim_event *all; /* [0] is the first; four children each */
	uint32_t n, size;
};

/* An event in the list of its slot. */
struct sw_sim_waiting {
	struct sw_sim_event event;
	uint32_t next; /* 1 + its index; 0: the last one */
};

struct sw_sim_events {
	struct sw_sim_heap now; /* the current slot and before it */
	struct sw_sim_heap far; /* behind the horizon when entered */
	uint64_t slot;          /* the current one: time >> shift */
	uint32_t shift;
	uint64_t n_entered;
	struct sw_sim_waiting *waiting;
	/* The free list, as next; entries of waiting in use, and its room. */
	uint32_t free, n_waiting, size;
	uint32_t lists[SW_SIM_WHEEL]; /* by slot: as next */
	uint64_t used[SW_SIM_WHEEL / 64];
};

static inline enum sw_sim_kind sw_sim_kind_of(const struct sw_sim_event *e)
{
	return (enum sw_sim_kind)(e->tag >> SW_SIM_INDEX_BITS & 15);
}

static inline uint32_t sw_sim_index_of(const struct sw_sim_event *e)
{
	return (uint32_t)e->tag & ((1u << SW_SIM_INDEX_BITS) - 1);
}

/* sw_sim_events_init - an empty queue; slots hold 2^@shift nanoseconds.
 * sw_sim_events_close - free its memory. */
void sw_sim_events_init(struct sw_sim_events *q, uint32_t shift);
void sw_sim_events_close(struct sw_sim_events *q);

/* sw_sim_put - enter an event, which is not before the last one taken. Exits
 * the process when memory is short, as all of the simulation does: nothing can
 * be saved then. */
void sw_sim_put(struct sw_sim_events *q, uint64_t at_ns, enum sw_sim_kind kind,
	uint32_t index);

/* sw_sim_turn_wheel - make the next slot with events the current one, whose
 * events are all taken. Returns false if the queue is empty. */
bool sw_sim_turn_wheel(struct sw_sim_events *q);

/* sw_sim_take - remove and return the first event of the current slot, which
 * has one (q->now). */
struct sw_sim_event sw_sim_take(struct sw_sim_events *q);

#endif
