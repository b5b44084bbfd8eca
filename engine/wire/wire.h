/* wire.h - the frame: one fixed header, the control payloads, their codec.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Everything is little-endian. A UDP datagram carries one frame: 54 bytes of
 * header, then payload_len bytes. With Ethernet, IPv4 and UDP (42 bytes) before
 * the header, the payload starts at byte 96 of the frame, which a port places
 * on a 64-byte boundary.
 *
 * If you add a type: add a row to frame_rules (wire.c), a handler in the server
 * (server_rx.c) or the worker, a section to PROTOCOL.md, and a case to
 * unit_wire.c. */
#ifndef SW_ENGINE_WIRE_WIRE_H
#define SW_ENGINE_WIRE_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/base/stats.h"
#include "engine/wire/fault.h"
#include "engine/wire/frame.h"
#include "engine/keys/seal.h"
#include "sum/sum.h"

enum {
	SW_MAGIC = 0x4d53,  /* "SM" */
	SW_VERSION_MIN = 1, /* protocol versions that this code speaks */
	SW_VERSION_MAX = 1,
	/* Bytes of a quantum, the unit of credit: 65 on the wire.  In the
	 * largest frame, 64 of these are payload. */
	SW_QUANTUM = 64,
	SW_QUANTUM_WIRE = 65,
	/* Least quanta of a frame with a payload: a receiver's buffers hold
	 * fewer small frames than their bytes suggest. */
	SW_QUANTA_MIN = 16,
	/* Bytes of a frame on the wire besides its payload: headers, preamble,
	 * gap. */
	SW_WIRE_REST_BYTES = 120,
};

/* Data frames that an engine sends to one peer in a row.  They share the
 * decision, the lookups and the pass that computes their tags. */
enum { SW_RUN = 16 };

#define SW_KEY_NONE UINT32_MAX

/* The low bits of a key are an index, the high bits a generation.  Each new
 * user of an index gets a later generation, so that a job never reuses a key.
 */
enum {
	SW_KEY_BITS = 12,
	SW_KEY_INDICES = 1 << SW_KEY_BITS,
	/* generations; SW_KEY_NONE is in the last one, which is unused */
	SW_KEY_GENERATIONS = (1 << (32 - SW_KEY_BITS)) - 1,
};

static inline uint32_t sw_key_index(uint32_t key)
{
	return key & (SW_KEY_INDICES - 1);
}

/* Priority of a tensor without a given priority: its key, so that tensors go in
 * the order in which the job first declared them. */
#define SW_PRIORITY_BY_USE UINT32_MAX

static inline uint32_t sw_priority_of(uint32_t declared, uint32_t key)
{
	return declared == SW_PRIORITY_BY_USE ? key : declared;
}

/* sw_class_of - return the class for a priority: 0, 1-2, 3-6, 7-14, … So
 * classes are finest for the first layers, whose results are needed first. */
static inline uint8_t sw_class_of(uint32_t priority)
{
	uint32_t log2 = 63 - (uint32_t)__builtin_clzll(priority + 1ULL);

	return (uint8_t)(log2 < SW_N_CLASSES ? log2 : SW_N_CLASSES - 1);
}

enum sw_frame_type {
	SW_HELLO = 1,      /* worker: request a cookie; padded */
	SW_COOKIE = 2,     /* server: proof of address, nothing stored */
	SW_JOIN = 3,       /* worker: join a job */
	SW_ACCEPT = 4,     /* server: session opened */
	SW_DECLARE = 5,    /* worker: a batch of tensors */
	SW_DECLARED = 6,   /* server: their keys */
	SW_STATUS = 7,     /* server: state of the job */
	SW_LEAVE = 8,      /* worker: leave, with a reason */
	SW_LEFT = 9,       /* server: session closed */
	SW_KEEPALIVE = 10, /* either: still alive */
	SW_ERROR = 11,     /* server: fatal error for this worker, with a
			      reason */
	SW_TUNE = 12,      /* worker: new tuning for the job */
	SW_END = 13,       /* either: rounds of a tensor or group fail */
	SW_CLOSE = 14,     /* either: a member has closed a stream */
	SW_PATHS = 15,     /* worker: the payload that its paths carry */
	SW_PUSH = 16,      /* worker: one contribution to one chunk */
	SW_RESULT = 17,    /* server: the sum of one chunk */
	SW_ACK = 18,       /* either: packet numbers received */
	SW_QUERY = 19,     /* worker: ask for up to 64 late results */
	SW_ANSWER = 20,    /* server: why a queried chunk has no result yet */
	SW_WANT = 21,  /* worker: ask for results of a stream, give no bytes */
	SW_PROBE = 22, /* either: test if the path carries this size */
	SW_N_TYPES = 23,
};

