/* worker_rig.h - a worker under test and servers that are made of frames.
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
	struct sw_port port; /* read by open alone */
	struct test_env env;
	struct sw_params params;
	struct sw_worker w;
	struct sw_worker zero; /* w is lane 1: what it reads of lane 0 */
	struct test_peer s[WRIG_SERVERS];
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

/* wrig_hear - take @bits, which one side must have said to the other.
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

/* wrig_build_lane - @n tensors that lane 0 (zero) has are built for this one.
 */
void wrig_build_lane(struct worker_rig *r, uint32_t n);

/* wrig_close - close it; fails the test if anything is left. */
void wrig_close(struct worker_rig *r);

/* wrig_tx - return the worker's frames of this time as text. Good for one
 * call. */
const char *wrig_tx(struct worker_rig *r);

/* wrig_tx_one - return the next frame only; "" if it sends nothing. */
const char *wrig_tx_one(struct worker_rig *r);

/* wrig_learn - let the servers take a frame that the worker sent. */
void wrig_learn(struct worker_rig *r, const struct test_frame *f);

/* wrig_tick - let @ns pass and fire timers; returns the next deadline. */
uint64_t wrig_tick(struct worker_rig *r, uint64_t ns);

/* wrig_events - return the events since the last call, as text. */
const char *wrig_events(struct worker_rig *r);

/* wrig_run - the worker is RUNNING; nothing is due. */
void wrig_run(struct worker_rig *r);

/* wrig_declare - one i32 tensor more, admitted everywhere. */
void wrig_declare(struct worker_rig *r, const char *name, uint64_t n_elems,
	uint32_t priority);

#endif
