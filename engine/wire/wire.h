/* wire.h - the frame: one fixed header, the control payloads, their codec.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Everything is little-endian.  A frame is what an UDP datagram carries: 54
 * bytes of header, then payload_len bytes.  54, since with Ethernet, IPv4 and
 * UDP before it (42 bytes) the payload starts at byte 96 of the frame, which a
 * port places on a 64-byte boundary.
 *
 * If you add a type: give it a row in frame_rules (wire.c), a handler in
 * server.c or worker.c, a section in PROTOCOL.md, and a case in unit_wire.c.
 */
#ifndef SW_ENGINE_WIRE_WIRE_H
#define SW_ENGINE_WIRE_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/base/stats.h"
#include "engine/wire/frame.h"
#include "sum/sum.h"

enum {
	SW_MAGIC = 0x4d53,  /* "SM" */
	SW_VERSION_MIN = 1, /* protocol versions that this code speaks */
	SW_VERSION_MAX = 1,
	SW_QUANTUM = 1024, /* bytes per unit of credit */
};

#define SW_KEY_NONE UINT32_MAX

/* A key is an index, its low bits, and a generation: whoever has an index after
 * another has a key of a later one, so that no key is used twice in a job. */
enum {
	SW_KEY_BITS = 12,
	SW_KEY_INDICES = 1 << SW_KEY_BITS,
	/* that there are; the last one has SW_KEY_NONE in it, and is not used
	 */
	SW_KEY_GENERATIONS = (1 << (32 - SW_KEY_BITS)) - 1,
};

static inline uint32_t sw_key_index(uint32_t key)
{
	return key & (SW_KEY_INDICES - 1);
}

/* Of a tensor to which its user gives no priority: its key, by which tensors
 * are in the order in which the job first declared them. */
#define SW_PRIORITY_BY_USE UINT32_MAX

static inline uint32_t sw_priority_of(uint32_t declared, uint32_t key)
{
	return declared == SW_PRIORITY_BY_USE ? key : declared;
}

/* sw_class_of - class of a tensor by its priority: 0, then 1-2, 3-6, 7-14, …
 * so that the first layers, which are waited for first, are told apart best. */
static inline uint8_t sw_class_of(uint32_t priority)
{
	uint32_t log2 = 63 - (uint32_t)__builtin_clzll(priority + 1ULL);

	return (uint8_t)(log2 < SW_N_CLASSES ? log2 : SW_N_CLASSES - 1);
}

enum sw_frame_type {
	SW_HELLO = 1,      /* worker: is somebody there?  Padded */
	SW_COOKIE = 2,     /* server: proof of address, nothing stored */
	SW_JOIN = 3,       /* worker: let me in */
	SW_ACCEPT = 4,     /* server: your session */
	SW_DECLARE = 5,    /* worker: a batch of tensors */
	SW_DECLARED = 6,   /* server: their keys */
	SW_STATUS = 7,     /* server: state of the job */
	SW_LEAVE = 8,      /* worker: I go, and why */
	SW_LEFT = 9,       /* server: your session is closed */
	SW_KEEPALIVE = 10, /* either: I am here */
	SW_ERROR = 11,     /* server: this worker cannot go on, and why */
	SW_TUNE = 12,      /* worker: other tuning for the job */
	SW_END = 13,    /* either: rounds of a tensor or group fail, and why */
	SW_CLOSE = 14,  /* either: a member is through with a stream */
	SW_PUSH = 16,   /* worker: one contribution to one chunk */
	SW_RESULT = 17, /* server: the sum of one chunk */
	SW_ACK = 18,    /* either: packet numbers received */
	SW_QUERY = 19,  /* worker: up to 64 chunks whose result is late */
	SW_ANSWER = 20, /* server: why a queried chunk has no result yet */
	SW_WANT = 21, /* worker: results of a stream that it gives nothing to */
	SW_N_TYPES = 22,
};

/* sw_type_is_data - is it numbered in the space of a class? */
static inline bool sw_type_is_data(uint8_t type)
{
	return type == SW_PUSH || type == SW_RESULT || type == SW_WANT;
}

/* sw_type_is_ordered - does it travel on the control stream of its session
 * (engine/peer/control.h), and so exactly once and in order? */
static inline bool sw_type_is_ordered(uint8_t type)
{
	const uint32_t types = 1u << SW_STATUS | 1u << SW_TUNE |
			       1u << SW_DECLARE | 1u << SW_DECLARED |
			       1u << SW_END | 1u << SW_CLOSE;

	return types >> type % 32 & 1;
}

