/* engine.h - the interface of an engine to the loop and the simulator.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_LOOP_ENGINE_H
#define SW_ENGINE_LOOP_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/bytes.h"
#include "engine/base/stats.h"
#include "engine/loop/port.h"

enum {
	SW_MAX_PORTS = 33,  /* 32 to other nodes and one to itself */
	SW_MAX_LCORES = 16, /* polling lcores of a process */
	SW_TX_BURST = 16    /* most frames of one tx call */
};

/* A session, for the names in a trace. */
struct sw_engine_peer {
	uint32_t id, far_id; /* in frames from the peer; to the peer */
	uint32_t seed;       /* the same at both ends (sw_session_seed) */
	struct sw_path path;
	uint64_t epoch;  /* of the job */
	uint16_t member; /* the worker's number in the job */
	char job[SW_NAME_MAX];
};

struct sw_engine_tensor {
	const char *name; /* valid until the engine runs again */
	bool is_stream;
};

/* A server or a worker embeds this struct as its first member.  All calls come
 * from the lcore that owns the engine; now_ns never decreases. */
struct sw_engine {
	struct sw_stats *stats; /* of the instance */
	/* The loop sets this before tx if pacing allows only control frames. */
	bool holds_data;
	/* The engine sets each frame's source endpoint; else the loop sets it
	 * to the engine's own endpoint. */
	bool is_relay;
	/* Handle @n frames received on port @port_i; they are borrowed. */
	void (*rx)(struct sw_engine *, uint64_t now_ns, uint32_t port_i,
		const struct sw_rx_frame *frames, uint32_t n);
	/* Fire due timers. @gap_ns is the longest recent gap in polling.
	 * Returns when to call again. */
	uint64_t (*tick)(struct sw_engine *, uint64_t now_ns, uint64_t gap_ns);
	/* Fill up to @max frames, at most SW_TX_BURST, to send on port @port_i;
	 * return how many, 0: none is due there.  Their payloads stay unchanged
	 * until the next call. */
	uint32_t (*tx)(struct sw_engine *, uint64_t now_ns, uint32_t port_i,
		struct sw_tx_frame *out, uint32_t max);
	/* Return whether work is outstanding, so that the loop must not sleep
	 * long. */
	bool (*is_busy)(const struct sw_engine *);
	/* Describe session @i, below SW_MAX_SESSIONS; false: not open.  NULL:
	 * the engine has no sessions. */
	bool (*peer)(const struct sw_engine *, uint32_t i,
		struct sw_engine_peer *out);
	/* Describe tensor @key of session @i; false: unknown. */
	bool (*tensor)(const struct sw_engine *, uint32_t i, uint32_t key,
		struct sw_engine_tensor *out);
};

enum { SW_LOOK_NS = 1500 }; /* pause after a check of one timer */

/* sw_look_again - return when to check @n timers again, if the first is due at
 * @at_ns.  The cost of a check grows with @n, so timers that are due soon after
 * each other share a check. */
static inline uint64_t sw_look_again(
	uint64_t at_ns, uint64_t now_ns, uint32_t n)
{
	return sw_max64(at_ns, now_ns + (uint64_t)n * SW_LOOK_NS);
}

#endif
