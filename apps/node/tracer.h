/* tracer.h - the state of an lcore that is traced or captured.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_NODE_TRACER_H
#define SW_APPS_NODE_TRACER_H

#include <stdatomic.h>

#include "apps/cli/trace_format.h"
#include "engine/base/spsc.h"
#include "engine/loop/engine.h"

enum {
	SW_TAPS = 2, /* at a server's engine and a worker's */
	SW_TRACE_PLACES = 2 * SW_TRACE_NAMES,
	/* size of a ring entry */
	SW_TRACE_ENTRY = sizeof(struct sw_trace_event),
	SW_TRACE_SOME = SW_TRACE_BLOCK_MAX / SW_TRACE_ENTRY,
};

/* A tap between the loop and an engine. */
struct sw_tap {
	struct sw_engine engine; /* the engine that the loop drives */
	struct sw_engine *inner; /* NULL: not in use */
	struct sw_tracer *tracer;
	uint16_t endpoint;
};

struct sw_tracer_peer {
	const struct sw_engine *engine; /* NULL: the engine has ended */
	struct sw_engine_peer is;
	uint32_t slot; /* index of the session in its engine */
	/* newest of received frames, low half */
	uint32_t last_psn[SW_N_CLASSES];
};

/* State of one lcore.  The control thread allocates it and sets what to
 * record. */
struct sw_tracer {
	struct sw_trace_ask ask;
	struct sw_port *const *ports; /* ports of the lcore */
	uint16_t first_udp, n_udp;    /* same for every port */
	/* Owned by the lcore: */
	struct sw_tap taps[SW_TAPS];
	struct sw_spsc to; /* producer side of the ring */
	uint16_t last_peer;
	struct sw_tracer_peer peers[SW_TRACE_PEERS];
	/* hash table by job and key: index of the name + 1 */
	uint16_t places[SW_TRACE_PLACES];
	uint8_t frame[SW_TRACE_FRAME_MAX]; /* buffer to assemble a frame */
	/* Entries below the counts are stable, and control may read them. */
	_Atomic uint32_t n_peers, n_names;
	uint64_t n_untaken;
	struct sw_trace_peer told_peers[SW_TRACE_PEERS];
	struct sw_trace_name names[SW_TRACE_NAMES];
	/* Owned by the control thread: */
	struct sw_spsc from;
	uint32_t sent_peers, sent_names;
	uint32_t n_some; /* entries of an incomplete frame */
	uint8_t some[SW_TRACE_BLOCK_MAX];
	_Alignas(64) unsigned char ring[];
};

/* sw_trace_events_tap, sw_capture_tap - make a tap record events or frames.
 * Thread: the lcore. */
void sw_trace_events_tap(struct sw_engine *tap);
void sw_capture_tap(struct sw_engine *tap);

/* sw_trace_find_peer - return the peer of a frame of @session, or
 * SW_TRACE_NO_PEER.  @to is the frame's destination; NULL: it was received.
 * Thread: the lcore. */
uint16_t sw_trace_find_peer(struct sw_tracer *t, const struct sw_engine *engine,
	uint32_t session, const struct sw_path *to);

#endif
