/* idle.h - what a polling lcore does while nothing comes: the one rule.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Who has a core alone loses nothing by polling, and wins a wake-up.  Who
 * shares it and yields waits until the other's slice is over, milliseconds;
 * who sleeps and is woken runs before it.  So the time that yields take says
 * which of the two is right, for a while. */
#ifndef SW_APPS_NODE_IDLE_H
#define SW_APPS_NODE_IDLE_H

#include <stdbool.h>
#include <stdint.h>

enum sw_idle_way {
	SW_IDLE_YIELD,
	SW_IDLE_NAP,  /* until a process waits for its sums, whatever comes */
	SW_IDLE_REST, /* until a frame or a process comes, where they tell */
	SW_IDLE_SLEEP /* whatever comes */
};

/* Of one lcore. */
struct sw_idle {
	uint64_t spin_ns, sleep_ns; /* [lcore] spin, sleep */
	uint64_t shared_until_ns;   /* others want the core */
	long n_switches;            /* to others, when a yield took long */
};

/* What there is to know when nothing has come. */
struct sw_idle_look {
	uint64_t now_ns;
	uint64_t idle_ns;   /* since something came, or went */
	bool is_busy;       /* something is outstanding */
	bool can_wake;      /* a descriptor says when frames come */
	bool is_serving;    /* frames may come at any time */
	bool has_computing; /* a process that does not wait for its sums */
};

/* sw_idle_spins - is it too early to look for anything better? */
static inline bool sw_idle_spins(const struct sw_idle *i, uint64_t idle_ns)
{
	return idle_ns < i->spin_ns / 4;
}

/* sw_idle_is_shared - do others want the core? */
static inline bool sw_idle_is_shared(const struct sw_idle *i, uint64_t now_ns)
{
	return now_ns < i->shared_until_ns;
}

/* sw_idle_choose - what to do, and for how long at most: *most_ns. */
enum sw_idle_way sw_idle_choose(const struct sw_idle *i,
	const struct sw_idle_look *l, uint64_t *most_ns);

/* sw_idle_note - a yield took that long, and others ran meanwhile or did not:
 * an interrupt, or the machine's own stop, takes time, too. */
void sw_idle_note(
	struct sw_idle *i, uint64_t from_ns, uint64_t to_ns, bool has_switched);

/* sw_idle_yield - yield the core, and note it. */
void sw_idle_yield(struct sw_idle *i, uint64_t now_ns);

#endif
