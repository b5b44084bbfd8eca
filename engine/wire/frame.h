/* frame.h - a frame between a port and the protocol: bytes, and where from.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_WIRE_FRAME_H
#define SW_ENGINE_WIRE_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/limits.h"

enum { SW_HEAD_BYTES = 54 }; /* fixed header of every frame (wire.h) */

/* As it lies on the wire (PROTOCOL.md 1), but for psn, which ends it. */
struct sw_header {
	uint16_t magic; /* by sw_header_seal, as psn_low and _high */
	uint8_t version;
	uint8_t type;
	uint8_t flags;
	uint8_t class; /* packet number space: 0…7, or 8 for control */
	uint16_t payload_len;
	uint32_t session; /* receiver's: index << 16 | generation; 0 before */
	uint32_t psn_low;
	union {
		struct { /* data of a tensor, and what all data has */
			uint32_t key;
			uint32_t round;  /* counts its push_pulls; END: the
					    first that fails */
			uint32_t chunk;  /* index in the tensor */
			uint16_t step;   /* tag of the call: the training
					    step's low bits, or what else is the
					    same at all members; async RESULT:
					    updates, low half */
			uint16_t weight; /* PUSH: local ranks in it; RESULT:
					    sum of those */
			uint8_t dtype;
			uint8_t op;   /* enum sw_round_kind */
			uint16_t aux; /* PUSH, copy: the root's rank; async
					 RESULT: updates, high half */
		};
		struct { /* PUSH, RESULT and WANT of a stream */
			uint32_t key;
			uint32_t j;          /* number of the chunk there */
			uint32_t collective; /* its number */
			uint16_t tag;        /* made from count and root */
			union {
				uint16_t weight; /* as above */
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
			uint32_t left; /* LEFT: the session that is closed */
			uint32_t unused1;
			uint32_t returned; /* credit that was never used */
			/* The control stream (engine/peer/control.h): the
			 * number of this message, and that of the last message
			 * that the sender took. */
			uint16_t number;
			uint8_t unused2[4];
			uint16_t taken;
		} ctl;
	};
	uint32_t consumed; /* credit the sender has used, cumulative, quanta */
	uint32_t grant;    /* credit the sender gives, cumulative, quanta */
	uint16_t psn_high;
	uint32_t payload_crc __attribute__((packed));
	/* On the wire a CRC.  Before sw_header_seal and after sw_frames_open it
	 * is the session's seed (sw_session_seed); 0 without a session. */
	uint32_t head_crc __attribute__((packed));
	uint64_t psn; /* 48 bits; unique per session, direction, class */
};

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
	union {
		uint8_t head[SW_HEAD_BYTES]; /* encoded; copied by tx */
		struct sw_header header;     /* as it is built there */
	};
	const void *payload; /* payload_len bytes, or NULL */
	uint32_t payload_len;
	bool is_stable;    /* payload's memory stays mapped until the port is
			      told otherwise: it may be gathered.  Else tx has
			      copied it when it returns. */
	uint8_t class;     /* 0 most urgent … 7 */
	uint16_t endpoint; /* of ours, that it is from; set by the loop */
	uint16_t way;      /* which of that endpoint's UDP ports; else 0 */
	struct sw_path to;
};

/* What was sent under a packet number. */
struct sw_sent {
	uint64_t t_ns;
	uint64_t psn;
	uint32_t key, cell, round;
	bool is_open; /* neither acknowledged nor lost */
};

#endif
