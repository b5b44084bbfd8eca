/* server_int.h - what the files of a server share: its state, and their calls.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Files call downwards: server.c, server_rx.c and server_tx.c have the timers,
 * take frames and send them; admit*.c admits workers and tensors; job.c keeps
 * the members and the state of a job; describe.c shows them to the daemon;
 * groups.c ends and closes groups; session.c keeps what a worker is owed;
 * share.c divides the server among jobs.
 */
#ifndef SW_ENGINE_SERVER_SERVER_INT_H
#define SW_ENGINE_SERVER_SERVER_INT_H

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/peer/handshake.h"
#include "engine/peer/peer.h"
#include "engine/sched/drr.h"
#include "engine/sched/due.h"
#include "engine/sched/sched.h"
#include "engine/server/server.h"
#include "engine/sums/shard.h"

enum {
	SW_REPLIES = 16, /* replies to strangers that may wait on a port */
	/* A burst or a tick that has looked at this many tensors puts further
	 * DECLAREs aside. */
	SW_DECLARE_BURST = 64,
	/* Words of a set of key indices. */
	SW_KEY_WORDS = SW_MAX_TENSORS / 64 + 1,
	/* Streams of a job that a tick looks at to end them. */
	SW_JOB_BURST = 32,
	/* JOINs that a source may send at once, and the time in which it may
	 * send one more.  A worker that asks for hours sends two per second. */
	SW_JOIN_BURST = 64,
	SW_JOIN_EVERY_MS = 125,
	SW_JOIN_SOURCES = 256,
	/* HELLOs answered at once, and the time in which one more is, while
	 * sessions are open. */
	SW_HELLO_BURST = 256,
	SW_HELLO_EVERY_US = 250,
	/* The log has one line of a kind about a stranger's address in
	 * SW_QUIET_S, and at most SW_LINES about all of them. */
	SW_QUIET_S = 60,
	SW_LINES = 64,
	/* Words of a set of sessions. */
	SW_SESSION_WORDS = SW_MAX_SESSIONS / 64,
	SW_MEMBER_TEXT = 80, /* size of sw_member_text */
};

struct sw_member {
	struct sw_session *session; /* NULL: the member is not connected */
	uint16_t n_local;
	uint16_t payload; /* the largest that its paths carry; 0: unknown */
	struct sw_ip ip;  /* the last session's address, also after its end */
	/* The last JOIN, if it was refused; err 0: it was not. */
	struct sw_ip refused_ip;
	int16_t refused_err;
	char node[SW_NAME_MAX];
};

/* A limit on memory, and what is used of it. */
struct sw_quota {
	uint64_t bytes, used_bytes;
	_Atomic uint64_t *all_used; /* as in struct sw_share */
};

struct sw_job {
	struct sw_server *srv;
	bool is_coordinated; /* this server coordinates the job */
	uint16_t n_members;
	uint16_t n_sessions; /* 0: this entry has no job */
	/* The STATUS that members get, without each member's own fields. */
	struct sw_status status;
	/* The last session has ended; each tick frees some of the job. */
	bool is_closing;
	/* Where sw_job_close_left continues; SW_KEY_NONE: it is done. */
	uint32_t close_at;
	uint64_t left; /* members that were connected and left, or died */
	/* Members of these that a member learns of only when it waits for them:
	 * they left without an error, or the job is asynchronous and continues.
	 */
	uint64_t done;
	/* The fault of a member that left with an error, until judge (job.c)
	 * decides whether the job continues; err 0: none. is_needed: there is a
	 * group without gone members. */
	struct sw_fault lost;
	uint16_t lost_member;
	bool is_needed;
	/* FORMING: the pause before the next line about it, and when that is
	 * due. */
	uint64_t wait_ns, wait_at_ns;
	/* Members whose TUNE waits until all have acknowledged the last state,
	 * and the member whose TUNE was numbered last. */
	uint64_t asking;
	uint16_t asked_last;
	uint32_t weight;
	struct sw_quota quota;
	/* Bytes of the quota taken for a batch whose memory is being prepared,
	 * and the session that declared the batch; 0: none (admit_declare.c).
	 */
	uint64_t asked_bytes;
	uint32_t asker;
	/* Contributions folded at the last look, and when the last ones came.
	 */
	uint64_t n_folded, active_ns;
	uint64_t opened_ns;
	/* The first JOIN: all members agree on its terms. */
	struct sw_join terms;
	/* Its payload is settled as soon as the coordinator has said it. */
	struct sw_params params;
	bool is_settled;
	/* Its members on other machines have tags, or CRCs, once one of them
	 * has joined; a keyed job's results are hashed under a key of this run.
	 */
	bool is_keyed, is_plain;
	/* Has it a member in this process, which reads results in the clear? */
	bool has_inner;
	struct sw_result_keys *results; /* NULL: no member has tags */
	uint64_t probed; /* members that have said what their paths carry */
	struct sw_shard shard;
	struct sw_session *sessions;     /* by member; zeroed if never used */
	struct sw_due due[SW_MAX_PORTS]; /* sessions with results, by class */
	uint64_t here[SW_SESSION_WORDS]; /* its sessions, as a set of indices */
	struct sw_member members[SW_MAX_MEMBERS];
	char name[SW_NAME_MAX];
};

