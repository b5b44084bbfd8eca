/* turns.h - a histogram of the turns of a polling lcore.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The histogram counts CPU time.  The poller times a turn by the clock that it
 * reads between turns anyway.  The thread's CPU clock needs a system call, so
 * it is read only every SW_TURN_LOOK_NS, at the end of a turn.  The thread's
 * time without a CPU since the last reading counts first for the time before
 * the turn; the rest is subtracted from the turn.  Therefore no turn counts
 * less than its CPU time, and a turn in which other threads ran counts at most
 * SW_TURN_LOOK_NS more.
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
	SW_TURN_LONG_NS = 20000, /* counts even if no frame or command came */
	SW_TURN_MAX_LOG2 = 36,   /* the last bucket counts longer ones */
	SW_TURN_BUCKETS = 8 * (SW_TURN_MAX_LOG2 - 2),
	SW_TURN_LIMITS = 3,
};

/* Owned by the lcore; other threads read the counters by sw_word. */
struct sw_turns {
	uint64_t n[SW_TURN_BUCKETS];
	uint64_t n_over[SW_TURN_LIMITS]; /* sw_turn_limits */
	uint64_t max_ns;
	uint64_t busy_ns;         /* time in turns that counted */
	uint64_t spare_ns;        /* time outside them */
	uint64_t wall_ns, cpu_ns; /* both clocks at the last look */
};

struct sw_turn_limit {
	const char *name;
	uint64_t ns;
};

extern const struct sw_turn_limit sw_turn_limits[SW_TURN_LIMITS];

/* sw_turns_look - return the CPU time of the turn from @from_ns to @to_ns,
 * after reading the CPU clock: @cpu_ns. */
uint64_t sw_turns_look(
	struct sw_turns *t, uint64_t from_ns, uint64_t to_ns, uint64_t cpu_ns);

/* sw_turns_is_due - return whether the CPU clock should be read. */
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

/* sw_turns_note_long - count a long turn, for sw_turns_note. */
void sw_turns_note_long(struct sw_turns *t, uint64_t ns);

/* sw_turns_note - count a turn of @ns. */
static inline void sw_turns_note(struct sw_turns *t, uint64_t ns)
{
	sw_count(&t->n[sw_turns_bucket(ns)], 1);
	sw_count(&t->busy_ns, ns);
	if (ns > SW_TURN_LONG_NS)
		sw_turns_note_long(t, ns);
}

/* sw_turns_note_idle - count @ns of time without work. */
static inline void sw_turns_note_idle(struct sw_turns *t, uint64_t ns)
{
	sw_count(&t->spare_ns, ns);
}

/* sw_turns_put - put the counters for `sumwire stats`; names begin with
 * @prefix: turns, percentiles and the longest in ns, number of long turns,
 * busy and idle time.
 * Thread: any. */
void sw_turns_put(const struct sw_turns *t, const char *prefix,
	void (*put)(void *out, const char *name, uint64_t value), void *out);

#endif
