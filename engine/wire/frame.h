/* frame.h - a frame between a port and the protocol: its bytes and its path.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_WIRE_FRAME_H
#define SW_ENGINE_WIRE_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/ip.h"
#include "engine/base/limits.h"

enum { SW_HEAD_BYTES = 54 }; /* fixed header of every frame (wire.h) */

/* Wire layout (PROTOCOL.md 1), followed by psn, which is not sent. */
struct sw_header {
	uint16_t magic; /* set by sw_header_seal, as psn_low and psn_high */
	uint8_t version;
	uint8_t type;
	uint8_t flags;
	uint8_t class; /* packet number space: 0…7, or 8 for control */
	uint16_t payload_len;
	uint32_t session; /* receiver's: index << 16 | generation; 0 before it
			     has one */
	uint32_t psn_low;
	union {
		struct { /* tensors, and fields that all data frames have */
			uint32_t key;
			uint32_t round; /* number of its push_pull; END: first
					   round that fails */
			uint32_t chunk; /* index in the tensor */
			/* Tag of the call, such as the training step's low
			 * bits, the same at all members; async RESULT: updates,
			 * low half. */
			uint16_t step;
			uint16_t weight; /* PUSH: local ranks in it; RESULT:
					    their sum */
			uint8_t dtype;
			uint8_t op;   /* enum sw_round_kind */
			uint16_t aux; /* PUSH, copy: the root's rank; async
					 RESULT: updates, high half */
		};
		struct { /* PUSH, RESULT and WANT of a stream */
			uint32_t key;
			uint32_t j;          /* number of the chunk at this
						server */
			uint32_t collective; /* number of the collective */
			uint16_t tag;        /* computed from count and root */
			union {
				uint16_t weight; /* as for tensors */
				uint16_t n;      /* WANT: chunks, from j on */
			};
			uint8_t dtype;
			uint8_t op; /* sw_coll_op */
			union {
				uint16_t root; /* PUSH, WANT: a member */
				uint16_t base; /* RESULT: low half */
			};
		} stream;
		struct {               /* control frames */
			uint32_t left; /* LEFT: the closed session */
			uint32_t unused1;
			uint32_t returned; /* credit that was never used */
			/* Control stream (engine/peer/control.h): number of
			 * this message, and of the last message that the sender
			 * accepted. */
			uint16_t number;
			uint16_t era; /* keyed: of results; lowest bits */
			uint8_t unused2[2];
			uint16_t taken;
		} ctl;
	};
	uint32_t consumed; /* quanta that the sender has used, cumulative */
	uint32_t grant;    /* quanta that the sender grants, cumulative */
	uint16_t psn_high;
	uint32_t payload_crc __attribute__((packed));
	/* A CRC on the wire. Before sw_header_seal and after sw_frames_open it
	 * holds the session's seed (sw_session_seed); 0 without a session. */
	uint32_t head_crc __attribute__((packed));
	uint64_t psn; /* 48 bits; unique per session, direction, class */
};

/* Source or destination of a frame. */
struct sw_path {
	struct sw_ip ip;
	uint16_t udp;    /* UDP port of the far end, host order */
	uint16_t port_i; /* index of our port in the node's list of ports */
};

static inline bool sw_path_is_same(
	const struct sw_path *a, const struct sw_path *b)
{
	return sw_ip_is_same(a->ip, b->ip) && a->udp == b->udp &&
	       a->port_i == b->port_i;
}

/* A received frame. @data points at our header. A NIC's port places an untagged
 * IPv4 frame so that the payload is 64-byte aligned, but the engine works at
 * any alignment. Borrowed until rx_release. */
struct sw_rx_frame {
	const uint8_t *data;    /* SW_HEAD_BYTES at least */
	const uint8_t *payload; /* len - SW_HEAD_BYTES, anywhere */
	uint32_t len; /* header and payload: UDP length - 8, <= bytes present */
	uint16_t endpoint; /* our endpoint that it is addressed to */
	uint16_t landed;   /* lcore whose queue received it */
	bool is_lent; /* the payload is the sender's own memory, which stays
			 unchanged until the sender has its answer */
	/* It arrived on the wrong lcore, and another source port may reach the
	 * right one. */
	bool is_misrouted;
	bool is_marked; /* a queue on the way was long (ECN) */
	struct sw_path from;
};

/* A frame to send. */
struct sw_tx_frame {
	union {
		uint8_t head[SW_HEAD_BYTES]; /* encoded; copied by tx */
		struct sw_header header;     /* built in place */
	};
	const void *payload; /* payload_len bytes, or NULL */
	uint32_t payload_len;
	bool is_stable;    /* the payload's memory stays mapped until the port
			      is told otherwise, so the port may gather it;
			      otherwise it may change once tx returns: tx sends
			      it at once, or copies it */
	bool is_marked;    /* handed to another lcore: as received */
	uint8_t class;     /* 0 most urgent … 7 */
	uint16_t endpoint; /* our endpoint that sends it; set by the loop */
	uint16_t way; /* index among that endpoint's UDP ports; usually 0 */
	struct sw_path to;
};

/* Record of a frame sent under a packet number. */
struct sw_sent {
	uint64_t t_ns;
	uint64_t psn;
	uint32_t key, cell, round;
	bool is_open;    /* neither acknowledged nor lost */
	bool is_lost;    /* declared lost */
	uint16_t quanta; /* that it consumed */
};

#endif