/* sw_server_peer, sw_server_tensor - as struct sw_engine has them (describe.c).
 */
bool sw_server_peer(
	const struct sw_engine *engine, uint32_t i, struct sw_engine_peer *out);
bool sw_server_tensor(const struct sw_engine *engine, uint32_t i, uint32_t key,
	struct sw_engine_tensor *out);

struct sw_session {
	struct sw_server *srv;
	struct sw_job *job;
	uint16_t member;
	uint32_t status_number; /* message number of its last STATUS */
	/* Its last TUNE, while job->asking has its bit. */
	struct sw_tune_ask ask;
	uint16_t probe_bytes; /* payload of the PROBE to answer */
	uint64_t probed_ns;   /* when the last one came in the running job */
	/* When the session may be told of its fault again; UINT64_MAX: it has
	 * none. */
	uint64_t error_at_ns;
	struct sw_peer peer;   /* its id is index << 16 | generation */
	struct sw_fault fault; /* err 0: none */
	uint64_t nonce;        /* the nonce of its JOIN */
	uint64_t key_id;       /* of its secret; 0: none */
	uint32_t n_answers;
	struct sw_bitmap ends; /* indices of groups whose END it is owed */
	uint64_t end_words[SW_KEY_WORDS];
	uint32_t n_queries; /* QUERY frames received */
	/* The DECLARE that is put aside (srv->aside); length 0: none. */
	uint16_t declare_len;
	uint8_t declare[SW_ORDERED_MAX];
	uint16_t n_declared;
	/* Why the last of these was refused; err 0: it was not. */
	struct sw_fault refused;
	struct sw_answer answers[SW_QUERY_MAX];
	/* The last batch's keys, and their places on the line. */
	uint32_t declared[SW_DECLARE_MAX], firsts[SW_DECLARE_MAX];
};

/* A JOIN whose worker has sent nothing yet under the session that it was
 * offered.  It holds only a place in the table, which a newer JOIN may evict.
 */
struct sw_pending {
	uint32_t id; /* id of the offered session; 0: the place is free */
	struct sw_path path;
	struct sw_join join;
	uint16_t join_bytes; /* payload length of the JOIN, and so of ACCEPT */
	bool is_owed;        /* ACCEPT is due */
	/* Keyed: the session's keys, the ACCEPT, which is built once, and the
	 * two keys of results that it tells (admit_keys.c). */
	struct sw_seal *seal;
	uint8_t e[SW_NOISE_E_BYTES]; /* the worker's */
	uint8_t accept[SW_ACCEPT_KEYED];
	uint8_t results[2 * SW_BLOCK_BYTES];
	bool is_of_run;     /* these are those of a job that was open then */
	uint32_t n_accepts; /* ACCEPTs sent; the packet number of the last */
	uint64_t rx_ns, accept_at_ns, accept_wait_ns;
};

/* The token bucket of a source (admit.c), as the time when it is full. */
struct sw_source {
	struct sw_ip net;
	uint64_t full_ns;
};

/* A log line about a source, which is not repeated before @until_ns. */
struct sw_line {
	struct sw_ip net;
	enum sw_line_kind { SW_LINE_JOINS, SW_LINE_KEY } kind;
	uint64_t until_ns;
};

/* A reply to a sender without a session. */
struct sw_reply {
	struct sw_path path;
	bool is_tagged; /* the header has its tag */
	struct sw_header header;
	uint8_t payload[sizeof(struct sw_fault) + SW_MAC_BYTES];
};

struct sw_replies {
	uint32_t first, n;
	struct sw_reply ring[SW_REPLIES];
};

_Static_assert(
	(int)SW_MEM_OWNERS == (int)SW_MAX_JOBS, "memory is prepared by job");