/* sw_type_is_data - return whether frames of @type are numbered in the space of
 * a class. */
static inline bool sw_type_is_data(uint8_t type)
{
	return type == SW_PUSH || type == SW_RESULT || type == SW_WANT;
}

/* sw_type_is_ordered - return whether @type travels on the control stream of
 * its session (engine/peer/control.h), exactly once and in order. */
static inline bool sw_type_is_ordered(uint8_t type)
{
	const uint32_t types = 1u << SW_STATUS | 1u << SW_TUNE |
			       1u << SW_DECLARE | 1u << SW_DECLARED |
			       1u << SW_END | 1u << SW_CLOSE | 1u << SW_PATHS;

	return types >> type % 32 & 1;
}

/* Largest payload of an ordered message. */
enum { SW_ORDERED_MAX = SW_PAYLOAD_MIN };

/* Operation of a push_pull round. */
enum sw_round_kind {
	SW_ROUND_SUM = 0,
	SW_ROUND_COPY = 1, /* broadcast: the root's bytes, unchanged */
	SW_N_ROUND_KINDS = 2,
};

/* Of a tensor: a sum per round, or a value that the servers keep (async.h).  Of
 * a job: whether it may have asynchronous tensors and continues without members
 * that have died. */
enum sw_mode {
	SW_MODE_SYNC = 0,
	SW_MODE_ASYNC = 1,
	SW_MODE_STREAM = 2, /* streams (coll.h), not jobs */
	SW_N_MODES = 3,
};

/* sw_mode_name - return "synchronous" or "asynchronous". */
const char *sw_mode_name(uint32_t mode);

enum sw_frame_flag {
	SW_FLAG_NO_CRC = 1, /* data payload without CRC (job option) */
	SW_FLAG_RETX = 2,   /* retransmitted; for counters only */
	SW_FLAG_ACK = 4,    /* data: acknowledge at once */
	SW_FLAG_CIPHER = 8, /* encrypted payload; only for observers */
	/* PUSH: unit of the backlog field, 0…15: the number of binary digits of
	 * the quanta left to push on this flow. */
	SW_FLAG_BACKLOG = 16,
	/* RESULT, encrypted: unit of the field with the lowest 4 bits of its
	 * key's era. */
	SW_FLAG_ERA = 16,
};

/* sw_quanta - return the quanta of a frame with @bytes of payload, from its
 * length on the wire.  A frame without payload costs none. */
static inline uint32_t sw_quanta(uint32_t bytes)
{
	uint32_t n = (bytes + SW_WIRE_REST_BYTES + SW_QUANTUM_WIRE - 1) /
		     SW_QUANTUM_WIRE;

	if (!bytes)
		return 0;
	return n > SW_QUANTA_MIN ? n : SW_QUANTA_MIN;
}

static inline uint8_t sw_backlog_flags(uint64_t quanta)
{
	uint32_t digits = quanta ? 64 - (uint32_t)__builtin_clzll(quanta) : 0;

	return (uint8_t)(SW_FLAG_BACKLOG * (digits < 15 ? digits : 15));
}

/* sw_flags_backlog - return the largest backlog in quanta that @flags can mean,
 * below 2^15 (2 MiB). */