/* The largest payload of such a message, which fits the smallest payload class.
 */
enum { SW_ORDERED_MAX = 1344 };

/* What a push_pull does with the contributions. */
enum sw_round_kind {
	SW_ROUND_SUM = 0,
	SW_ROUND_COPY = 1, /* broadcast: the root's bytes, unchanged */
	SW_N_ROUND_KINDS = 2,
};

/* Of a tensor: a sum per round, or a value that the servers keep (async.h).
 * Of a job: may it have such tensors, and go on without members that died? */
enum sw_mode {
	SW_MODE_SYNC = 0,
	SW_MODE_ASYNC = 1,
	SW_MODE_STREAM = 2, /* of no job: collectives (coll.h) */
	SW_N_MODES = 3,
};

/* sw_mode_name - "synchronous", "asynchronous". */
const char *sw_mode_name(uint32_t mode);

enum sw_frame_flag {
	SW_FLAG_NO_CRC = 1, /* data payload without CRC (job option) */
	SW_FLAG_RETX = 2,   /* sent before; for counters only */
	SW_FLAG_FIFO = 4,   /* PUSH: results go as they become ready */
	/* PUSH, 0…15 times this: how much more its sender has to push there,
	 * as the number of binary digits of that many quanta. */
	SW_FLAG_BACKLOG = 16,
};

static inline uint8_t sw_backlog_flags(uint64_t quanta)
{
	uint32_t digits = quanta ? 64 - (uint32_t)__builtin_clzll(quanta) : 0;

	return (uint8_t)(SW_FLAG_BACKLOG * (digits < 15 ? digits : 15));
}

/* sw_flags_backlog - the most that it can have been, up to 2^15. */
static inline uint32_t sw_flags_backlog(uint8_t flags)
{
	return (1u << flags / SW_FLAG_BACKLOG) - 1;
}

enum {
	SW_HEAD_COVERED = 50, /* bytes of it that its CRC covers */
	SW_PLACE_BYTES = 12,  /* of key, round and chunk */
};

/* sw_session_seed - bind the headers of a session to it: 32 bits of the nonce
 * of its JOIN, which both ends have before its first frame.  The CRC of a
 * header travels xor this seed; the receiver compares what is left of both CRCs
 * with the seed of the session that it found.  So a frame of an earlier run, or
 * of an earlier session with the same id, is as a damaged one. */
static inline uint32_t sw_session_seed(uint64_t nonce)
{
	return (uint32_t)(nonce ^ nonce >> 32);
}

/* sw_header_seal - fill in the fields that follow from the others; head_crc is
 * the seed. */
static inline void sw_header_seal(struct sw_header *h)
{
	h->magic = SW_MAGIC;
	h->psn_low = (uint32_t)h->psn;
	h->psn_high = (uint16_t)(h->psn >> 32);
	h->head_crc ^= sw_crc32c(0, h, SW_HEAD_COVERED);
}

/* sw_epoch_seed - 32 bits of a job's epoch, for the CRCs of its payloads: the
 * runs of a job on the same ports have different ones. */
static inline uint32_t sw_epoch_seed(uint64_t epoch)
{
	return (uint32_t)(epoch ^ epoch >> 32);
}

/* sw_data_crc - CRC32C of a data payload, seeded with its place in the job
 * (key, round and chunk, as they lie in @h) and with @seed, the run's
 * (sw_epoch_seed), so that intact bytes in the wrong place or of an earlier run
 * fail, too.  To go on from a seed is the same as to add it to the key. */
static inline uint32_t sw_data_crc(uint32_t seed, const struct sw_header *h,
	const void *payload, uint32_t len)
{
	return sw_crc32c_both(seed, &h->key, SW_PLACE_BYTES, payload, len);
}

/* sw_data_crc_far - the same, of bytes that others wrote: those of a frame that
 * came, those of a client. */
static inline uint32_t sw_data_crc_far(uint32_t seed, const struct sw_header *h,
	const void *payload, uint32_t len)
{
	return sw_crc32c_both_far(seed, &h->key, SW_PLACE_BYTES, payload, len);
}

/* sw_frames_open - what each of a burst must pass before anybody asks whose it
 * is: its own consistency, and the payload's CRC if it is a control frame.
 * Nothing outside it is read.  Fills @heads and counts them; type 0: it is
 * dropped, and why is counted.  The header's CRC is not judged yet: head_crc
 * becomes the seed that the frame was sealed with, which its session must have.
 * HELLO and JOIN of any version pass: JOIN carries the range of versions, and
 * is answered by an error that names both.  The frames are in no cache of this
 * core yet, so it reads all headers before it handles the first frame, while
 * the next ones are fetched. */
