/* trace_format.h - what daemons send to sumwire trace and sumwire capture.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The reader first sends a struct sw_trace_ask.  A trace is SW_TRACE_MAGIC
 * followed by blocks.  A block is a struct sw_trace_block followed by its
 * bytes.  All fields have the byte order of the daemon's machine.  Each
 * daemon's first block is SW_TRACE_HELLO, its last block SW_TRACE_END.
 */
#ifndef SW_APPS_CLI_TRACE_FORMAT_H
#define SW_APPS_CLI_TRACE_FORMAT_H

#include <stdint.h>

#include "engine/base/limits.h"
#include "engine/wire/frame.h"

#define SW_TRACE_MAGIC "SWTRACE1"

enum {
	SW_TRACE_MAGIC_BYTES = 8,
	SW_TRACE_BLOCK_MAX = 1 << 16, /* bytes of a block */
	SW_TRACE_PEERS = 256,         /* most peers of an lcore */
	SW_TRACE_NAMES = 4096,
	SW_TRACE_NO_PEER = UINT16_MAX,
	SW_TRACE_KEPT_MAX = 1 << 14, /* most bytes of a captured frame */
};

enum { SW_TRACE_ASK_EVENTS = 1, SW_TRACE_ASK_FRAMES };

struct sw_trace_ask {
	uint32_t kind;
	uint32_t most; /* frames: most bytes to keep of each */
	uint8_t has_received, has_sent;
	uint8_t unused[6];
	/* frames: only of this job's sessions; "": all */
	char job[SW_NAME_MAX];
};

enum sw_trace_block_kind {
	SW_TRACE_HELLO = 1, /* struct sw_trace_hello */
	SW_TRACE_PEER,      /* struct sw_trace_peer of the lcore, in order */
	SW_TRACE_NAME,      /* struct sw_trace_name */
	SW_TRACE_EVENTS,    /* struct sw_trace_event of the lcore, in order */
	SW_TRACE_END,       /* empty; the daemon has sent everything */
	SW_TRACE_BUSY,      /* empty; another reader records this daemon */
	SW_TRACE_PORT,      /* a name with its NUL; ports are numbered from 0 */
	SW_TRACE_FRAMES,    /* complete frames of the lcore, in order */
};

struct sw_trace_block {
	uint32_t kind;
	/* number of the daemon in the trace; set by the reader */
	uint16_t daemon;
	uint16_t lcore;
	uint32_t bytes; /* length of the data that follow */
	/* lost by the lcore so far, because its ring was full */
	uint32_t n_dropped;
};

struct sw_trace_hello {
	char node[SW_NAME_MAX];
	char role[8];
	char boot[40]; /* boot id of the machine: identifies its clock */
	int64_t pid;
	uint64_t began_ns;
};

/* A session of an lcore. */
struct sw_trace_peer {
	char job[SW_NAME_MAX];
	uint64_t epoch;
	char address[64];
	uint32_t seed;     /* equal at both ends */
	uint16_t member;   /* number of the worker in the job */
	uint8_t is_worker; /* this end is the worker */
	uint8_t unused;
};

struct sw_trace_name {
	uint64_t epoch;
	uint32_t key;
	char name[SW_NAME_MAX];
	uint32_t is_stream;
};

enum sw_trace_kind {
	/* the lcore handled a burst; chunk: number of frames */
	SW_TRACE_RX,
	SW_TRACE_TX,     /* the lcore built a burst; chunk: number of frames */
	SW_TRACE_CALL,   /* a rank began a call; chunk: its cookie */
	SW_TRACE_DONE,   /* the agent reported the call's end; chunk: cookie */
	SW_TRACE_PUSH,   /* a worker sent a contribution */
	SW_TRACE_FOLD,   /* a server summed it */
	SW_TRACE_RESULT, /* a server sent a result */
	SW_TRACE_HOLD,   /* a worker accepted the result */
	SW_TRACE_AGAIN,  /* a duplicate contribution or result arrived */
	/* Notes of a rank's process, on lcore 0. chunk: the call's cookie;
	 * round: bytes. */
	SW_TRACE_READY,    /* it submitted a call whose data are complete */
	SW_TRACE_COPY_IN,  /* it copied into shared memory */
	SW_TRACE_COPY_OUT, /* it copied a result out of shared memory */
	SW_TRACE_KINDS
};

enum {
	SW_TRACE_COMPLETE = 1, /* FOLD: the sum is complete */
	SW_TRACE_RETX = 2,     /* a retransmission */
	SW_TRACE_ERROR = 4,    /* DONE: with an error */
	/* FOLD: complete if it is the last fold of its sum.  FOLD, HOLD:
	 * dropped or duplicate, if another event has the same piece. */
	SW_TRACE_MAYBE = 8,
	SW_TRACE_UNSURE = 16,
};

struct sw_trace_event {
	uint64_t t_ns; /* end of the event, by CLOCK_MONOTONIC */
	uint32_t ns;   /* duration */
	uint32_t key;  /* wire key of the tensor */
	/* Tensors: round and chunk.  Streams: chunk at its server, and
	 * collective. */
	uint32_t round, chunk;
	/* Index of the lcore's peer, or SW_TRACE_NO_PEER.  For calls and notes:
	 * the local rank. */
	uint16_t peer;
	uint16_t bytes;
	uint16_t step; /* a frame's tag of the call; otherwise 0 */
	uint8_t kind, flags;
};

/* A frame in the ring.  Its first bytes follow, from our header on, padded with
 * zeros to a whole number of struct sw_trace_event. */
struct sw_trace_frame {
	uint64_t t_ns; /* time at which its burst was received or built */
	struct sw_ip from, to;
	uint16_t from_udp, to_udp;
	uint32_t bytes, kept; /* header and payload: total bytes, kept bytes */
	uint16_t port;
	uint8_t is_sent, is_marked;
	uint64_t unused;
};

enum { SW_TRACE_FRAME_MAX = sizeof(struct sw_trace_frame) + SW_TRACE_KEPT_MAX };

_Static_assert(sizeof(struct sw_trace_event) == 32, "no padding");
_Static_assert(sizeof(struct sw_trace_frame) == 64, "no padding");

/* sw_trace_frame_entries - return the length of a frame, in ring entries. */
static inline uint32_t sw_trace_frame_entries(uint32_t kept)
{
	uint32_t n = sizeof(struct sw_trace_frame) + kept;

	return (n + sizeof(struct sw_trace_event) - 1) /
	       sizeof(struct sw_trace_event);
}
_Static_assert(sizeof(struct sw_trace_block) == 16, "no padding");

#endif