static inline uint32_t sw_flags_backlog(uint8_t flags)
{
	return (1u << flags / SW_FLAG_BACKLOG) - 1;
}

enum {
	SW_HEAD_COVERED = 50, /* header bytes that its CRC covers */
	SW_PLACE_BYTES = 12,  /* bytes of key, round and chunk */
};

/* sw_session_seed - return the seed that binds headers to a session: 32 bits of
 * the nonce of its JOIN, which both ends know before the session's first frame.
 * A header carries its CRC xor the seed, and the receiver compares the
 * remainder with the session's seed.  So the receiver drops frames of an
 * earlier run, or of an earlier session with the same id, like damaged frames.
 */
static inline uint32_t sw_session_seed(uint64_t nonce)
{
	return (uint32_t)(nonce ^ nonce >> 32);
}

/* sw_header_seal - fill in magic, psn_low, psn_high and head_crc, which must
 * hold the seed.
 * sw_header_fill - fill in these fields, except head_crc. */
static inline void sw_header_fill(struct sw_header *h)
{
	h->magic = SW_MAGIC;
	h->psn_low = (uint32_t)h->psn;
	h->psn_high = (uint16_t)(h->psn >> 32);
}

static inline void sw_header_seal(struct sw_header *h)
{
	sw_header_fill(h);
	h->head_crc ^= sw_crc32c(0, h, SW_HEAD_COVERED);
}

/* sw_epoch_seed - return 32 bits of a job's epoch.  They seed the CRCs of the
 * job's payloads, so that runs of a job on the same ports differ. */
static inline uint32_t sw_epoch_seed(uint64_t epoch)
{
	return (uint32_t)(epoch ^ epoch >> 32);
}

/* sw_data_crc - return the CRC32C of a data payload, seeded with the run's
 * @seed (sw_epoch_seed) and its place in the job (key, round and chunk of @h).
 * So intact bytes in the wrong place or of an earlier run fail the check.
 * Seeding is equivalent to adding @seed to the key. */
static inline uint32_t sw_data_crc(uint32_t seed, const struct sw_header *h,
	const void *payload, uint32_t len)
{
	return sw_crc32c_both(seed, &h->key, SW_PLACE_BYTES, payload, len);
}

/* sw_data_crc_far - like sw_data_crc, for bytes outside this core's cache: of a
 * received frame or a client. */
static inline uint32_t sw_data_crc_far(uint32_t seed, const struct sw_header *h,
	const void *payload, uint32_t len)
{
	return sw_crc32c_both_far(seed, &h->key, SW_PLACE_BYTES, payload, len);
}

/* sw_frames_open - check each frame of a burst before the lookup of its
 * session: its own consistency, and a control frame's payload CRC.  Fills
 * @heads; type 0: dropped, and the reason counted.  The caller must still check
 * the header's CRC: sets head_crc to the seed that the frame was sealed with.
 * HELLO and JOIN of any version pass: JOIN carries the range of versions, so
 * that the server can answer with an error that names both ranges.  Reads all
 * headers before the caller handles the first frame, and prefetches ahead,
 * because the frames are in no cache of this core yet.
 * @is_raw  at an engine with keys, where the session decides whether its frames
 *          have CRCs or a tag: check neither */
void sw_frames_open(const struct sw_rx_frame *frames, uint32_t n,
	struct sw_header *heads, bool is_raw, struct sw_stats *st);

/* sw_frame_judge - check a frame with CRCs that was opened raw, once its
 * session is known.  False: the payload's CRC is wrong. */
bool sw_frame_judge(const struct sw_rx_frame *f, struct sw_header *h);

/* sw_frame_fill - complete a frame for a port.  The caller has filled in the
 * header, except the version, the fields of sw_header_seal, and a control
 * frame's payload CRC.  @payload is as in sw_tx_frame.
 * sw_frames_note - count @n frames of @bytes including their headers.
 * sw_frame_build - do both. */
