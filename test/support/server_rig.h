/* server_rig.h - a server under test and workers that a test plays by frames.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_SUPPORT_SERVER_RIG_H
#define SW_TEST_SUPPORT_SERVER_RIG_H

#include "engine/server/job.h"
#include "test/support/env.h"
#include "test/support/peer.h"
#include "test/support/unit.h"

enum { RIG_WORKERS = SW_MAX_MEMBERS };

struct server_rig {
	struct test_env env;
	struct sw_params params;
	struct sw_port port;
	struct sw_port *ports[1];
	struct sw_server *srv;
	struct test_peer w[RIG_WORKERS];
	uint64_t now_ns;
	uint16_t n_members;
	struct test_frame last[SW_N_TYPES]; /* the last frame sent, per type */
	char text[8192];
};

/* server_rig_open - open a server with a quota of @quota_bytes and no
 * sessions. */
void server_rig_open(
	struct server_rig *r, uint16_t n_members, uint64_t quota_bytes);

/* server_rig_close - close the server; fail the test if any memory is left. */
void server_rig_close(struct server_rig *r);

/* rig_tx - return the frames that the server sends now as text, separated by
 * semicolons. The text is valid until the next call. */
const char *rig_tx(struct server_rig *r);

/* rig_is_intact - has the server's frame @f the right CRC for the epoch that
 * its worker knows? */
bool rig_is_intact(const struct server_rig *r, const struct test_frame *f);

/* rig_learn - let the receiving worker learn from a frame that the server
 * sent. */
void rig_learn(struct server_rig *r, const struct test_frame *f);

/* rig_tick - let @ns pass and fire timers. */
uint64_t rig_tick(struct server_rig *r, uint64_t ns);

/* rig_join_payload - return a complete JOIN of worker @i, which the test may
 * change. */
struct sw_join rig_join_payload(struct server_rig *r, uint32_t i);

/* rig_join_only - send HELLO and JOIN; return the frames that JOIN causes. */
const char *rig_join_only(struct server_rig *r, uint32_t i);

/* rig_join - the same; if the server accepts, confirm with a KEEPALIVE. */
const char *rig_join(struct server_rig *r, uint32_t i);

/* rig_declare - declare one tensor; return the frames that DECLARE causes. */
const char *rig_declare(struct server_rig *r, uint32_t i, const char *name,
	uint32_t dtype, uint64_t n_elems, uint32_t priority);

/* rig_run - let n_members workers join and declare i32 tensor "a" of @n_elems
 * elements, until no frame is due. */
void rig_run(struct server_rig *r, uint64_t n_elems);

/* rig_result_is - does every element of the last RESULT equal @value? */
bool rig_result_is(const struct server_rig *r, int32_t value);

#endif