struct sw_server {
	struct sw_engine engine;
	struct sw_hub hub;
	struct sw_params params;
	const struct sw_env *env;
	void *mem; /* it lies in this */
	struct sw_stats stats;
	uint64_t now_ns, gap_ns;
	struct sw_quota quota;
	uint64_t secret[2];
	const struct sw_keyring *keyring; /* NULL: it has no keys */
	bool has_tags; /* sessions may have tags, so each says what it has */
	uint64_t hello_full_ns; /* the bucket of HELLOs, as that of a source */
	uint32_t n_lcores; /* lcores of this process that serve; 1 after open */
	uint32_t n_ports;
	uint32_t max_payload[SW_MAX_PORTS];
	bool is_inner[SW_MAX_PORTS];
	struct sw_ip ip[SW_MAX_PORTS]; /* ours */
	uint16_t udp[SW_MAX_PORTS];    /* of our first endpoint */
	const struct sw_share *shares;
	uint32_t n_shares;
	const struct sw_guests *guests; /* NULL: everybody may join */
	uint32_t active; /* jobs active at the last look, as bits */
	uint64_t look_at_ns;
	uint64_t wait_at_ns; /* when the next line about a FORMING job is due */
	/* Sessions and JOINs that are owed control frames. */
	struct sw_due due[SW_MAX_PORTS];
	struct sw_drr drr[SW_MAX_PORTS]; /* jobs with results to send */
	/* Sessions from which frames arrived, and sessions for which results
	 * may have become ready or stale. sw_server_look looks at both before
	 * anything is sent. */
	uint64_t received[SW_SESSION_WORDS], touched[SW_SESSION_WORDS];
	struct sw_session *sessions[SW_MAX_SESSIONS];
	/* JOINs use the same indices, as long as no session does. */
	struct sw_pending pending[SW_MAX_SESSIONS];
	/* The first one is shared by sources that find no other. */
	struct sw_source sources[SW_JOIN_SOURCES];
	struct sw_line lines[SW_LINES];
	uint16_t generations[SW_MAX_SESSIONS];
	uint32_t n_sessions; /* all sessions and JOINs have smaller indices */
	/* No timer of the session is due earlier. */
	uint64_t tick_at_ns[SW_MAX_SESSIONS];
	struct sw_grants grants; /* shared by all sessions on other machines */
	struct sw_job jobs[SW_MAX_JOBS];
	/* A flood of HELLOs must not keep other replies out. */
	struct sw_replies cookies[SW_MAX_PORTS], replies[SW_MAX_PORTS];
	bool has_cookie_turn;
	/* Tensors of DECLAREs looked at in this burst or tick. */
	uint32_t n_looked;
	/* Sessions whose DECLARE is put aside, and when to look at these again.
	 */
	struct sw_due_set aside;
	uint64_t aside_at_ns;
	bool is_stopping;
	bool has_gone; /* a member has gone: sw_jobs_end has work */
	/* Sessions have opened or closed since the windows were divided. */
	bool has_changed;
	/* Payloads of the control frames being sent, and where the next one
	 * goes. */
	uint8_t payload[2 * SW_PAYLOAD_MAX], *next;
	/* Encrypted payloads of the results being sent, in turn. */
	uint32_t n_ciphers;
	_Alignas(64) uint8_t ciphers[SW_TX_BURST][SW_PAYLOAD_MAX];
};

static inline uint32_t sw_job_index(const struct sw_job *job)
{
	return (uint32_t)(job - job->srv->jobs);
}

/* sw_job_all - return all its members, joined or not. */
static inline uint64_t sw_job_all(const struct sw_job *job)
{
	return ~0ULL >> (64 - job->n_members);
}

/* --- server_rx.c, server_tx.c --- */

/* sw_server_rx - handle a burst (engine.rx): look up each run of PUSHes once,
 * then look at the sessions that may send something now. */
void sw_server_rx(struct sw_engine *engine, uint64_t now_ns, uint32_t port_i,
	const struct sw_rx_frame *frames, uint32_t n);

/* sw_server_tx - send (engine.tx): replies to strangers, one by one; then
 * control frames; then results by class. */
uint32_t sw_server_tx(struct sw_engine *engine, uint64_t now_ns,
	uint32_t port_i, struct sw_tx_frame *out, uint32_t max);

/* sw_server_build - build a control frame (hub.build). */
uint32_t sw_server_build(
	struct sw_peer *p, enum sw_owed what, struct sw_header *h);

/* --- admit.c, admit_declare.c --- */

/* The handlers below get headers that have been checked. */
void sw_admit_hello(struct sw_server *srv, const struct sw_rx_frame *f);
void sw_admit_join(struct sw_server *srv, const struct sw_rx_frame *f,
	const struct sw_header *h);
