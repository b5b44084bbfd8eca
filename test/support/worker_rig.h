/* worker_rig.h - a worker under test and servers that a test plays by frames.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_SUPPORT_WORKER_RIG_H
#define SW_TEST_SUPPORT_WORKER_RIG_H

#include "engine/worker/link.h"
#include "test/support/env.h"
#include "test/support/peer.h"
#include "test/support/unit.h"

enum {
	WRIG_SERVERS = 16,
	WRIG_TENSORS = 4,
	WRIG_ELEMS = 200 * PEER_CHUNK, /* elements of the largest tensor */
};

struct worker_rig {
	struct sw_port port; /* used only by wrig_open */
	struct test_env env;
	struct sw_params params;
	struct sw_worker w;
	struct sw_worker zero; /* if w is lane 1: lane 0's state that w reads */
	struct test_peer s[WRIG_SERVERS];
	uint32_t n_servers;
	uint64_t now_ns;
	struct test_frame last[SW_N_TYPES]; /* the last frame sent, per type */
	int32_t data[WRIG_TENSORS][WRIG_ELEMS];
	char text[8192];
	char events[4096], seen[4096];
	/* Called by events.done after the rig has noted the event. */
	void (*on_done)(struct worker_rig *r, uint32_t tensor);
};

/* wrig_open - open a worker that has not sent any frame. */
void wrig_open(struct worker_rig *r, uint16_t rank, uint16_t n_members,
	uint32_t n_servers);

/* wrig_open_local - the same with several local ranks. */
void wrig_open_local(struct worker_rig *r, uint16_t rank, uint16_t n_members,
	uint32_t n_servers, uint16_t n_local);

/* wrig_open_lane - open lane @lane_i of two: rank 0 of 2 members, with @n_local
 * local ranks. Lane 0 has the first of two servers, lane 1 the second. The test
 * plays the other lane through @lane. */
void wrig_open_lane(struct worker_rig *r, struct sw_lane *lane, uint8_t lane_i,
	uint16_t n_local);

/* wrig_hear - take @bits, which one lane must have sent to the other.
 * wrig_hear_of - take the flag of tensor 0, which must be the only one. */
static inline void wrig_hear(struct sw_lane_news *news, uint32_t bits)
{
	assert_int_equal(atomic_load(&news->bits) & bits, bits);
	atomic_fetch_and(&news->bits, ~bits);
}

static inline void wrig_hear_of(struct sw_lane_news *news)
{
	assert_int_equal(sw_flags_take(&news->tensors), 0);
	assert_int_equal(sw_flags_take(&news->tensors), SW_FLAGS);
}

/* wrig_build_lane - build @n tensors of lane 0 (zero) in this lane. */
void wrig_build_lane(struct worker_rig *r, uint32_t n);

/* wrig_close - close the worker; fail the test if any memory is left. */
void wrig_close(struct worker_rig *r);

/* wrig_tx - return the frames that the worker sends now as text, valid until
 * the next call. */
const char *wrig_tx(struct worker_rig *r);

/* wrig_tx_one - return only the next frame; "" if the worker sends none. */
const char *wrig_tx_one(struct worker_rig *r);

/* wrig_learn - let the receiving server learn from a frame that the worker
 * sent. */
void wrig_learn(struct worker_rig *r, const struct test_frame *f);

/* wrig_tick - let @ns pass and fire timers; returns the next deadline. */
uint64_t wrig_tick(struct worker_rig *r, uint64_t ns);

/* wrig_events - return the events since the last call, as text. */
const char *wrig_events(struct worker_rig *r);

/* wrig_run - bring the worker to RUNNING, until no frame is due. */
void wrig_run(struct worker_rig *r);

/* wrig_declare - declare one more i32 tensor and admit it on all servers. */
void wrig_declare(struct worker_rig *r, const char *name, uint64_t n_elems,
	uint32_t priority);

#endif
