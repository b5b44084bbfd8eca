/* session.h - the frames that a server owes a worker.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_SERVER_SESSION_H
#define SW_ENGINE_SERVER_SESSION_H

#include "engine/server/server_int.h"

/* sw_session_touch, sw_job_touch - note that the results to send may have
 * changed for a session, or for each session of a job.  sw_server_look checks
 * these sessions at the end of the burst or the tick. */
static inline void sw_session_touch(const struct sw_session *s)
{
	sw_bits_add(s->srv->touched, s->peer.index);
}

static inline void sw_job_touch(const struct sw_job *job)
{
	for (uint32_t i = 0; i < SW_SESSION_WORDS; i++)
		job->srv->touched[i] |= job->here[i];
}

/* sw_server_look - check each marked session once: find the class of its most
 * urgent result, whether an ACK is due, and its next timer.  Call at the end of
 * each burst and tick. */
void sw_server_look(struct sw_server *srv);

/* sw_session_note_timer - move the session's next tick forward if a frame has
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

/* sw_session_offer - note that the session's most urgent result is of @class;
 * SW_N_CLASSES: no result.
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

/* sw_session_answer - put @a into the next ANSWER; drop it if too many answers
 * wait. */
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

/* sw_session_fail - tell this worker that it cannot continue; the first fault
 * counts.  Returns false. */
bool sw_session_fail_for(struct sw_session *s, const struct sw_fault *why);
bool sw_session_fail(struct sw_session *s, int err, uint32_t key,
	const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* sw_server_reply - answer a sender without a session; drop the reply if too
 * many replies wait, since the sender will ask again.
 * @seal  the keys of the sender's former session, to tag the reply; NULL: no
 *        tag */
void sw_server_reply(struct sw_server *srv, struct sw_path path,
	struct sw_seal *seal, const struct sw_header *h, const void *payload);

/* sw_token_take - take a token from a bucket of @burst tokens that gets one
 * back every @every_ns.  *@full_ns is the time when it is full.  Returns false
 * if the bucket is empty. sw_source_of - return the bucket of @ip and @kind
 * among @n, or a full bucket, which is free.  If no bucket is full, return the
 * first, which all other sources share. */
static inline bool sw_token_take(const struct sw_server *srv, uint64_t *full_ns,
	uint64_t every_ns, uint32_t burst)
{
	uint64_t at_ns = sw_max64(*full_ns, srv->now_ns) + every_ns;

	if (at_ns - srv->now_ns > burst * every_ns)
		return false;
	*full_ns = at_ns;
	return true;
}

struct sw_source *sw_source_of(const struct sw_server *srv,
	struct sw_source *all, uint32_t n, struct sw_ip ip,
	enum sw_source_kind kind);

/* sw_server_may_log - return whether to log a line of @kind about a stranger at
 * @ip now.  If true, further lines of @kind about @ip wait for SW_QUIET_S. */
bool sw_server_may_log(
	struct sw_server *srv, struct sw_ip ip, enum sw_source_kind kind);

#endif