void sw_admit_declare(struct sw_session *s, const struct sw_rx_frame *f,
	const struct sw_header *h);
/* sw_admit_aside - look again at the DECLAREs that are put aside, if it is
 * time.  Returns when to call again; UINT64_MAX: none. */
uint64_t sw_admit_aside(struct sw_server *srv);
/* sw_pending_drop - forget the JOIN at @i. */
void sw_pending_drop(struct sw_server *srv, uint32_t i);
/* sw_pending_accept - return what the ACCEPT says. */
struct sw_accept sw_pending_accept(
	const struct sw_server *srv, const struct sw_pending *p);
/* sw_pending_confirm - make the worker behind the JOIN at @i a member, since a
 * frame arrived under the offered id.  NULL: it may not join now, and was told
 * why, or the job's memory is being prepared. */
struct sw_session *sw_pending_confirm(struct sw_server *srv, uint32_t i);
/* sw_pending_build - build the ACCEPT that is owed at @i. */
void sw_pending_build(
	struct sw_server *srv, uint32_t i, struct sw_tx_frame *out);
/* sw_pending_tick - run the timers of a JOIN; returns when to look again. */
uint64_t sw_pending_tick(struct sw_server *srv, uint32_t i);

/* --- admit_keys.c: what a secret changes --- */

/* sw_admit_secret - return the secret that a HELLO or JOIN names; NULL: it is
 * unknown here.
 * sw_admit_know - is the HELLO by one that has the secret?
 * sw_admit_prove - append to @cookie, of @n bytes with room for it, the MAC. */
const struct sw_secret *sw_admit_secret(
	const struct sw_server *srv, uint64_t key_id);
bool sw_admit_know(struct sw_server *srv, const struct sw_secret *secret,
	const struct sw_rx_frame *f);
uint32_t sw_admit_prove(const struct sw_server *srv,
	const struct sw_secret *secret, const struct sw_path *path,
	const char *label, void *payload, uint32_t n);
/* sw_admit_unknown - return the session that @hello, whose MAC is right, asks
 * for if it is unknown at this endpoint; else 0. */
uint32_t sw_admit_unknown(const struct sw_server *srv,
	const struct sw_rx_frame *f, const struct sw_hello *hello);
/* sw_admit_again - return the place of a keyed JOIN that has come before, whose
 * ACCEPT is due again; SW_MAX_SESSIONS: it has none. */
uint32_t sw_admit_again(
	const struct sw_server *srv, const struct sw_pending *p);
/* sw_admit_unseal - read a keyed JOIN into p->join; false: it is dropped.
 * sw_admit_answer - make the ACCEPT and the keys of the session. */
bool sw_admit_unseal(struct sw_server *srv, const struct sw_rx_frame *f,
	const struct sw_secret *secret, struct sw_pending *p,
	struct sw_noise *noise);
bool sw_admit_answer(
	struct sw_server *srv, struct sw_pending *p, struct sw_noise *noise);
/* sw_admit_key - may the worker behind @p join with the key that it has, or
 * without one?  Returns the reason, or NULL.
 * sw_job_keyed - @p, which has confirmed its session, is a member of @job.
 * False: it knows keys of another run. */
const char *sw_admit_key(struct sw_server *srv, const struct sw_pending *p);
bool sw_job_keyed(struct sw_job *job, const struct sw_pending *p);
/* sw_jobs_renew - begin the next era of results of each keyed job that needs it
 * and whose members have all confirmed this one. */
void sw_jobs_renew(struct sw_server *srv);

/* --- job.c --- */

struct sw_job *sw_job_find(struct sw_server *srv, const char *name);
/* sw_job_unused - return a free place for a job, or NULL. */
struct sw_job *sw_job_unused(struct sw_server *srv);
/* sw_job_is_ready - is there memory for @join's job?  If not, ask again later.
 * sw_job_open - open it, in the turn in which its memory is ready. */
bool sw_job_is_ready(struct sw_server *srv, const struct sw_join *join);
struct sw_job *sw_job_open(struct sw_server *srv, const struct sw_join *join);

/* sw_join_place - return the facts in a JOIN that decide where chunks lie. */
struct sw_place_job sw_join_place(const struct sw_join *join);
/* sw_job_settle - @payload is the job's, once for all.  Returns whether it may
 * be.
 * sw_job_on_paths - handle PATHS. */
bool sw_job_settle(struct sw_job *job, uint32_t payload);
void sw_job_on_paths(struct sw_session *s, const struct sw_rx_frame *f,
	const struct sw_header *h);
