/* frame.h - a frame, as ports and the protocol exchange it.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_WIRE_FRAME_H
#define SW_ENGINE_WIRE_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/ip.h"
#include "engine/base/limits.h"

enum { SW_HEAD_BYTES = 54 }; /* fixed header of every frame (wire.h) */

/* Wire layout (PROTOCOL.md 1), then psn, which is not sent. */
struct sw_header {
	uint16_t magic; /* sw_header_seal sets magic, psn_low, psn_high */
	uint8_t version;
	uint8_t type;
	uint8_t flags;
	uint8_t class; /* packet number space: 0…7, or 8 for control */
	uint16_t payload_len;
	uint32_t session; /* the receiver's id: index << 16 | generation; 0:
			     none yet */
	uint32_t psn_low;
	union {
		struct { /* tensors; streams have the same common fields */
			uint32_t key;
			uint32_t round; /* number of the push_pull; END: first
					   round that fails */
			uint32_t chunk; /* index in the tensor */
			/* Tag of the call, such as the low bits of the training
			 * step; the same at all members.  Async RESULT:
			 * updates, low half. */
			uint16_t step;
			uint16_t weight; /* PUSH: local ranks summed in it;
					    RESULT: ranks summed */
			uint8_t dtype;
			uint8_t op;   /* enum sw_round_kind */
			uint16_t aux; /* PUSH, copy: the root's rank; async
					 RESULT: updates, high half */
		};
		struct { /* PUSH, RESULT and WANT of a stream */
			uint32_t key;
			uint32_t j; /* number of the stream's chunk at this
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
			 * this message; taken: number of the last message that
			 * the sender accepted. */
			uint16_t number;
			uint16_t era; /* keyed: era of results, lowest bits */
			uint8_t unused2[2];
			uint16_t taken;
		} ctl;
	};
	uint32_t consumed; /* quanta used by the sender, cumulative */
	uint32_t grant;    /* quanta granted by the sender, cumulative */
	uint16_t psn_high;
	uint32_t payload_crc __attribute__((packed));
	/* On the wire, the CRC xor the session's seed.  Before sw_header_seal
	 * and after sw_frames_open, the seed (sw_session_seed); 0 without a
	 * session. */
	uint32_t head_crc __attribute__((packed));
	uint64_t psn; /* 48 bits; unique per session, direction, class */
};

/* Source or destination of a frame. */
struct sw_path {
	struct sw_ip ip;
	uint16_t udp;    /* UDP port of the far end, host order */
	uint16_t port_i; /* index of the local port in the node's list */
};

static inline bool sw_path_is_same(
	const struct sw_path *a, const struct sw_path *b)
{
	return sw_ip_is_same(a->ip, b->ip) && a->udp == b->udp &&
	       a->port_i == b->port_i;
}

/* A received frame, borrowed until rx_release.  @data points to the sumwire
 * header.  A NIC's port places an untagged IPv4 frame so that the payload is
 * 64-byte aligned, but the engine works with any alignment. */
struct sw_rx_frame {
	const uint8_t *data;    /* SW_HEAD_BYTES at least */
	const uint8_t *payload; /* len - SW_HEAD_BYTES, anywhere */
	uint32_t len; /* header and payload: UDP length - 8, <= bytes present */
	uint16_t endpoint; /* local endpoint that it is addressed to */
	uint16_t landed;   /* lcore whose queue received it */
	bool is_lent; /* the payload is the sender's own memory, unchanged until
			 the sender has its answer */
	/* The frame arrived on the wrong lcore, and another source port may
	 * reach the right lcore. */
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
	bool is_stable;    /* true: the payload's memory stays mapped until the
			      port is told otherwise, so the port may gather it.
			      False: it may change once tx returns, so tx sends it
			      at once, or copies it */
	bool is_marked;    /* handed to another lcore: as received */
	uint8_t class;     /* 0 most urgent … 7 */
	uint16_t endpoint; /* local endpoint that sends it; set by the loop */
	uint16_t way; /* index among that endpoint's UDP ports; usually 0 */
	struct sw_path to;
};

/* Record of a frame sent under a packet number. */
struct sw_sent {
	uint64_t t_ns;
	uint64_t psn;
	uint32_t key, cell, round;
	bool is_open;    /* neither acknowledged nor declared lost */
	bool is_lost;    /* declared lost */
	uint16_t quanta; /* quanta consumed */
};

#endif
