/* server_int.h - what the files of a server share: its state, and their calls.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Files call downwards: server.c, server_rx.c and server_tx.c have the timers,
 * take frames and send them; admit*.c, who and what is let in; job.c, the
 * members and the state of a job; session.c, what is said to a worker; share.c,
 * what a job gets.
 */
#ifndef SW_ENGINE_SERVER_SERVER_INT_H
#define SW_ENGINE_SERVER_SERVER_INT_H

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/peer/peer.h"
#include "engine/sched/drr.h"
#include "engine/sched/due.h"
#include "engine/sched/sched.h"
#include "engine/server/server.h"
#include "engine/sums/shard.h"

enum {
	SW_REPLIES = 16, /* answers to strangers that wait on a port */
	/* A burst or a tick that has looked at so many tensors puts further
	 * DECLAREs aside. */
	SW_DECLARE_BURST = 64,
	SW_KEY_WORDS = SW_MAX_TENSORS / 64 + 1, /* of a set of indices */
	SW_JOB_BURST = 32, /* streams of a job that a tick ends */
	/* JOINs that a source may send at once, and one more each so often: a
	 * worker that asks for hours sends two a second. */
	SW_JOIN_BURST = 64,
	SW_JOIN_EVERY_MS = 125,
	SW_JOIN_SOURCES = 256,
	SW_SESSION_WORDS = SW_MAX_SESSIONS / 64, /* of a set of sessions */
	SW_MEMBER_TEXT = 80,                     /* of sw_member_text */
};

struct sw_member {
	struct sw_session *session; /* NULL: not here */
	uint16_t n_local;
	uint32_t ip; /* of the last session, also when it has gone */
	/* Of the last JOIN if it was refused; err 0: it was not. */
	uint32_t refused_ip;
	int16_t refused_err;
	char node[SW_NAME_MAX];
};

/* Memory that may be taken here. */
struct sw_quota {
	uint64_t bytes, used_bytes;
	_Atomic uint64_t *all_used; /* as struct sw_share */
};

struct sw_job {
	struct sw_server *srv;
	bool is_coordinated; /* this server is the job's coordinator */
	uint16_t n_members;
	uint16_t n_sessions; /* 0: there is no such job */
	/* As members are told it, but for what is each one's own.  The text is,
	 * FORMING: who is known; FAILED: why. */
	struct sw_status status;
	/* Its last session has gone; what it has is given back, some in each
	 * tick. */
	bool is_closing;
	uint32_t close_at; /* sw_job_close_left; SW_KEY_NONE: it is done */
	uint64_t left;     /* members that were here and left, or died */
	/* Of them, those of which the others learn when they wait for them:
	 * they left without an error, or the job goes on without anybody. */
	uint64_t done;
	/* The last of the others while it is judged whether the job goes on
	 * (job.c), err 0: none is; is there a group without them? */
	struct sw_fault lost;
	bool is_needed;
	uint64_t wait_ns, wait_at_ns; /* FORMING: the next line about it */
	/* Members whose TUNE waits until all know the last state, and the
	 * member whose TUNE was numbered last. */
	uint64_t asking;
	uint16_t asked_last;
	uint32_t weight;
	struct sw_quota quota;
	/* Of what it has taken, for a batch whose memory is being prepared, and
	 * whose session declared it; 0: there is none (admit_declare.c). */
	uint64_t asked_bytes;
	uint32_t asker;
	uint64_t n_folded, active_ns; /* when contributions came last */
	struct sw_join terms; /* the first: all members say the same in it */
	struct sw_params params;
	struct sw_shard shard;
	struct sw_session *sessions; /* by member; those that are not zeros */
	struct sw_due due[SW_MAX_PORTS]; /* results, by class */
	uint64_t here[SW_SESSION_WORDS]; /* its sessions, by index */
	struct sw_member members[SW_MAX_MEMBERS];
	char name[SW_NAME_MAX];
};

struct sw_session {
	struct sw_server *srv;
	struct sw_job *job;
	uint16_t member;
	uint32_t status_number; /* message number of its last STATUS */
	struct sw_tune_ask ask; /* its last TUNE, while job->asking has it */
	/* It has a fault, and is not told of it again before then; else
	 * UINT64_MAX. */
	uint64_t error_at_ns;
	struct sw_peer peer;   /* its id: index << 16 | generation */
	struct sw_fault fault; /* err 0: none */
	uint64_t nonce;        /* of its JOIN */
	uint32_t n_answers;
	struct sw_bitmap ends; /* indices of tensors whose END it is owed */
	uint64_t end_words[SW_KEY_WORDS];
	uint32_t n_queries; /* frames that came */
	/* The DECLARE that is put aside (srv->aside); length 0: none. */
	uint16_t declare_len;
	uint8_t declare[SW_ORDERED_MAX];
	uint16_t n_declared;
	char refused[SW_TEXT_MAX]; /* why the last of them is; "": it is not */
	int refused_err;           /* as sw_fault_death says */
	struct sw_answer answers[SW_QUERY_MAX];
	/* keys of the last batch, and their places */
	uint32_t declared[SW_DECLARE_MAX], firsts[SW_DECLARE_MAX];
};

