/* idle.h - the rule for a polling lcore without work.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * An lcore that has its core alone loses nothing by polling, and saves a wake-
 * up. On a shared core, a thread that yields waits for the other's time slice,
 * milliseconds; a thread that sleeps and is woken runs before the other. So the
 * duration of yields tells which of the two is right, for a while.
 */
#ifndef SW_APPS_NODE_IDLE_H
#define SW_APPS_NODE_IDLE_H

#include <stdbool.h>
#include <stdint.h>

enum sw_idle_way {
	SW_IDLE_YIELD,
	SW_IDLE_NAP,  /* until a process waits for its sums, whatever arrives */
	SW_IDLE_REST, /* until a frame or a process signals, if they can */
	SW_IDLE_SLEEP /* for a fixed time, whatever arrives */
};

/* State of one lcore. */
struct sw_idle {
	uint64_t spin_ns, sleep_ns; /* [lcore] spin, sleep */
	uint64_t shared_until_ns;   /* until then, others want the core */
	long n_switches;            /* context switches during long yields */
};

/* Facts for the choice when nothing has arrived. */
struct sw_idle_look {
	uint64_t now_ns;
	uint64_t idle_ns;   /* time since the last frame or command */
	bool is_busy;       /* something is outstanding */
	bool can_wake;      /* a descriptor signals frames */
	bool is_serving;    /* frames may arrive at any time */
	bool has_computing; /* a process does not wait for its sums */
};

/* sw_idle_spins - return whether it is too early for anything but spinning. */
static inline bool sw_idle_spins(const struct sw_idle *i, uint64_t idle_ns)
{
	return idle_ns < i->spin_ns / 4;
}

/* sw_idle_is_shared - return whether others want the core. */
static inline bool sw_idle_is_shared(const struct sw_idle *i, uint64_t now_ns)
{
	return now_ns < i->shared_until_ns;
}

/* sw_idle_choose - choose how to wait, and for at most how long: *most_ns. */
enum sw_idle_way sw_idle_choose(const struct sw_idle *i,
	const struct sw_idle_look *l, uint64_t *most_ns);

/* sw_idle_note - note the duration of a yield, and whether others ran
 * meanwhile: interrupts and pauses of the machine take time, too. */
void sw_idle_note(
	struct sw_idle *i, uint64_t from_ns, uint64_t to_ns, bool has_switched);

/* sw_idle_yield - yield the core, and note it. */
void sw_idle_yield(struct sw_idle *i, uint64_t now_ns);

#endif
