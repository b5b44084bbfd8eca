/* worker_rig.h - a worker under test and servers that are made of frames.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_WORKER_RIG_H
#define SW_TEST_WORKER_RIG_H

#include "engine/worker/life.h"
#include "engine/worker/round.h"
#include "test/support/env.h"
#include "test/support/frame.h"
#include "test/support/unit.h"

enum {
	WRIG_SERVERS = 4,
	WRIG_TENSORS = 4,
	WRIG_PAYLOAD = 1344,
	WRIG_CHUNK = WRIG_PAYLOAD / 4, /* i32 elements of a full chunk */
	WRIG_ELEMS = 200 * WRIG_CHUNK, /* of the largest tensor */
};

/* What a server knows, as far as its frames need it. */
struct wrig_server {
	struct sw_path path;
	uint64_t nonce;    /* of the last HELLO or JOIN */
	uint32_t id, peer; /* its session and the worker's; 0: none */
	uint64_t psn[SW_N_SPACES];
	uint32_t consumed, grant;
	uint32_t n_items, batch; /* of the last DECLARE */
	uint32_t next_key;
};

struct worker_rig {
	struct sw_port port; /* read by open alone */
	struct test_env env;
	struct sw_params params;
	struct sw_worker w;
	struct wrig_server s[WRIG_SERVERS];
	uint32_t n_servers;
	uint64_t now_ns;
	struct test_frame last[SW_N_TYPES]; /* sent, per type */
	int32_t data[WRIG_TENSORS][WRIG_ELEMS];
	char text[8192];
	char events[4096], seen[4096];
	/* Called in events.done after it was noted. */
	void (*on_done)(struct worker_rig *r, uint32_t tensor);
};

/* wrig_open - a worker that has not said anything yet. */
void wrig_open(struct worker_rig *r, uint16_t rank, uint16_t n_members,
	uint32_t n_servers);

/* wrig_open_local - the same with several local ranks. */
void wrig_open_local(struct worker_rig *r, uint16_t rank, uint16_t n_members,
	uint32_t n_servers, uint16_t n_local);

/* wrig_open_lane - lane @lane_i of two, rank 0 of 2 members, @n_local local
 * ranks; of two servers lane 0 has the first, lane 1 the other.  The test plays
 * the other lane by the other sides of @lane. */
void wrig_open_lane(struct worker_rig *r, struct sw_lane *lane, uint8_t lane_i,
	uint16_t n_local);

/* wrig_close - close it; fails the test if anything is left. */
void wrig_close(struct worker_rig *r);

/* wrig_send - a frame of server @i; what is 0 in @h is filled in. */
void wrig_send(struct worker_rig *r, uint32_t i, struct sw_header h,
	const void *payload);
void wrig_make(struct worker_rig *r, uint32_t i, struct sw_header h,
	const void *payload, struct test_frame *out);

/* wrig_tx - what the worker sends now, as text.  Good for one call. */
const char *wrig_tx(struct worker_rig *r);

/* wrig_tx_one - the next frame only; "" when there is none. */
const char *wrig_tx_one(struct worker_rig *r);

/* wrig_learn - what the servers learn from a frame that the worker sent. */
void wrig_learn(struct worker_rig *r, const struct test_frame *f);

/* wrig_tick - let @ns pass and fire timers; returns the next deadline. */
uint64_t wrig_tick(struct worker_rig *r, uint64_t ns);

/* wrig_events - what was told since the last call, as text. */
const char *wrig_events(struct worker_rig *r);

/* Answers of server @i to what was asked last. */
void wrig_cookie(struct worker_rig *r, uint32_t i);
void wrig_accept(struct worker_rig *r, uint32_t i);
void wrig_status(struct worker_rig *r, enum sw_job_state state, int err,
	uint16_t size, const char *text);
void wrig_refuse(struct worker_rig *r, uint32_t i, int err, const char *text);
void wrig_declared(struct worker_rig *r, uint32_t i);
void wrig_left(struct worker_rig *r, uint32_t i, bool with_session);

/* wrig_run - the worker is RUNNING; nothing is due. */
void wrig_run(struct worker_rig *r);

/* wrig_declare - one i32 tensor more, admitted everywhere. */
void wrig_declare(struct worker_rig *r, const char *name, uint64_t n_elems,
	uint32_t priority);

/* wrig_result - RESULT of server @i with @value in every element. */
void wrig_result(struct worker_rig *r, uint32_t i, uint32_t key, uint32_t round,
	uint32_t chunk, int32_t value);
struct sw_header wrig_result_header(
	uint32_t key, uint32_t round, uint32_t chunk, uint32_t n_elems);

/* wrig_ack - server @i acknowledges the pushes 1 … @largest of @class. */
void wrig_ack(
	struct worker_rig *r, uint32_t i, uint32_t class, uint64_t largest);

/* wrig_answer - server @i answers a PULL of one chunk. */
void wrig_answer(struct worker_rig *r, uint32_t i, enum sw_answer_kind kind,
	uint32_t key, uint32_t round, uint32_t chunk, uint64_t missing);

#endif
