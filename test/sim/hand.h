/* hand.h - a real server; a test writes every frame of the workers by hand.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The workers are peers (test/support/peer.h). There is no network: a frame
 * arrives at once, and each frame from the server goes to the worker's inbox.
 * The job has one tensor of i32; a push of value v is a chunk full of v. With
 * is_async the tensor is asynchronous, and every worker has received the first
 * value 0.
 */
#ifndef SW_TEST_SIM_HAND_H
#define SW_TEST_SIM_HAND_H

#include "test/sim/check.h"
#include "test/support/server_rig.h"

enum { HAND_WORKERS = 4, HAND_INBOX = 512 };

struct hand_inbox {
	struct test_frame *f; /* HAND_INBOX entries */
	uint32_t n;
};

struct hand_rig {
	struct server_rig r;
	struct hand_inbox in[HAND_WORKERS];
	struct test_frame sent; /* the last frame, for a retransmission */
	const char *job;        /* job name in JOINs */
	bool is_mute;           /* the worker sends nothing after ACCEPT */
	bool is_stuck;          /* the server's port has no room */
	bool is_async;
	uint32_t n_workers, n_chunks, last_elems;
};

/* Open a running job of @n_workers that have declared @n_elems; inboxes are
 * empty. Exit the test program on failure. */
void hand_open(struct hand_rig *rig, uint32_t n_workers, uint32_t n_elems);
void hand_open_async(
	struct hand_rig *rig, uint32_t n_workers, uint32_t n_elems);
void hand_close(struct hand_rig *rig);

/* Open an idle server; no worker has joined. */
void hand_open_idle(struct hand_rig *rig);

/* Send HELLO and JOIN as @rank of @n_members, each time with another start
 * number, and KEEPALIVE if accepted. Return whether the server accepted. Set
 * the JOIN, for a later repetition. */
bool hand_join(struct hand_rig *rig, uint32_t i, uint16_t rank,
	uint16_t n_members, struct test_frame *join);

void hand_push(struct hand_rig *rig, uint32_t i, uint32_t round, uint32_t chunk,
	int32_t value);

/* Run for @ns of virtual time, in small steps. */
void hand_pass(struct hand_rig *rig, uint64_t ns);

/* Remove the oldest frame of @type from an inbox; return false if there is
 * none. */
bool hand_take(
	struct hand_rig *rig, uint32_t i, uint8_t type, struct test_frame *out);
uint32_t hand_count(const struct hand_rig *rig, uint32_t i, uint8_t type);
void hand_empty(struct hand_rig *rig);

/* Check that a whole RESULT of @round with @value is in the inbox; a sum
 * contains all members. */
void hand_expect(struct check *c, struct hand_rig *rig, uint32_t i,
	uint32_t round, int32_t value);

/* Return the session and the cell for a test to inspect. */
struct sw_session *hand_session(struct hand_rig *rig, uint32_t i);
struct sw_chunk *hand_chunk(struct hand_rig *rig, uint32_t chunk);

#endif
