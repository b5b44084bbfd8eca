/* hand.h - a real server, and workers whose every frame a test writes by hand.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * No network is between them: a frame that is sent is received at once, and
 * what the server sends lies in the worker's inbox.  The job has one tensor of
 * i32; a push of value v is a chunk full of v.  With is_async it is
 * asynchronous and every worker has got 0 as its first value.
 */
#ifndef SW_SIM_HAND_H
#define SW_SIM_HAND_H

#include "engine/server/job.h"
#include "engine/server/server_int.h"
#include "test/sim/net.h"

enum { HAND_WORKERS = 4, HAND_INBOX = 512, HAND_PAYLOAD = 1344 };

struct hand_frame {
	uint32_t len;
	uint8_t bytes[SW_HEAD_BYTES + SW_PAYLOAD_MAX];
};

/* A received frame; a data frame's first element, and are all like it? */
struct hand_got {
	struct sw_header h;
	uint64_t at_ns;
	int32_t value;
	bool is_even;
	bool is_intact;       /* its payload has its CRC */
	uint8_t payload[256]; /* its first bytes */
};

struct hand {
	struct sw_path path;
	uint32_t id, peer; /* session at the worker, at the server */
	uint64_t nonce, cookie;
	uint64_t next[SW_N_SPACES]; /* packet numbers */
	uint32_t consumed, grant;   /* as the next frames say */
	struct hand_got in[HAND_INBOX];
	uint32_t n_in;
};

struct hand_rig {
	struct sw_server *srv;
	struct sw_params params;
	struct sw_env env;
	struct sw_port port, *ports[1];
	uint64_t now_ns, rng;
	const char *job; /* that JOINs name; NULL: "hand" */
	bool is_mute;    /* who is accepted does not speak */
	bool is_stuck;   /* the server's port takes no frame */
	bool is_async;
	uint32_t n_workers, n_chunks, last_elems;
	struct hand w[HAND_WORKERS];
};

/* A running job of @n_workers that have declared @n_elems; inboxes empty.
 * Exits the test program when that does not work. */
void hand_open(struct hand_rig *rig, uint32_t n_workers, uint32_t n_elems);
void hand_open_async(
	struct hand_rig *rig, uint32_t n_workers, uint32_t n_elems);
void hand_close(struct hand_rig *rig);

/* An idle server, nobody has joined. */
void hand_open_idle(struct hand_rig *rig);

/* Say a KEEPALIVE. */
void hand_speak(struct hand_rig *rig, uint32_t i);

/* Say HELLO, JOIN as @rank of @n_members, each time in another start, and when
 * accepted KEEPALIVE; true: accepted.  The JOIN comes out, to be said again. */
bool hand_join(struct hand_rig *rig, uint32_t i, uint16_t rank,
	uint16_t n_members, struct hand_frame *join);

/* Number and send a frame of worker @i; it comes out in @sent (or NULL). */
void hand_send(struct hand_rig *rig, uint32_t i, struct sw_header *h,
	const void *payload, struct hand_frame *sent);

/* Send an old frame again. */
void hand_again(struct hand_rig *rig, uint32_t i, const struct hand_frame *f);

void hand_push(struct hand_rig *rig, uint32_t i, uint32_t round, uint32_t chunk,
	int32_t value, struct hand_frame *sent);
void hand_pull(
	struct hand_rig *rig, uint32_t i, uint32_t round, uint32_t chunk);
/* Acknowledge @n packet numbers of class 0, the newest being @largest. */
void hand_ack(struct hand_rig *rig, uint32_t i, uint64_t largest, uint32_t n,
	struct hand_frame *sent);

/* Let @ns pass in small steps. */
void hand_pass(struct hand_rig *rig, uint64_t ns);

/* Take the oldest frame of @type out of an inbox; false: there is none. */
bool hand_take(
	struct hand_rig *rig, uint32_t i, uint8_t type, struct hand_got *out);
uint32_t hand_count(const struct hand_rig *rig, uint32_t i, uint8_t type);
void hand_empty(struct hand_rig *rig);

/* The session and the cell that a test looks at. */
struct sw_session *hand_session(struct hand_rig *rig, uint32_t i);
struct sw_chunk *hand_chunk(struct hand_rig *rig, uint32_t chunk);

#endif