static inline void sw_frame_address(struct sw_tx_frame *out, struct sw_path to,
	const void *payload, bool is_stable)
{
	const struct sw_header *h = &out->header;

	out->payload = payload;
	out->payload_len = h->payload_len;
	out->is_stable = is_stable;
	out->way = 0;
	out->class = h->class == SW_CLASS_CTL ? 0 : h->class;
	out->to = to;
}

static inline void sw_frame_fill(struct sw_tx_frame *out, struct sw_path to,
	const void *payload, bool is_stable)
{
	struct sw_header *h = &out->header;

	h->version = SW_VERSION_MAX;
	sw_frame_address(out, to, payload, is_stable);
	if (h->class == SW_CLASS_CTL)
		h->payload_crc = sw_crc32c(0, payload, h->payload_len);
	sw_header_seal(h);
}

/* sw_frame_fill_data - do so for a data frame; payload and is_stable must be
 * set. */
static inline void sw_frame_fill_data(
	struct sw_tx_frame *out, struct sw_path to, uint16_t way)
{
	struct sw_header *h = &out->header;

	h->version = SW_VERSION_MAX;
	out->payload_len = h->payload_len;
	out->way = way;
	out->class = h->class;
	out->to = to;
	sw_header_seal(h);
}

/* Up to SW_RUN frames of one keyed session, which get their tags in one pass.
 */
struct sw_tagging {
	struct sw_seal *seal;
	uint32_t n;
	struct sw_tx_frame *frames[SW_RUN];
	uint8_t blocks[SW_RUN][SW_PRF_BYTES]; /* bytes that tags cover */
};

/* sw_frame_seal - complete a frame of a keyed session, except its tag:
 * sw_frames_tag puts the tag in place of both CRCs.  Returns where the caller
 * must write the hash of the payload, SW_POLYVAL_BLOCK bytes. */
static inline uint8_t *sw_frame_seal(struct sw_tx_frame *out, struct sw_path to,
	const void *payload, bool is_stable, struct sw_tagging *t)
{
	struct sw_header *h = &out->header;

	h->version = SW_VERSION_MAX;
	sw_header_fill(h);
	sw_frame_address(out, to, payload, is_stable);
	t->frames[t->n] = out;
	return t->blocks[t->n++] + SW_SEAL_HASH_AT;
}

static inline void sw_frames_tag(struct sw_tagging *t)
{
	struct sw_seal *seal = t->seal;
	uint64_t tags[SW_RUN];

	/* Not earlier: wide loads stall on the narrow stores to a header. */
	for (uint32_t i = 0; i < t->n; i++)
		sw_seal_block(
			t->blocks[i], t->frames[i]->head, seal->direction);
	sw_prf_tags(&seal->tx, (const uint8_t(*)[SW_PRF_BYTES])t->blocks, t->n,
		tags);
	for (uint32_t i = 0; i < t->n; i++)
		memcpy(t->frames[i]->head + SW_SEAL_HEAD_BYTES, &tags[i],
			sizeof(tags[i]));
	t->n = 0;
}

/* sw_frame_tag - complete one frame, with the hash key of its direction. */
static inline void sw_frame_tag(struct sw_tx_frame *out, struct sw_path to,
	const void *payload, bool is_stable, struct sw_seal *seal)
{
	struct sw_tagging t; /* large: do not zero its blocks */

	t.seal = seal;
	t.n = 0;
	sw_polyval(&seal->tx_hash, payload, out->header.payload_len,
		sw_frame_seal(out, to, payload, is_stable, &t));
	sw_frames_tag(&t);
}

/* sw_tagging_for - begin frames of the session with @seal, which may be NULL:
 * complete those of another session. */
