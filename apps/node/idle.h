/* idle.h - choose how a polling lcore waits while nothing arrives.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A thread that has its core alone loses nothing by polling, and saves a
 * wake-up.  On a shared core, a thread that yields waits for milliseconds until
 * the other thread's slice ends, while a thread that sleeps preempts the other
 * when it wakes.  Therefore a long yield makes the lcore sleep for a while.
 */
#ifndef SW_APPS_NODE_IDLE_H
#define SW_APPS_NODE_IDLE_H

#include <stdbool.h>
#include <stdint.h>

enum sw_idle_way {
	SW_IDLE_YIELD,
	SW_IDLE_NAP,  /* sleep until a process waits for its sums */
	SW_IDLE_REST, /* sleep until a frame or a process wakes the lcore */
	SW_IDLE_SLEEP /* sleep for the full time */
};

/* State of one lcore's waits. */
struct sw_idle {
	uint64_t spin_ns, sleep_ns; /* [lcore] spin, sleep */
	uint64_t shared_until_ns;   /* the core counts as shared until then */
	long n_switches;            /* involuntary, at the last long yield */
};

/* State of an lcore when nothing has arrived. */
struct sw_idle_look {
	uint64_t now_ns;
	uint64_t idle_ns; /* since frames or commands last came or went */
	bool is_busy;     /* work is outstanding */
	bool can_wake;    /* a frame makes a descriptor readable */
	bool is_serving;  /* frames may arrive at any time */
	/* some process computes, and does not wait for its sums */
	bool has_computing;
};

/* sw_idle_spins - return whether the lcore has been idle too briefly to wait.
 */
static inline bool sw_idle_spins(const struct sw_idle *i, uint64_t idle_ns)
{
	return idle_ns < i->spin_ns / 4;
}

/* sw_idle_is_shared - return whether other threads want the core. */
static inline bool sw_idle_is_shared(const struct sw_idle *i, uint64_t now_ns)
{
	return now_ns < i->shared_until_ns;
}

/* sw_idle_choose - choose how to wait.  Sets *most_ns to the longest wait. */
enum sw_idle_way sw_idle_choose(const struct sw_idle *i,
	const struct sw_idle_look *l, uint64_t *most_ns);

/* sw_idle_note - note the duration of a yield.  @has_switched: another thread
 * ran meanwhile.  Without it, an interrupt or a pause of the machine made the
 * yield long. */
void sw_idle_note(
	struct sw_idle *i, uint64_t from_ns, uint64_t to_ns, bool has_switched);

/* sw_idle_yield - yield the core, and note how long it took. */
void sw_idle_yield(struct sw_idle *i, uint64_t now_ns);

#endif
