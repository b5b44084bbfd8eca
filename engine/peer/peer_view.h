/* peer_view.h - what an engine tells of the path to a peer.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_PEER_PEER_VIEW_H
#define SW_ENGINE_PEER_PEER_VIEW_H

#include "engine/flow/flow.h"

struct sw_peer;

/* The path to a peer.  Zeros: nothing is known yet.  Only frames of data count,
 * ours and the peer's. */
struct sw_peer_view {
	uint64_t srtt_ns, least_ns; /* round trips: smoothed, the least */
	uint64_t window_bytes;      /* congestion's; 0: it does not limit */
	uint64_t granted_bytes;     /* granted to us and not used */
	uint64_t sent, lost;        /* ours */
	uint64_t queued;            /* lost while a queue had grown */
	uint64_t timeouts;          /* lost, and only a timeout found it */
	uint64_t numbered, missed;  /* the peer's: sent, not arrived */
	/* Frames lost, and not arrived, of each 10,000 in the last seconds. */
	uint32_t lost_part, missed_part;
	/* Our frames that queues marked, of each 10,000, on average. */
	uint32_t marked_part;
	/* Time in which our data waited, by cause, with the stall that has not
	 * ended. */
	uint64_t stalled_ns[SW_N_STALLS];
};

/* sw_peer_look - describe the path to @p. */
struct sw_peer_view sw_peer_look(const struct sw_peer *p);

#endif
