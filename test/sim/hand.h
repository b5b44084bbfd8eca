/* hand.h - a real server, and workers whose every frame a test writes by hand.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The workers are peers (test/support/peer.h).  No network is between them: a
 * frame that is sent is received at once, and what the server sends lies in the
 * worker's inbox.  The job has one tensor of i32; a push of value v is a chunk
 * full of v.  With is_async it is asynchronous and every worker has got 0 as
 * its first value.
 */
#ifndef SW_TEST_SIM_HAND_H
#define SW_TEST_SIM_HAND_H

#include "test/sim/check.h"
#include "test/support/server_rig.h"

enum { HAND_WORKERS = 4, HAND_INBOX = 512 };

struct hand_inbox {
	struct test_frame *f; /* HAND_INBOX of them */
	uint32_t n;
};

struct hand_rig {
	struct server_rig r;
	struct hand_inbox in[HAND_WORKERS];
	struct test_frame sent; /* the last one, to be sent again */
	const char *job;        /* that JOINs name */
	bool is_mute;           /* the accepted worker does not speak */
	bool is_stuck;          /* the server's port takes no frame */
	bool is_async;
	uint32_t n_workers, n_chunks, last_elems;
};

/* A running job of @n_workers that have declared @n_elems; inboxes empty.
 * Exits the test program when that does not work. */
void hand_open(struct hand_rig *rig, uint32_t n_workers, uint32_t n_elems);
void hand_open_async(
	struct hand_rig *rig, uint32_t n_workers, uint32_t n_elems);
void hand_close(struct hand_rig *rig);

/* An idle server, nobody has joined. */
void hand_open_idle(struct hand_rig *rig);

/* Say HELLO, JOIN as @rank of @n_members, each time in another start, and when
 * accepted KEEPALIVE; true: accepted.  The JOIN comes out, to be said again. */
bool hand_join(struct hand_rig *rig, uint32_t i, uint16_t rank,
	uint16_t n_members, struct test_frame *join);

void hand_push(struct hand_rig *rig, uint32_t i, uint32_t round, uint32_t chunk,
	int32_t value);

/* Let @ns pass in small steps. */
void hand_pass(struct hand_rig *rig, uint64_t ns);

/* Take the oldest frame of @type out of an inbox; false: not found. */
bool hand_take(
	struct hand_rig *rig, uint32_t i, uint8_t type, struct test_frame *out);
uint32_t hand_count(const struct hand_rig *rig, uint32_t i, uint8_t type);
void hand_empty(struct hand_rig *rig);

/* A RESULT of @round must be there, whole, with @value; a sum is of all. */
void hand_expect(struct check *c, struct hand_rig *rig, uint32_t i,
	uint32_t round, int32_t value);

/* The session and the cell that a test looks at. */
struct sw_session *hand_session(struct hand_rig *rig, uint32_t i);
struct sw_chunk *hand_chunk(struct hand_rig *rig, uint32_t chunk);

#endif