/* A JOIN whose worker has not spoken under the session that it was offered.  It
 * holds but its place in the table, and that only until others need it. */
struct sw_pending {
	uint32_t id; /* of the session that it may become; 0: there is none */
	struct sw_path path;
	struct sw_join join;
	uint16_t join_bytes; /* of its frame: so long is ACCEPT */
	bool is_owed;        /* ACCEPT is to be sent */
	uint32_t n_accepts;  /* that were sent; the packet number of the last */
	uint64_t rx_ns, accept_at_ns, accept_wait_ns;
};

/* How many JOINs a source address has left: all at full_ns and after. */
struct sw_source {
	uint32_t ip;
	uint64_t full_ns;
};

/* An answer to somebody without a session. */
struct sw_reply {
	struct sw_path path;
	struct sw_header header;
	uint8_t payload[sizeof(struct sw_fault)];
};

struct sw_replies {
	uint32_t first, n;
	struct sw_reply ring[SW_REPLIES];
};

_Static_assert(
	(int)SW_MEM_OWNERS == (int)SW_MAX_JOBS, "memory is prepared by job");

struct sw_server {
	struct sw_engine engine;
	struct sw_params params;
	const struct sw_env *env;
	struct sw_stats stats;
	uint64_t now_ns, gap_ns;
	struct sw_quota quota;
	uint64_t secret[2];
	uint32_t n_lcores; /* of this process that serve; 1 after open */
	uint32_t n_ports;
	uint32_t max_payload[SW_MAX_PORTS];
	bool is_inner[SW_MAX_PORTS];
	const struct sw_share *shares;
	uint32_t n_shares;
	uint32_t active; /* jobs, as seen at the last look */
	uint64_t look_at_ns;
	uint64_t wait_at_ns; /* the next line about a job that forms */
	struct sw_due due[SW_MAX_PORTS]; /* control frames */
	struct sw_drr drr[SW_MAX_PORTS]; /* jobs with results */
	/* Sessions from which frames came, and those for which results may have
	 * become ready, or not be there any more: they are looked at before
	 * anything is sent (sw_server_look). */
	uint64_t received[SW_SESSION_WORDS], touched[SW_SESSION_WORDS];
	struct sw_session *sessions[SW_MAX_SESSIONS];
	/* JOINs have the same indices, and only such as are free. */
	struct sw_pending pending[SW_MAX_SESSIONS];
	struct sw_source sources[SW_JOIN_SOURCES]; /* more share the first */
	uint64_t limit_line_ns; /* no line about their limit before */
	uint16_t generations[SW_MAX_SESSIONS];
	uint32_t n_sessions; /* no open one, and no JOIN, has a larger index */
	uint64_t tick_at_ns[SW_MAX_SESSIONS]; /* no timer of it is due before */
	struct sw_grants grants;              /* of all of them */
	struct sw_job jobs[SW_MAX_JOBS];
	struct sw_replies replies[SW_MAX_PORTS];
	uint32_t n_looked; /* tensors of DECLAREs, in this burst or tick */
	/* Sessions whose DECLARE is put aside, and when to look at them again.
	 */
	struct sw_due_set aside;
	uint64_t aside_at_ns;
	bool is_stopping;
	bool has_gone; /* a member: sw_jobs_end */
	/* Sessions have come or gone since windows were divided. */
	bool has_changed;
	/* Of the control frames being sent; where the next one's goes. */
	uint8_t payload[2 * SW_PAYLOAD_MAX], *next;
};

static inline uint32_t sw_job_index(const struct sw_job *job)
{
	return (uint32_t)(job - job->srv->jobs);
}

/* sw_job_all - all its members, those that have not joined too. */
static inline uint64_t sw_job_all(const struct sw_job *job)
{
	return ~0ULL >> (64 - job->n_members);
}

/* --- server_rx.c, server_tx.c --- */

/* sw_server_rx - engine.rx: opens a burst, looks up each run of PUSHes once,
 * then looks at those sessions that may send something now. */
void sw_server_rx(struct sw_engine *engine, uint64_t now_ns, uint32_t port_i,
	const struct sw_rx_frame *frames, uint32_t n);

/* sw_server_tx - engine.tx: replies to strangers, one by one; then control
 * frames; then results by class. */
uint32_t sw_server_tx(struct sw_engine *engine, uint64_t now_ns,
	uint32_t port_i, struct sw_tx_frame *out, uint32_t max);

