/* session.h - what a server owes a worker.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_SERVER_SESSION_H
#define SW_ENGINE_SERVER_SESSION_H

#include "engine/server/server_int.h"

/* sw_session_set - put @s into a set of sessions, or take it out. */
static inline void sw_session_set(uint64_t words[SW_SESSION_WORDS],
	const struct sw_session *s, bool is_in)
{
	uint64_t bit = 1ULL << s->peer.index % 64;
	uint64_t *word = &words[s->peer.index / 64];

	*word = is_in ? *word | bit : *word & ~bit;
}

/* sw_session_touch, sw_job_touch - note that a session, or each session of a
 * job, may have something new to send, or less.  sw_server_look looks at them
 * when the burst or the tick ends. */
static inline void sw_session_touch(const struct sw_session *s)
{
	sw_session_set(s->srv->touched, s, true);
}

static inline void sw_job_touch(const struct sw_job *job)
{
	for (uint32_t i = 0; i < SW_SESSION_WORDS; i++)
		job->srv->touched[i] |= job->here[i];
}

/* sw_server_look - look at each marked session once: find the class of its most
 * urgent result, whether an ACK is due, and its next timer.  Called at the end
 * of every call that handles frames or timers. */
void sw_server_look(struct sw_server *srv);

/* sw_session_note_timer - bring the session's next look forward if a frame has
 * made a timer earlier. */
static inline void sw_session_note_timer(const struct sw_session *s)
{
	uint64_t *at = &s->srv->tick_at_ns[s->peer.index];

	*at = sw_min64(*at, sw_peer_tick_at(&s->peer));
}

/* sw_session_owe - owe the session a control frame. */
static inline void sw_session_owe(struct sw_session *s, enum sw_owed what)
{
	sw_peer_owe(&s->peer, what);
}

/* sw_session_offer - note that its most urgent result is of @class;
 * SW_N_CLASSES: none.
 * sw_session_refresh - find that class and note it. */
static inline void sw_session_offer(struct sw_session *s, uint32_t class)
{
	struct sw_due *due = &s->job->due[s->peer.path.port_i];
	bool had = sw_due_has(due);

	if (sw_peer_offer(&s->peer, due, class) && had != sw_due_has(due))
		sw_drr_put(&s->srv->drr[s->peer.path.port_i],
			sw_job_index(s->job), !had);
}

void sw_session_refresh(struct sw_session *s);

/* sw_session_answer - put @a into the next ANSWER; drops it if too many wait.
 */
void sw_session_answer(struct sw_session *s, const struct sw_answer *a);

/* sw_session_of - return the session of a peer.
 * sw_session_fate - note which RESULTs were acknowledged or lost; @ctx is the
 * peer. */
static inline struct sw_session *sw_session_of(struct sw_peer *p)
{
	return (struct sw_session *)((char *)p -
				     offsetof(struct sw_session, peer));
}

void sw_session_fate(void *ctx, const struct sw_sent *const *sent, uint32_t n,
	enum sw_fate fate);

/* sw_session_fail - tell this worker that it cannot continue.  Returns false.
 */
bool sw_session_fail_for(struct sw_session *s, const struct sw_fault *why);
bool sw_session_fail(struct sw_session *s, int err, uint32_t key,
	const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* sw_server_reply - answer a sender without a session; drops the reply if too
 * many wait, since the sender will ask again.
 * @seal  the keys of the session that it had, for a tag; NULL: none */
void sw_server_reply(struct sw_server *srv, struct sw_path path,
	struct sw_seal *seal, const struct sw_header *h, const void *payload);

/* sw_server_may_log - may a line of @kind about a stranger at @ip be logged
 * now? If so, others must wait. */
bool sw_server_may_log(
	struct sw_server *srv, struct sw_ip ip, enum sw_line_kind kind);

#endif