static inline void sw_tagging_for(struct sw_tagging *t, struct sw_seal *seal)
{
	if (t->n && t->seal != seal)
		sw_frames_tag(t);
	t->seal = seal;
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

/* Control payloads in wire layout. Code copies them with memcpy; the header's
 * payload_crc (plain CRC32C) covers them. */
struct sw_hello {
	uint64_t nonce;  /* worker's; echoed */
	uint64_t key_id; /* id of the sender's secret; 0: none */
	uint8_t mac[16]; /* under that secret */
	/* A question (PROTOCOL.md, section 14.8): does the server still know
	 * its session of this id at its UDP port @udp?  0: no question. */
	uint32_t session;
	uint16_t udp;
	uint8_t pad[26]; /* an answer is never larger than its request */
};

/* In the answer to a HELLO with a good MAC, a MAC of 16 bytes follows. */
struct sw_cookie {
	uint64_t nonce;
	uint64_t cookie;
	uint8_t landed;       /* lcore that received the HELLO */
	uint8_t is_misrouted; /* another source port may reach the right lcore
			       */
	uint8_t pad[2];
	uint32_t unknown; /* the session that the HELLO asked about, if unknown
			     to the server; else 0 */
};

struct sw_join {
	uint64_t nonce;
	uint64_t cookie;
	uint64_t key_id;  /* 0: none; else the fields below are sealed
			     (engine/peer/handshake.h) */
	uint64_t epoch;   /* 0 to the coordinator, else the coordinator's */
	uint32_t session; /* worker's id, in frames to the worker */
	uint8_t version_min, version_max;
	uint16_t member, n_members, n_local;
	uint16_t server_i, n_servers; /* the receiver's place in the list */
	uint16_t payload;             /* the largest that the node carries */
	uint8_t has_crc;
	uint8_t is_encrypted; /* 1: payloads are encrypted */
	char job[SW_NAME_MAX];
	char node[SW_NAME_MAX];
	uint16_t n_colocated;  /* servers on the workers' machines */
	uint8_t policy;        /* enum sw_policy_id */
	uint8_t n_lcores;      /* servers per process; 0: one */
	uint64_t credit_bytes; /* credit of a member; 0: the policy's */
	uint8_t mode;          /* enum sw_mode */
	uint8_t is_by_rank;    /* sum streams in the order of members */
	uint16_t first;        /* 1 + rank of its local rank 0, from the
				  coordinator; 0: unknown */
	uint8_t is_trusted;    /* 1: no keys, because of the worker's port */
	uint8_t pad[43];
};

struct sw_accept {
	uint64_t nonce;
	uint32_t session; /* server's id, in frames to the server */
	uint8_t version;
	uint8_t is_encrypted; /* as in the JOIN */
	uint16_t payload;     /* the largest that the server's port carries */
};

enum sw_job_state {
	SW_JOB_FORMING,
	SW_JOB_RUNNING,
	SW_JOB_FAILED,
	SW_JOB_PROBING, /* all have joined, and probe their paths */
};

struct sw_status {
	uint64_t joined; /* members that have joined */
	uint8_t state;
	uint8_t policy;   /* policy of the tuning below, enum sw_policy_id */
	uint16_t member;  /* with why: the member at fault */
	uint16_t size;    /* PROBING, RUNNING: sum of n_local */
	uint16_t first;   /* likewise: rank of the receiver's local rank 0 */
	uint16_t payload; /* RUNNING: bytes of a full chunk */
	uint16_t pad;
	/* Newest tuning of the job; number 0: the tuning of the JOINs. */
	uint32_t number;
	uint64_t part_bytes, credit_bytes; /* 0: the policy's */
	uint64_t epoch;                    /* of the job */
	uint16_t n_local[SW_MAX_MEMBERS];  /* PROBING, RUNNING: each member's */
	/* FAILED: the reason; RUNNING: the fault of the last death, if any;
	 * FORMING: the text names the missing members. */
	struct sw_fault why;
};

struct sw_paths { /* PATHS */
	uint16_t payload, pad[3];
};

struct sw_tune_ask { /* TUNE */
	uint8_t policy, pad[7];
	uint64_t part_bytes, credit_bytes; /* 0: the policy's */
};

/* Items in a DECLARE; a server looks up this many names per turn. */
enum { SW_DECLARE_MAX = 64 };

struct sw_declare_head {
	uint16_t n;
	uint16_t payload; /* the job's, which a server may learn from here */
	uint16_t pad[2];
};

struct sw_declare_item {
	union {
		struct { /* tensor; stream has the same common fields */
			uint64_t n_elems;
			uint32_t key;   /* SW_KEY_NONE: the coordinator
					   assigns one */
			uint32_t first; /* as the coordinator answered; to the
					   coordinator 0 */
			uint32_t priority; /* or SW_PRIORITY_BY_USE */
			uint8_t dtype;
			uint8_t mode;      /* enum sw_mode */
			uint16_t name_len; /* 1…127; the name follows, no NUL,
					      no padding */
		};
		struct {                  /* stream */
			uint64_t members; /* members of the group, as bits */
			uint32_t key;
			union {
				/* To the coordinator: CRC32C of the group's
				 * ranks.  To other servers: the group's id,
				 * which is the key of its first stream. */
				uint32_t ranks_crc, group;
			};
			uint32_t priority;
			uint8_t window_log2; /* log2 of its slots, 4…10 */
			uint8_t mode;
			uint16_t name_len;
		} stream;
	};
};

struct sw_declared {
	uint16_t n;
	/* 1: the server refused the last of the n items, which ends the batch.
	 */
	uint16_t is_refused;
	uint16_t pad[2];
	/* n keys and n firsts (engine/sched/place.h) follow, uint32_t each;
	 * then, if refused, a struct sw_fault */
};

enum { SW_SACK_WORDS = 4, SW_SACK_BITS = 256 };

struct sw_sack {          /* an ACK holds one per space with new frames */
	uint64_t largest; /* highest packet number received */
	uint64_t bits[SW_SACK_WORDS]; /* bit i: largest - 1 - i received */
	uint8_t class, pad;
	uint16_t delay_us; /* since the largest arrived */
	uint16_t gap_us;   /* longest recent gap in the receiver's polling */
	uint16_t n_marked; /* marked frames received in the space, cumulative */
};

enum sw_answer_kind {
	SW_ANSWER_WAIT, /* folded; other members are missing */
	SW_ANSWER_NEED, /* not folded: push again, even if it was ACKed */
	SW_ANSWER_GONE, /* released: the member has the result, or will never
			   get it */
	SW_ANSWER_CRC,  /* the push failed its payload's CRC */
	SW_ANSWER_BASE, /* stream: the base of its window */
};

struct sw_query { /* a QUERY holds up to 64 */
	uint32_t key, round, chunk;
};

struct sw_answer {        /* an ANSWER holds up to 64 */
	uint64_t missing; /* WAIT: members that have not contributed */
	uint32_t key, round;
	uint32_t chunk; /* stream: base */
	uint8_t kind, pad[3];
};

enum {
	SW_QUERY_MAX = 64,
	SW_WANT_MAX = 64, /* consecutive chunks */
};

_Static_assert(sizeof(struct sw_hello) >= sizeof(struct sw_cookie), "I5");
_Static_assert(sizeof(struct sw_join) >= sizeof(struct sw_accept), "I5");
_Static_assert(sizeof(struct sw_join) >= sizeof(struct sw_fault), "I5");
_Static_assert(sizeof(struct sw_join) == 368, "no holes");
_Static_assert(sizeof(struct sw_hello) == 64, "no holes");
_Static_assert(sizeof(struct sw_cookie) == 24, "no holes");
_Static_assert(sizeof(struct sw_accept) == 16, "no holes");
_Static_assert(sizeof(struct sw_status) == 440, "no holes");
_Static_assert(sizeof(struct sw_tune_ask) == 24, "no holes");
_Static_assert(sizeof(struct sw_declare_item) == 24, "no holes");
_Static_assert(sizeof(struct sw_sack) == 48, "no holes");
_Static_assert(sizeof(struct sw_answer) == 24, "no holes");

#endif