/* --- admit.c, admit_declare.c, admit_check.c --- */

/* Handlers; the header has been checked. */
void sw_admit_hello(struct sw_server *srv, const struct sw_rx_frame *f);
void sw_admit_join(struct sw_server *srv, const struct sw_rx_frame *f,
	const struct sw_header *h);
void sw_admit_declare(struct sw_session *s, const struct sw_rx_frame *f,
	const struct sw_header *h);
/* sw_admit_aside - if it is time, look again at the DECLAREs that are put
 * aside.  Returns when to call again; UINT64_MAX: there is none. */
uint64_t sw_admit_aside(struct sw_server *srv);
/* sw_admit_check - may it join now?  Else it was told why not. */
bool sw_admit_check(struct sw_server *srv, const struct sw_pending *p);
/* sw_admit_refuse - tell whoever is behind a JOIN that it cannot be let in.
 * Returns false. */
bool sw_admit_refuse(struct sw_server *srv, const struct sw_pending *p, int err,
	const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* sw_pending_drop - forget the JOIN at @i. */
void sw_pending_drop(struct sw_server *srv, uint32_t i);
/* sw_pending_confirm - the worker behind the JOIN at @i has spoken under the id
 * that it was offered: it is a member from now on.  NULL: it cannot be any
 * more, as it was told, or the job's memory is being prepared. */
struct sw_session *sw_pending_confirm(struct sw_server *srv, uint32_t i);
/* sw_pending_build - the ACCEPT that is owed at @i. */
void sw_pending_build(
	struct sw_server *srv, uint32_t i, struct sw_tx_frame *out);
/* sw_pending_tick - timers; returns when to look again. */
uint64_t sw_pending_tick(struct sw_server *srv, uint32_t i);

/* --- job.c --- */

struct sw_job *sw_job_find(struct sw_server *srv, const char *name);
/* sw_job_unused - a place for one more, or NULL. */
struct sw_job *sw_job_unused(struct sw_server *srv);
/* sw_job_is_ready - is there memory for @join's job?  If not, ask again.
 * sw_job_open - then, in the same turn. */
bool sw_job_is_ready(struct sw_server *srv, const struct sw_join *join);
struct sw_job *sw_job_open(struct sw_server *srv, const struct sw_join *join);

/* sw_join_place - the facts in a JOIN that decide where chunks lie. */
struct sw_place_job sw_join_place(const struct sw_join *join);
/* sw_job_enter - the worker behind @s is the member of @join's rank. */
void sw_job_enter(
	struct sw_job *job, struct sw_session *s, const struct sw_join *join);
/* sw_job_leave - the session ends, its member is gone; err != 0 fails the job
 * of a coordinator, but one that has groups of others; with the last one the
 * job ends. */
void sw_job_leave(struct sw_session *s, int err, const char *text);
/* sw_jobs_end - some of what is to be done for members and jobs that have gone,
 * if srv->has_gone; true: there is more. */
bool sw_jobs_end(struct sw_server *srv);
/* sw_job_status - the state as member @rank is told it. */
void sw_job_status(
	const struct sw_job *job, uint16_t rank, struct sw_status *out);

/* sw_job_note_refused - a worker that the job may wait for was refused. */
void sw_job_note_refused(struct sw_server *srv, const struct sw_pending *p,
	int err, const char *why);

/* sw_member_text - "ranks 4-7 (node gpu1)": who @member is to a person. */
const char *sw_member_text(
	const struct sw_job *job, uint32_t member, char out[SW_MEMBER_TEXT]);

/* sw_job_tell_waiting - say in the log whom jobs that form wait for, ever more
 * seldom; called when now_ns has come to wait_at_ns. */
void sw_job_tell_waiting(struct sw_server *srv);

/* sw_job_tune - take a member's TUNE, which replaces its earlier one.  When all
 * members know the last state, number it and tell all.
 * sw_job_on_acked - a member has acknowledged something: perhaps all know now.
 */
void sw_job_tune(struct sw_session *s, const struct sw_rx_frame *f,
	const struct sw_header *h);
void sw_job_on_acked(struct sw_job *job);

/* --- session.c --- */

/* sw_session_set - put @s into a set of sessions, or take it out. */
static inline void sw_session_set(uint64_t words[SW_SESSION_WORDS],
	const struct sw_session *s, bool is_in)
{
	uint64_t bit = 1ULL << s->peer.index % 64;
	uint64_t *word = &words[s->peer.index / 64];

	*word = is_in ? *word | bit : *word & ~bit;
}

/* sw_session_touch, sw_job_touch - what may be sent to it, to the members of
 * the job, may have changed.  They are looked at when the burst or the tick
 * ends. */
static inline void sw_session_touch(const struct sw_session *s)
{
	sw_session_set(s->srv->touched, s, true);
}

static inline void sw_job_touch(const struct sw_job *job)
{
	for (uint32_t i = 0; i < SW_SESSION_WORDS; i++)
		job->srv->touched[i] |= job->here[i];
}

/* sw_server_look - look at those sessions, once each: of which class is the
 * most urgent result, is an ACK due, when is the next timer?  At the end of
 * every call that handles frames or timers. */
void sw_server_look(struct sw_server *srv);

/* sw_session_note_timer - what came from it or went to it may have brought its
 * next look forward. */
static inline void sw_session_note_timer(const struct sw_session *s)
{
	uint64_t *at = &s->srv->tick_at_ns[s->peer.index];

	*at = sw_min64(*at, sw_peer_tick_at(&s->peer));
}

/* sw_session_owe - a control frame is due. */
static inline void sw_session_owe(struct sw_session *s, enum sw_owed what)
{
	sw_peer_owe(&s->peer, s->srv->due, what);
}

/* sw_session_offer - its most urgent result is of @class, SW_N_CLASSES: there
 * is none; sw_session_refresh - see of which, now. */
static inline void sw_session_offer(struct sw_session *s, uint32_t class)
{
	struct sw_due *due = &s->job->due[s->peer.path.port_i];
	bool had = sw_due_has(due);

	if (sw_peer_offer(&s->peer, due, class) && had != sw_due_has(due))
		sw_drr_put(&s->srv->drr[s->peer.path.port_i],
			sw_job_index(s->job), !had);
}

void sw_session_refresh(struct sw_session *s);

/* sw_session_answer - @a goes with the next ANSWER; dropped when too many wait.
 */
void sw_session_answer(struct sw_session *s, const struct sw_answer *a);

/* sw_session_fate - what became of RESULTs; @ctx is the session. */
void sw_session_fate(void *ctx, const struct sw_sent *const *sent, uint32_t n,
	enum sw_fate fate);

/* sw_session_fail - tell this worker that it cannot go on.  Returns false. */
bool sw_session_fail(struct sw_session *s, int err, uint32_t key,
	const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* sw_server_reply - answer somebody without a session; dropped when too many
 * wait, since the question will come again. */
void sw_server_reply(struct sw_server *srv, struct sw_path path,
	const struct sw_header *h, const void *payload);

/* --- tensors that members call differently --- */

/* sw_job_kill - rounds of the tensor @key from @round on fail with @death
 * (sw_fault_death), and so do all streams of its group: every member is owed
 * END, which says @why.  A member that declares the tensor later is refused. */
void sw_job_kill(struct sw_job *job, uint32_t key, uint32_t round, int death,
	const char *why);
/* sw_job_close_left - who has left the job has closed its groups: some streams,
 * from job->close_at on.  Returns whether all are. */
bool sw_job_close_left(struct sw_job *job);
/* sw_job_awaits_closed - in stream @key member @who waits for member @closed,
 * which has closed the group: it is dead. */
void sw_job_awaits_closed(
	struct sw_job *job, uint32_t key, uint32_t who, uint32_t closed);
/* A push that differs from what another rank does with the tensor: both are
 * named, and the tensor is dead. */
void sw_session_differs(struct sw_session *s, const struct sw_header *h);
/* It waits on stream @t for the collective @number of the group: if another
 * rank calls another kind as that, the same.  False: it is no stream, or dead.
 */
bool sw_session_check_call(
	struct sw_session *s, const struct sw_stensor *t, uint32_t number);
/* END or CLOSE: a worker says that a tensor is dead, or a stream closed. */
void sw_session_on_end(struct sw_session *s, const struct sw_rx_frame *f,
	const struct sw_header *h);

/* --- share.c --- */

/* sw_share_open - what a new job gets, by its name. */
void sw_share_open(struct sw_job *job, const char *name);
/* sw_share_take - take @need bytes of the server's quota and of the job's. Else
 * @text says what is missing. */
bool sw_share_take(struct sw_job *job, uint64_t need, char text[SW_TEXT_MAX]);
/* sw_share_give - they come back. */
void sw_share_give(struct sw_job *job, uint64_t bytes);
/* sw_share_tick - look who is active and divide the windows; returns when to
 * look again. */
uint64_t sw_share_tick(struct sw_server *srv);

/* sw_places_note - the index @i of a session or a JOIN is used, or is not any
 * more: looks go as far as those that are.
 * sw_sessions_note - and it is a session's: how many share the grants. */
void sw_places_note(struct sw_server *srv, uint32_t i);
void sw_sessions_note(struct sw_server *srv, uint32_t i);

/* sw_share_drop - the batch whose memory is being prepared for the job will not
 * be declared again: its memory and its part of the quotas go back. */
void sw_share_drop(struct sw_job *job);

#endif