/* sw_job_enter - make the worker behind @s the member that @join names. */
void sw_job_enter(
	struct sw_job *job, struct sw_session *s, const struct sw_join *join);
/* sw_job_leave - end a session whose member has gone.  At the coordinator,
 * @why fails the job, unless there are groups without gone members; NULL: it
 * left without an error.  With its last session the job closes. */
void sw_job_leave(struct sw_session *s, const struct sw_fault *why);

/* sw_job_close - free a job without members, some of it in later turns. */
void sw_job_close(struct sw_job *job);
/* sw_jobs_end - do some of the work for members and jobs that have gone, if
 * srv->has_gone; returns whether there is more. */
bool sw_jobs_end(struct sw_server *srv);
/* sw_job_status - fill *out with the state for @member. */
void sw_job_status(
	const struct sw_job *job, uint16_t member, struct sw_status *out);

/* sw_job_note_refused - note that a worker was refused for which a FORMING job
 * may wait. */
void sw_job_note_refused(struct sw_server *srv, const struct sw_pending *p,
	int err, const char *why);

/* sw_member_text - name @member to a person: "ranks 4-7 (node gpu1)". */
const char *sw_member_text(
	const struct sw_job *job, uint32_t member, char out[SW_MEMBER_TEXT]);

/* sw_member_gone - return the fault that @member has left (SW_FAULT_GONE) or
 * fell silent (SW_FAULT_SILENT; the caller adds for how long). */
struct sw_fault sw_member_gone(
	const struct sw_job *job, uint32_t member, enum sw_fault_kind kind);

/* sw_job_tell_waiting - log which members FORMING jobs wait for, with growing
 * pauses.  Called at wait_at_ns. */
void sw_job_tell_waiting(struct sw_server *srv);

/* sw_job_tune - take a member's TUNE, which replaces its earlier one.  When all
 * members know the last state, number it and tell all.
 * sw_job_on_acked - number the next TUNE if all know the last state: a member
 * has acknowledged a message. */
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

/* sw_session_touch, sw_job_touch - note that what may be sent to a session, or
 * to all sessions of a job, may have changed. sw_server_look looks at them when
 * the burst or the tick ends. */
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

/* --- groups.c: tensors and groups end, and groups are closed --- */

/* sw_group_end - fail rounds of @g from @round on for @why.  Every member that
 * has not closed it is owed END; later declarations are refused. */
void sw_group_end(struct sw_job *job, struct sw_sgroup *g, uint32_t round,
	const struct sw_fault *why);
/* sw_job_close_left - close some groups, from job->close_at on, for members
 * that have left the job.  Returns whether all are done. */
bool sw_job_close_left(struct sw_job *job);
/* sw_group_awaits_closed - end @g: member @who waits for member @closed, which
 * has closed it. */
void sw_group_awaits_closed(
	struct sw_job *job, struct sw_sgroup *g, uint32_t who, uint32_t closed);
/* sw_session_differs - end the group: the push @h differs from another rank's.
 * The fault names both ranks. */
void sw_session_differs(struct sw_session *s, const struct sw_header *h);
/* sw_session_check_call - end the group of stream @t if another rank calls
 * another kind as its number @number.  Returns false if @t is no stream, or has
 * ended. */
bool sw_session_check_call(
	struct sw_session *s, const struct sw_stensor *t, uint32_t number);
/* sw_group_on_end - handle END or CLOSE from a member. */
void sw_group_on_end(struct sw_session *s, const struct sw_rx_frame *f,
	const struct sw_header *h);

/* --- share.c --- */

/* sw_share_open - set the share of a new job, by its name. */
void sw_share_open(struct sw_job *job, const char *name);
/* sw_share_take - take @need bytes of the server's quota and of the job's.  If
 * one lacks them, returns false, and @text says what is missing. */
bool sw_share_take(struct sw_job *job, uint64_t need, char text[SW_TEXT_MAX]);
/* sw_share_give - return @bytes to both quotas. */
void sw_share_give(struct sw_job *job, uint64_t bytes);
/* sw_share_tick - find out which jobs are active, and divide the windows;
 * returns when to look again. */
uint64_t sw_share_tick(struct sw_server *srv);

/* sw_places_note - note that a session or JOIN has taken or left index @i,
 * which bounds all loops over indices.
 * sw_sessions_note - do so for a session, and divide the grants anew. */
void sw_places_note(struct sw_server *srv, uint32_t i);
void sw_sessions_note(struct sw_server *srv, uint32_t i);

/* sw_share_drop - drop the memory and quota reserved for a batch that is being
 * prepared, since the batch will not be declared again. */
void sw_share_drop(struct sw_job *job);

#endif
