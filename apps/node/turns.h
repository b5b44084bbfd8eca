/* turns.h - histogram of the duration of a polling lcore's turns.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Durations are CPU time. A turn is timed by the clock that is read between
 * turns anyway. Reading the thread's CPU clock is a system call, so it happens
 * only every LOOK_NS, at the end of a turn. Time without a CPU since the last
 * look, but not before this turn began, is subtracted from the turn. So a turn
 * never counts for less than it took, and for at most LOOK_NS more if others
 * ran.
 *
 * Buckets are eighths of a power of two: percentiles are at most 1/8 too large.
 */
#ifndef SW_APPS_NODE_TURNS_H
#define SW_APPS_NODE_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/stats.h"

enum {
	SW_TURN_LOOK_NS = 50000,
	SW_TURN_LONG_NS = 20000, /* counts even without frames and commands */
	SW_TURN_MAX_LOG2 = 36,   /* longer ones count in the last bucket */
	SW_TURN_BUCKETS = 8 * (SW_TURN_MAX_LOG2 - 2),
	SW_TURN_LIMITS = 3,
};

/* Written by the lcore; others read the counters by sw_word. */
struct sw_turns {
	uint64_t n[SW_TURN_BUCKETS];
	uint64_t n_over[SW_TURN_LIMITS]; /* sw_turn_limits */
	uint64_t max_ns;
	uint64_t wall_ns, cpu_ns; /* both clocks at the last look */
};

struct sw_turn_limit {
	const char *name;
	uint64_t ns;
};

extern const struct sw_turn_limit sw_turn_limits[SW_TURN_LIMITS];

/* sw_turns_look - note that the CPU clock read @cpu_ns at @to_ns; return how
 * much of it the turn that began at @from_ns took. */
uint64_t sw_turns_look(
	struct sw_turns *t, uint64_t from_ns, uint64_t to_ns, uint64_t cpu_ns);

/* sw_turns_is_due - return whether to read the CPU clock. */
static inline bool sw_turns_is_due(const struct sw_turns *t, uint64_t now_ns)
{
	return now_ns - t->wall_ns >= SW_TURN_LOOK_NS;
}

/* sw_turns_bucket - return the bucket of @ns. */
static inline uint32_t sw_turns_bucket(uint64_t ns)
{
	uint32_t log2;

	if (ns < 8)
		return (uint32_t)ns;
	if (ns >> SW_TURN_MAX_LOG2)
		return SW_TURN_BUCKETS - 1;
	log2 = 63 - (uint32_t)__builtin_clzll(ns);
	return 8 * (log2 - 2) + (ns >> (log2 - 3) & 7);
}

/* sw_turns_note_long - count a long turn; called by sw_turns_note. */
void sw_turns_note_long(struct sw_turns *t, uint64_t ns);

/* sw_turns_note - count a turn of @ns. */
static inline void sw_turns_note(struct sw_turns *t, uint64_t ns)
{
	sw_count(&t->n[sw_turns_bucket(ns)], 1);
	if (ns > SW_TURN_LONG_NS)
		sw_turns_note_long(t, ns);
}

/* sw_turns_put - put the counters for `sumwire stats`, with @prefix before
 * their names: turns, percentiles and the longest in ns, and how many were
 * long. Thread: any. */
void sw_turns_put(const struct sw_turns *t, const char *prefix,
	void (*put)(void *out, const char *name, uint64_t value), void *out);

#endif