void sw_frames_open(const struct sw_rx_frame *frames, uint32_t n,
	struct sw_header *heads, struct sw_stats *st);

/* sw_frame_fill - a frame for a port, whose header is filled in but for the
 * version, the payload's CRC where it is a control frame's, and what
 * sw_header_seal adds.  @payload as in sw_tx_frame.
 * sw_frames_note - count @n frames of so many bytes with their headers.
 * sw_frame_build - both. */
static inline void sw_frame_fill(struct sw_tx_frame *out, struct sw_path to,
	const void *payload, bool is_stable)
{
	struct sw_header *h = &out->header;

	h->version = SW_VERSION_MAX;
	if (h->class == SW_CLASS_CTL)
		h->payload_crc = sw_crc32c(0, payload, h->payload_len);
	sw_header_seal(h);
	out->payload = payload;
	out->payload_len = h->payload_len;
	out->is_stable = is_stable;
	out->way = 0;
	out->class = h->class == SW_CLASS_CTL ? 0 : h->class;
	out->to = to;
}

static inline void sw_frames_note(
	struct sw_stats *st, uint32_t n, uint64_t bytes)
{
	sw_count(&st->tx_frames, n);
	sw_count(&st->tx_bytes, bytes);
}

static inline void sw_frame_build(struct sw_tx_frame *out, struct sw_path to,
	const void *payload, bool is_stable, struct sw_stats *st)
{
	sw_frame_fill(out, to, payload, is_stable);
	sw_frames_note(st, 1, SW_HEAD_BYTES + out->payload_len);
}

/* Control payloads, as they lie on the wire.  They are copied in and out with
 * memcpy; the header's payload_crc covers them (plain CRC32C). */
struct sw_hello {
	uint64_t nonce;  /* worker's; echoed */
	uint8_t pad[56]; /* no answer is larger than its question */
};

struct sw_cookie {
	uint64_t nonce;
	uint64_t cookie;
	uint8_t landed;       /* lcore on which the HELLO landed */
	uint8_t is_misrouted; /* another source port may lead to the right one
			       */
	uint8_t pad[6];
};

struct sw_join {
	uint64_t nonce;
	uint64_t cookie;
	uint64_t pad1;
	uint64_t epoch;   /* 0 for the coordinator, else what it said */
	uint32_t session; /* worker's, for the frames that it receives */
	uint8_t version_min, version_max;
	uint16_t rank, n_members, n_local;
	uint16_t server_i, n_servers; /* the receiver's place in the list */
	uint16_t payload;             /* payload class */
	uint8_t has_crc;
	uint8_t pad0;
	char job[SW_NAME_MAX];
	char node[SW_NAME_MAX];
	uint16_t n_colocated;  /* servers on the workers' machines */
	uint8_t policy;        /* enum sw_policy_id */
	uint8_t n_lcores;      /* servers that are one process; 0: each is */
	uint64_t credit_bytes; /* of a member; 0: the policy's */
	uint8_t mode;          /* enum sw_mode */
	uint8_t is_by_rank;    /* streams are summed in order of members */
	uint16_t first;        /* 1 + rank of its local rank 0, as the
				  coordinator said; 0: not said */
	uint8_t pad[44];
};

struct sw_accept {
	uint64_t nonce;
	uint32_t session; /* server's, for the frames that it receives */
	uint8_t version, pad[3];
};

enum sw_job_state { SW_JOB_FORMING, SW_JOB_RUNNING, SW_JOB_FAILED };

struct sw_status {
	uint64_t joined; /* members that have joined */
	uint8_t state;
	uint8_t policy; /* of the tuning below, enum sw_policy_id */
	int16_t err;
	uint16_t rank;  /* FAILED: whose fault */
	uint16_t size;  /* RUNNING: sum of n_local */
	uint16_t first; /* RUNNING: rank of the receiver's local rank 0 */
	uint16_t pad1;
	char text[SW_TEXT_MAX];
	/* The newest tuning of the job; number 0: those of the JOINs. */
	uint32_t number;
	uint64_t part_bytes, credit_bytes; /* 0: the policy's */
	uint64_t epoch;                    /* of the job */
	uint16_t n_local[SW_MAX_MEMBERS];  /* RUNNING: of each member */
};

struct sw_tune_ask { /* TUNE */
	uint8_t policy, pad[7];
	uint64_t part_bytes, credit_bytes; /* 0: the policy's */
};

