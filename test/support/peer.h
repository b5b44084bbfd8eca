/* peer.h - one end of a session, whose every frame a test writes by hand.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A peer is a worker to a server under test, or a server to a worker.  It fills
 * in what its next frame must carry: session, packet number, credit, checksums.
 * Its road takes the frame to the engine under test: a call (server_rig.c,
 * worker_rig.c), a call with the server's turn after it (test/sim/hand.c), or
 * a port (test/proc/proc_forge.c).
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
	/* A frame of @type to @p goes to @out; false: none has come. */
	bool (*receive)(
		struct test_peer *p, uint8_t type, struct test_frame *out);
	uint32_t n_tries; /* so often a question is sent */
};

/* A peer's state, as far as its frames need it. */
struct test_peer {
	const struct peer_road *road;
	void *ctx;           /* of the road */
	struct sw_path path; /* where its frames come from */
	uint64_t nonce, cookie, epoch;
	uint32_t id, session;      /* its own, the other's; 0: none */
	uint64_t psn[SW_N_SPACES]; /* last used */
	uint32_t consumed, grant;
	/* The control stream: messages built, and the other end's last one
	 * received, which control frames acknowledge. */
	uint16_t n_built, n_taken;
	bool is_server;
	/* A worker: */
	struct sw_status status; /* last heard */
	uint32_t key;            /* the first in the last DECLARED */
	uint32_t payload;        /* the job's; 0: PEER_PAYLOAD */
	/* It has said what its paths carry, which it does when it hears
	 * PROBING. */
	bool has_probed;
	/* A server: */
	uint32_t n_items; /* items in the last DECLARE */
	uint32_t next_key;
	uint8_t declared[SW_PAYLOAD_MAX]; /* the last DECLARE */
	/* The groups of the streams in it and before, in a ring. */
	struct test_group {
		char name[SW_NAME_MAX];
		uint32_t key;
	} groups[16];
	uint32_t n_groups;
	uint16_t n_local; /* local ranks of each member in STATUS; 0: 1 */
	uint16_t first;   /* the worker's first rank, as STATUS says */
};

/* peer_make - a frame of @p: what is 0 in @h is filled in, with a payload_crc
 * of its own it stays damaged.  @payload: h.payload_len bytes. */
void peer_make(struct test_peer *p, struct sw_header h, const void *payload,
	struct test_frame *out);

/* peer_send - make it, send it. */
void peer_send(struct test_peer *p, struct sw_header h, const void *payload);

/* peer_say - send a control frame of @n bytes of @payload. */
void peer_say(struct test_peer *p, enum sw_frame_type type, const void *payload,
	size_t n);

/* peer_again - send a frame that was made before, whoever's it was. */
void peer_again(struct test_peer *p, const struct test_frame *f);

/* peer_learn - note what @f, which came for @p, tells it. */
void peer_learn(struct test_peer *p, const struct test_frame *f);

/* peer_paths - say, as a worker, that all paths carry @payload. */
void peer_paths(struct test_peer *p, uint32_t payload);

/* peer_ask - send @f until an answer of @type comes, which goes to @out, and
 * learn from it; false: none comes. */
bool peer_ask(struct test_peer *p, const struct test_frame *f, uint8_t type,
	struct test_frame *out);

/* --- of either --- */

/* peer_keepalive - send an accepted worker's KEEPALIVE: it confirms its
 * JOIN. */
void peer_keepalive(struct test_peer *p);

/* peer_ack - acknowledge the data frames 1 … @largest of @class, or one. */
void peer_ack(struct test_peer *p, uint32_t class, uint64_t largest);
void peer_ack_one(struct test_peer *p, uint32_t class, uint64_t psn);

/* peer_fill - send data frame @h, its payload @value in every element. */
void peer_fill(struct test_peer *p, struct sw_header h, int32_t value);

/* --- of a worker; the first ones in this order, true: it was answered --- */

/* peer_hello - HELLO and COOKIE. */
bool peer_hello(struct test_peer *p);

/* peer_join_payload - a JOIN of @rank, cookie and all; to be changed. */
struct sw_join peer_join_payload(const struct test_peer *p, const char *job,
	const char *node, uint32_t rank, uint16_t n_members);

/* peer_join - JOIN and ACCEPT. */
bool peer_join(struct test_peer *p, const struct sw_join *j);

/* peer_declare - DECLARE of one tensor and DECLARED; @item has no length of the
 * name, and a key only if the server does not coordinate. */
bool peer_declare(
	struct test_peer *p, struct sw_declare_item item, const char *name);

/* peer_push - a full chunk of i32 in which every element is @value. */
void peer_push(struct test_peer *p, uint32_t key, uint32_t round,
	uint32_t chunk, int32_t value);
struct sw_header peer_push_header(uint32_t key, uint32_t round, uint32_t chunk);

/* peer_query - ask for one chunk. */
void peer_query(
	struct test_peer *p, uint32_t key, uint32_t round, uint32_t chunk);

/* peer_leave - leave. */
void peer_leave(struct test_peer *p, int err, const char *text);

/* --- of a server: answers to what was asked last --- */

void peer_cookie(struct test_peer *p);
void peer_accept(struct test_peer *p);
void peer_refuse(struct test_peer *p, int err, const char *text);
void peer_status(struct test_peer *p, enum sw_job_state state, int err,
	uint16_t size, const char *text);
void peer_declared(struct test_peer *p);
void peer_left(struct test_peer *p, bool with_session);

/* peer_result - a full chunk with @value in every element, of two members. */
void peer_result(struct test_peer *p, uint32_t key, uint32_t round,
	uint32_t chunk, int32_t value);
struct sw_header peer_result_header(
	uint32_t key, uint32_t round, uint32_t chunk, uint32_t n_elems);

/* peer_answer - to a QUERY of one chunk. */
void peer_answer(struct test_peer *p, enum sw_answer_kind kind, uint32_t key,
	uint32_t round, uint32_t chunk, uint64_t missing);

#endif
