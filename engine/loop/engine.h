/* engine.h - one engine instance as the loop and the simulator see it.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_LOOP_ENGINE_H
#define SW_ENGINE_LOOP_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/bytes.h"
#include "engine/base/stats.h"
#include "engine/loop/port.h"

enum {
	SW_MAX_PORTS = 33, /* 32 to others and one to itself */
	SW_MAX_LCORES = 16 /* of a process, polling */
};

/* A server or a worker.  It is embedded first in its struct.  All calls come
 * from the lcore that owns it; now_ns never goes back. */
struct sw_engine {
	struct sw_stats *stats; /* of the instance */
	/* Set by the loop before tx: pacing lets control frames go, no data. */
	bool holds_data;
	/* Frames that it sends say which endpoint they are from; else they are
	 * from its own. */
	bool is_relay;
	/* Handle @n frames that came in on port @port_i; they are borrowed. */
	void (*rx)(struct sw_engine *, uint64_t now_ns, uint32_t port_i,
		const struct sw_rx_frame *frames, uint32_t n);
	/* Fire the timers that are due.  @gap_ns is the longest recent gap in
	 * polling.  Returns when to call again. */
	uint64_t (*tick)(struct sw_engine *, uint64_t now_ns, uint64_t gap_ns);
	/* Fill the next frames to send on port @port_i, at most @max; returns
	 * how many.  0: nothing is due there.  Their payloads stay as they are
	 * until the next call. */
	uint32_t (*tx)(struct sw_engine *, uint64_t now_ns, uint32_t port_i,
		struct sw_tx_frame *out, uint32_t max);
	/* Is anything outstanding, so that the loop must not sleep long? */
	bool (*is_busy)(const struct sw_engine *);
};

enum { SW_LOOK_NS = 1500 }; /* pause after a look at the timers of one */

/* sw_look_again - when to look at the timers of @n again, of which one is due
 * at @at_ns.  A look costs the more the more they are: those that are due one
 * soon after the other share it. */
static inline uint64_t sw_look_again(
	uint64_t at_ns, uint64_t now_ns, uint32_t n)
{
	return sw_max64(at_ns, now_ns + (uint64_t)n * SW_LOOK_NS);
}

#endif