struct sw_fault {       /* ERROR, LEAVE, END; CLOSE: err 0, or why it ended */
	uint64_t nonce; /* of a refused JOIN, else 0 */
	int16_t err;
	uint16_t rank;
	uint32_t key; /* or SW_KEY_NONE */
	char text[SW_TEXT_MAX];
};

/* sw_fault_death - the reason in an END: a member aborted, a server refused, a
 * member is gone, nothing progressed, a member's timeout passed; or, for any
 * other @err, the members differ. */
static inline int sw_fault_death(int err)
{
	return err == SW_EABORTED || err == SW_EREFUSED || err == SW_EPEER ||
			       err == SW_ESTALL || err == SW_EEXPIRED
		       ? err
		       : SW_EMISMATCH;
}

/* Items in a DECLARE: so many names a turn of a server looks up. */
enum { SW_DECLARE_MAX = 64 };

struct sw_declare_head {
	uint16_t n, pad[3];
};

struct sw_declare_item {
	union {
		struct { /* of a tensor, and what all items have */
			uint64_t n_elems;
			uint32_t key;      /* SW_KEY_NONE: coordinator, assign
					      one */
			uint32_t first;    /* as the coordinator answered; to it
					      0 */
			uint32_t priority; /* or SW_PRIORITY_BY_USE */
			uint8_t dtype;
			uint8_t mode;      /* enum sw_mode */
			uint16_t name_len; /* 1…127; the name follows, no NUL,
					      no padding */
		};
		struct {                  /* of a stream */
			uint64_t members; /* of the group, a bit each */
			uint32_t key;
			uint32_t ranks_crc; /* CRC32C of the group's ranks */
			uint32_t priority;
			uint8_t window_log2; /* of its slots, 4…10 */
			uint8_t mode;
			uint16_t name_len;
		} stream;
	};
};

struct sw_declared {
	uint16_t n;
	/* The last one is, by an error of this number without its sign, and the
	 * batch ends with it; 0: none. */
	uint16_t refused;
	uint16_t pad[2];
	/* n keys, then n firsts (engine/sched/place.h) follow, uint32_t each;
	 * then, if one is refused, SW_TEXT_MAX bytes that say why */
};

enum { SW_SACK_WORDS = 4, SW_SACK_BITS = 256 };

struct sw_sack {          /* an ACK holds one per space with new frames */
	uint64_t largest; /* highest packet number received */
	uint64_t bits[SW_SACK_WORDS]; /* bit i: largest - 1 - i received */
	uint8_t class, pad;
	uint16_t delay_us; /* since largest came */
	uint16_t gap_us;   /* longest recent gap in the receiver's polling */
	uint16_t pad1;
};

enum sw_answer_kind {
	SW_ANSWER_WAIT, /* folded, others are missing */
	SW_ANSWER_NEED, /* not folded: push again, whatever was ACKed */
	SW_ANSWER_GONE, /* no longer kept: you hold it, or you never will */
	SW_ANSWER_CRC,  /* your push was refused by its payload's CRC */
	SW_ANSWER_BASE, /* of a stream: how far its window is */
};

struct sw_query { /* a QUERY holds up to 64 */
	uint32_t key, round, chunk;
};

struct sw_answer {        /* an ANSWER holds up to 64 */
	uint64_t missing; /* WAIT: members whose contribution is not there */
	uint32_t key, round;
	uint32_t chunk; /* of a stream: base */
	uint8_t kind, pad[3];
};

enum {
	SW_QUERY_MAX = 64,
	SW_WANT_MAX = 64, /* chunks, one behind the other */
};

_Static_assert(sizeof(struct sw_hello) >= sizeof(struct sw_cookie), "I5");
_Static_assert(sizeof(struct sw_join) >= sizeof(struct sw_accept), "I5");
_Static_assert(sizeof(struct sw_join) >= sizeof(struct sw_fault), "I5");
_Static_assert(sizeof(struct sw_join) == 368, "no holes");
_Static_assert(sizeof(struct sw_cookie) == 24, "no holes");
_Static_assert(sizeof(struct sw_accept) == 16, "no holes");
_Static_assert(sizeof(struct sw_status) == 336, "no holes");
_Static_assert(sizeof(struct sw_tune_ask) == 24, "no holes");
_Static_assert(sizeof(struct sw_fault) == 176, "no holes");
_Static_assert(sizeof(struct sw_declare_item) == 24, "no holes");
_Static_assert(sizeof(struct sw_sack) == 48, "no holes");
_Static_assert(sizeof(struct sw_answer) == 24, "no holes");

#endif
