/* session.h - what a worker is owed, sent and told.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_SESSION_H
#define SW_SESSION_H

#include "engine/server/server_int.h"

/* sw_session_touch - a frame came from it or goes to it: a timer may have been
 * set, none shorter than ack_delay. */
static inline void sw_session_touch(
	struct sw_server *srv, const struct sw_session *s)
{
	uint64_t *at = &srv->tick_at_ns[s->peer.index];

	if (*at > srv->now_ns + srv->params.ack_delay)
		*at = srv->now_ns + srv->params.ack_delay;
}

/* sw_session_owe - a control frame is due. */
static inline void sw_session_owe(
	struct sw_server *srv, struct sw_session *s, enum sw_owed what)
{
	sw_peer_owe(&s->peer, srv->due, what);
}

/* sw_session_refresh - put the session into the set of its most urgent result
 * that it has credit for. */
void sw_session_refresh(struct sw_server *srv, struct sw_session *s);

/* sw_session_fate - what became of a RESULT; @ctx is the session. */
void sw_session_fate(void *ctx, const struct sw_sent *sent, uint32_t class,
	enum sw_fate fate);

/* sw_session_answer - @a goes with the next ANSWER; dropped when too many wait.
 */
void sw_session_answer(
	struct sw_server *srv, struct sw_session *s, const struct sw_answer *a);

/* sw_session_close - forget it; its member has left. */
void sw_session_close(struct sw_server *srv, struct sw_session *s);

/* sw_session_fail - tell this worker that it cannot go on.  Returns false. */
bool sw_session_fail(struct sw_server *srv, struct sw_session *s, int err,
	uint32_t key, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* sw_server_reply - answer somebody without a session; dropped when too many
 * wait, since the question will come again. */
void sw_server_reply(struct sw_server *srv, struct sw_path path,
	const struct sw_header *h, const void *payload);

#endif
