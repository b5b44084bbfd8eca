/* frame.h - a frame between a port and the protocol: bytes, and where from.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_FRAME_H
#define SW_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/limits.h"

enum { SW_HEAD_BYTES = 54 }; /* fixed header of every frame (wire.h) */

/* Where a frame came from or goes to.  Compared as a whole. */
struct sw_path {
	uint32_t ip;     /* IPv4, host order */
	uint16_t udp;    /* UDP port of the far end, host order */
	uint16_t port_i; /* index of our port in the node's list */
};

/* A received frame.  @data points at our header.  A NIC's port placed it so
 * that the payload, which follows, is 64-byte aligned on an untagged IPv4
 * frame; the engine works at any alignment.  Borrowed until rx_release. */
struct sw_rx_frame {
	const uint8_t *data;    /* SW_HEAD_BYTES at least */
	const uint8_t *payload; /* len - SW_HEAD_BYTES, anywhere */
	uint32_t len; /* header and payload: UDP length - 8, <= bytes present */
	uint16_t endpoint; /* of ours, that it is for */
	uint16_t landed;   /* the lcore whose queue it came in on */
	bool is_lent; /* the payload is the sender's own memory, which stays as
			 it is until the sender has its answer */
	/* It should have come in on another, and from another source port it
	 * may. */
	bool is_misrouted;
	struct sw_path from;
};

/* A frame to send. */
struct sw_tx_frame {
	uint8_t head[SW_HEAD_BYTES]; /* encoded; copied by tx */
	const void *payload;         /* payload_len bytes, or NULL */
	uint32_t payload_len;
	bool is_stable;    /* payload's memory stays mapped until the port is
			      told otherwise: it may be gathered.  Else tx has
			      copied it when it returns. */
	uint8_t class;     /* 0 most urgent … 7 */
	uint16_t endpoint; /* of ours, that it is from; set by the loop */
	uint16_t way;      /* which of that endpoint's UDP ports; else 0 */
	struct sw_path to;
};

#endif
