/* peer_view.h - statistics of the path to a peer, for status and metrics.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_PEER_PEER_VIEW_H
#define SW_ENGINE_PEER_PEER_VIEW_H

#include "engine/flow/flow.h"

struct sw_peer;

/* The path to a peer.  Zero: unknown yet.  Only data frames count, in both
 * directions. */
struct sw_peer_view {
	uint64_t srtt_ns, least_ns; /* round-trip time: smoothed, least */
	uint64_t window_bytes;      /* congestion window; 0: no limit */
	uint64_t granted_bytes;     /* granted by the peer and unused */
	uint64_t sent, lost;        /* data frames to the peer */
	uint64_t queued;            /* lost while a queue was long */
	uint64_t timeouts;          /* losses that only a timeout detected */
	uint64_t numbered, missed;  /* from the peer: sent, lost */
	/* Frames lost to and from the peer, per 10,000 in the last seconds. */
	uint32_t lost_part, missed_part;
	/* Frames to the peer that queues marked, per 10,000 on average. */
	uint32_t marked_part;
	/* Time for which data to the peer waited, by cause, including a current
	 * stall. */
	uint64_t stalled_ns[SW_N_STALLS];
};

/* sw_peer_look - describe the path to @p. */
struct sw_peer_view sw_peer_look(const struct sw_peer *p);

#endif
