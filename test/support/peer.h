/* peer.h - one end of a session whose frames a test writes by hand.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A peer plays a worker towards a server under test, or a server towards a
 * worker. It fills in the fields that its next frame needs: session, packet
 * number, credit, checksums. Its road carries the frame to the engine under
 * test: by a call (server_rig.c, worker_rig.c), by a call followed by the
 * server's turn (test/sim/hand.c), or through a port
 * (test/proc/proc_forge.c).
 */
#ifndef SW_TEST_SUPPORT_PEER_H
#define SW_TEST_SUPPORT_PEER_H

#include "test/support/frame.h"

enum {
	PEER_PAYLOAD = 1344,
	PEER_QUANTA = 23,              /* quanta of a full frame */
	PEER_CHUNK = PEER_PAYLOAD / 4, /* i32 elements of a full chunk */
};

struct test_peer;

struct peer_road {
	void (*send)(struct test_peer *p, const struct test_frame *f);
	/* Write the next frame of @type for @p to @out; false: none has
	 * arrived. */
	bool (*receive)(
		struct test_peer *p, uint8_t type, struct test_frame *out);
	uint32_t n_tries; /* times that peer_ask sends a question */
};

/* A peer's state, limited to what its frames need. */
struct test_peer {
	const struct peer_road *road;
	void *ctx;           /* context of the road */
	struct sw_path path; /* the address that its frames come from */
	uint64_t nonce, cookie, epoch;
	uint32_t id, session;      /* its own id and the other end's; 0: none */
	uint64_t psn[SW_N_SPACES]; /* the last number used */
	uint32_t consumed, grant;
	/* The control stream: messages built, and the number of the last
	 * message from the other end, which control frames acknowledge. */
	uint16_t n_built, n_taken;
	bool is_server;
	/* Fields of a worker: */
	struct sw_status status; /* the last one received */
	uint32_t key;            /* the first key in the last DECLARED */
	uint32_t payload;        /* the job's payload size; 0: PEER_PAYLOAD */
	/* The worker has reported what its paths carry; it does so on a STATUS
	 * with the state PROBING. */
	bool has_probed;
	/* Fields of a server: */
	uint32_t n_items; /* items in the last DECLARE */
	uint32_t next_key;
	uint8_t declared[SW_PAYLOAD_MAX]; /* the last DECLARE */
	/* A ring of the groups whose streams this DECLARE or earlier ones
	 * named. */
	struct test_group {
		char name[SW_NAME_MAX];
		uint32_t key;
	} groups[16];
	uint32_t n_groups;
	uint16_t n_local; /* local ranks of each member in STATUS; 0: 1 */
	uint16_t first;   /* the worker's first rank, as STATUS says */
};

/* peer_make - make a frame of @p and fill in all zero fields of @h. A nonzero
 * payload_crc stays, so the frame is damaged. @payload has h.payload_len
 * bytes. */
void peer_make(struct test_peer *p, struct sw_header h, const void *payload,
	struct test_frame *out);

/* peer_send - make a frame and send it. */
void peer_send(struct test_peer *p, struct sw_header h, const void *payload);

/* peer_say - send a control frame of @n bytes of @payload. */
void peer_say(struct test_peer *p, enum sw_frame_type type, const void *payload,
	size_t n);

/* peer_again - send a frame that was made before, by any peer. */
void peer_again(struct test_peer *p, const struct test_frame *f);

/* peer_learn - note what frame @f tells @p. */
void peer_learn(struct test_peer *p, const struct test_frame *f);

/* peer_paths - report, as a worker, that all paths carry @payload. */
void peer_paths(struct test_peer *p, uint32_t payload);

/* peer_ask - send @f until an answer of @type arrives, store it in @out and
 * learn from it; returns false if none arrives. */
bool peer_ask(struct test_peer *p, const struct test_frame *f, uint8_t type,
	struct test_frame *out);

/* --- worker or server --- */

/* peer_keepalive - send an accepted worker's KEEPALIVE, which confirms its
 * JOIN. */
void peer_keepalive(struct test_peer *p);

/* peer_ack - acknowledge data frames 1 to @largest of @class.
 * peer_ack_one - acknowledge only @psn. */
void peer_ack(struct test_peer *p, uint32_t class, uint64_t largest);
void peer_ack_one(struct test_peer *p, uint32_t class, uint64_t psn);

/* peer_fill - send data frame @h with @value in every payload element. */
void peer_fill(struct test_peer *p, struct sw_header h, int32_t value);

/* --- worker: call the first ones in this order; true: answered --- */

/* peer_hello - send HELLO and wait for COOKIE. */
bool peer_hello(struct test_peer *p);

/* peer_join_payload - return a complete JOIN of @rank, which the test may
 * change. */
struct sw_join peer_join_payload(const struct test_peer *p, const char *job,
	const char *node, uint32_t rank, uint16_t n_members);

/* peer_join - send JOIN and wait for ACCEPT. */
bool peer_join(struct test_peer *p, const struct sw_join *j);

/* peer_declare - send a DECLARE of one tensor and wait for DECLARED. @item has
 * no name length, and a key only if the server does not coordinate. */
bool peer_declare(
	struct test_peer *p, struct sw_declare_item item, const char *name);

/* peer_push - push a full chunk of i32 with @value in every element. */
void peer_push(struct test_peer *p, uint32_t key, uint32_t round,
	uint32_t chunk, int32_t value);
struct sw_header peer_push_header(uint32_t key, uint32_t round, uint32_t chunk);

/* peer_query - ask for one chunk. */
void peer_query(
	struct test_peer *p, uint32_t key, uint32_t round, uint32_t chunk);

/* peer_leave - send LEAVE with @err and @text. */
void peer_leave(struct test_peer *p, int err, const char *text);

/* --- server: answers to the last question --- */

void peer_cookie(struct test_peer *p);
void peer_accept(struct test_peer *p);
void peer_refuse(struct test_peer *p, int err, const char *text);
void peer_status(struct test_peer *p, enum sw_job_state state, int err,
	uint16_t size, const char *text);
void peer_declared(struct test_peer *p);
void peer_left(struct test_peer *p, bool with_session);

/* peer_result - send the result of two members: a full chunk with @value in
 * every element. */
void peer_result(struct test_peer *p, uint32_t key, uint32_t round,
	uint32_t chunk, int32_t value);
struct sw_header peer_result_header(
	uint32_t key, uint32_t round, uint32_t chunk, uint32_t n_elems);

/* peer_answer - answer a QUERY of one chunk. */
void peer_answer(struct test_peer *p, enum sw_answer_kind kind, uint32_t key,
	uint32_t round, uint32_t chunk, uint64_t missing);

#endif
