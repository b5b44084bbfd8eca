/* server.h - the summation service of one lcore: jobs, sessions, frames.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames in, frames out, next deadline.  server.c takes frames, server_tx.c
 * sends, server_tick.c has the timers, admit.c, admit_pending.c and
 * admit_declare.c let workers and tensors in, job.c keeps members and the state
 * of a job (the coordinator's part), shard.c sums.
 */
#ifndef SW_SERVER_H
#define SW_SERVER_H

#include "engine/loop/node.h"
#include "engine/peer/peer.h"
#include "engine/sched/drr.h"
#include "engine/sched/due.h"
#include "engine/sched/knobs.h"
#include "engine/sums/shard.h"

enum {
	SW_REPLIES = 16,      /* answers to strangers that wait on a port */
	SW_DECLARE_MAX = 512, /* tensors in one DECLARE frame */
	SW_NO_SESSION = UINT16_MAX,
};

struct sw_member {
	uint16_t session_i; /* SW_NO_SESSION: not here */
	uint16_t n_local;
	bool has_left;    /* was here and left, or died */
	bool is_done;     /* left without an error */
	uint32_t request; /* its last TUNE that was numbered */
	uint32_t ip;      /* of the last session, also when it has gone */
	/* of its last JOIN that was refused, none since; err 0: there is none
	 */
	uint32_t refused_ip;
	int16_t refused_err;
	char node[SW_NAME_MAX];
};

struct sw_job {
	bool is_used;
	bool is_coordinated; /* this server is the job's coordinator */
	enum sw_job_state state;
	uint64_t epoch;
	uint64_t joined; /* members that are here */
	uint16_t n_members;
	int16_t err; /* FAILED: why, and through which member */
	uint16_t err_rank;
	uint16_t seq; /* of the state; grows with every change */
	uint64_t wait_ns, wait_at_ns; /* FORMING: the next line about it */
	uint32_t weight;
	uint64_t quota_bytes;
	_Atomic uint64_t *all_used; /* as struct sw_share */
	uint64_t used_bytes;        /* that it has taken of the quotas */
	/* Of them, for a batch whose memory is being prepared, and whose
	 * session declared it; 0: there is none (admit_declare.c). */
	uint64_t asked_bytes;
	uint32_t asker;
	uint64_t n_folded, active_ns; /* when contributions came last */
	struct sw_params params;
	struct sw_knobs knobs; /* the newest; number 0: the JOINs' */
	struct sw_shard shard;
	struct sw_due due[SW_MAX_PORTS]; /* results, by class */
	struct sw_member members[SW_MAX_MEMBERS];
	char name[SW_NAME_MAX];
	char text[SW_TEXT_MAX]; /* FORMING: who is known; FAILED: why */
};

struct sw_session {
	struct sw_peer peer; /* its id: index << 16 | generation */
	struct sw_job *job;
	uint16_t member;
	uint64_t nonce;        /* of its JOIN */
	uint64_t status_at_ns; /* when to say the state again */
	uint64_t status_wait_ns;
	uint64_t error_at_ns; /* not before then */
	uint16_t status_seq;  /* acknowledged */
	uint32_t n_answers;
	uint32_t n_to_tell; /* dead tensors that it is to be told of */
	/* Those that it is told of again, until it says that it knows. */
	uint32_t n_unaware;
	uint64_t unaware_at_ns;
	uint32_t tell_key; /* where the next one is looked for */
	uint32_t batch;    /* next DECLARE expected */
	uint16_t n_declared;
	char refused[SW_TEXT_MAX]; /* why the last of them is; "": it is not */
	struct sw_fault fault;     /* err 0: none */
	struct sw_answer answers[SW_PULL_MAX];
	/* keys of the last batch, and their places */
	uint32_t declared[SW_DECLARE_MAX], firsts[SW_DECLARE_MAX];
};

/* A JOIN whose worker has not spoken under the session that it was offered.  It
 * holds nothing but its place in the table, and that only until others need it.
 */
struct sw_pending {
	uint32_t id; /* of the session that it may become; 0: there is none */
	struct sw_path path;
	struct sw_join join;
	uint16_t join_bytes; /* of its frame: so long is ACCEPT */
	bool is_owed;        /* ACCEPT is to be sent */
	uint32_t n_accepts;  /* that were sent; the packet number of the last */
	uint64_t heard_ns, accept_at_ns, accept_wait_ns;
};

enum {
	/* JOINs that a source may send at once, and one more each so often: a
	 * worker that asks for hours sends two a second. */
	SW_JOIN_BURST = 64,
	SW_JOIN_EVERY_MS = 125,
	SW_JOIN_SOURCES = 256,
};

/* How many JOINs a source address has left: all at full_ns and after. */
struct sw_source {
	uint32_t ip;
	uint64_t full_ns;
};

/* Those that were heard of last; more share the entry 0. */
struct sw_sources {
	struct sw_source of[SW_JOIN_SOURCES];
	uint64_t quiet_ns; /* no line about it before */
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

/* What a job gets of a server. */
struct sw_share {
	const char *job;
	uint32_t weight; /* under load, against the other jobs */
	uint64_t quota_bytes;
	_Atomic uint64_t *all_used; /* as struct sw_server has it */
};

_Static_assert(
	(int)SW_MEM_OWNERS == (int)SW_MAX_JOBS, "memory is prepared by job");

struct sw_server {
	struct sw_node node;
	struct sw_params params;
	const struct sw_env *env;
	struct sw_stats stats;
	uint64_t now_ns, gap_ns;
	uint64_t quota_bytes, used_bytes;
	/* What all lcores of the process have taken of the quota, which is
	 * theirs together; borrowed; NULL: this is the only one. */
	_Atomic uint64_t *all_used;
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
	struct sw_session *sessions[SW_MAX_SESSIONS];
	/* JOINs have the same indices: of one at most one of the two is there
	 */
	struct sw_pending pending[SW_MAX_SESSIONS];
	struct sw_sources sources;
	uint16_t generations[SW_MAX_SESSIONS];
	uint32_t n_sessions; /* no open one has a larger index */
	uint64_t tick_at_ns[SW_MAX_SESSIONS]; /* when to look at its timers */
	struct sw_grants grants;              /* of all of them */
	struct sw_job jobs[SW_MAX_JOBS];
	struct sw_replies replies[SW_MAX_PORTS];
	bool is_stopping;
	uint8_t payload[SW_PAYLOAD_MAX]; /* of the control frame being sent */
};

/* sw_server_open - an idle server.
 * @params, @env   the latter borrowed until close
 * @ports          n_ports of them; max_payload and is_inner are read
 * @quota_bytes    all jobs together
 * Errors: SW_EINVAL too many ports. */
int sw_server_open(struct sw_server *srv, const struct sw_params *params,
	const struct sw_env *env, struct sw_port *const *ports,
	uint32_t n_ports, uint64_t quota_bytes);

/* sw_server_share - what single jobs get; a job that is not named has weight 1
 * and no quota of its own.  For jobs that are opened later; @shares are
 * borrowed until close.  Errors: SW_EINVAL, a weight is not 1…SW_MAX_WEIGHT. */
int sw_server_share(
	struct sw_server *srv, const struct sw_share *shares, uint32_t n);

/* sw_server_close - drop all sessions and jobs, give back all memory. */
void sw_server_close(struct sw_server *srv);

/* sw_server_keep - copy the contributions that sums refer to in their senders'
 * memory (shard.h), since it is about to change. */
void sw_server_keep(struct sw_server *srv);

/* sw_server_stop - admit nobody any more and begin no sum; those that wait for
 * members go on until close. */
void sw_server_stop(struct sw_server *srv);

/* sw_server_fail_all - tell every member that this server stops. */
void sw_server_fail_all(struct sw_server *srv, const char *why);

/* sw_job_bytes - what a job of @n_members takes here besides its tensors
 * (shard.h), at most: its tables, and a session for each.  Linear. */
uint64_t sw_job_bytes(uint32_t n_members);

/* sw_server_open_chunks - chunks that wait for members: what would be dropped
 * by stopping now.  Thread: its lcore. */
uint64_t sw_server_open_chunks(const struct sw_server *srv);

/* --- between server.c, admit.c and job.c --- */

/* sw_session_touch - a frame came from it or goes to it: a timer may have been
 * set, none shorter than ack_delay. */
static inline void sw_session_touch(
	struct sw_server *srv, const struct sw_session *s)
{
	uint64_t *at = &srv->tick_at_ns[s->peer.index];

	if (*at > srv->now_ns + srv->params.ack_delay)
		*at = srv->now_ns + srv->params.ack_delay;
}

/* sw_session_fate - what became of a RESULT; @ctx is the session. */
void sw_session_fate(void *ctx, const struct sw_sent *sent, uint32_t class,
	enum sw_fate fate);

/* sw_session_owe - a control frame is due. */
static inline void sw_session_owe(
	struct sw_server *srv, struct sw_session *s, enum sw_owed what)
{
	sw_peer_owe(&s->peer, srv->due, what);
}

/* sw_session_refresh - put the session into the set of its most urgent result
 * that it has credit for. */
void sw_session_refresh(struct sw_server *srv, struct sw_session *s);

/* sw_session_close - forget it; its member has left. */
void sw_session_close(struct sw_server *srv, struct sw_session *s);

/* sw_session_fail - tell this worker that it cannot go on. */
void sw_session_fail(struct sw_server *srv, struct sw_session *s, int err,
	uint32_t key, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* server_fail.c */
/* sw_job_kill - rounds of the tensor from @round on fail: every member is told
 * @why, once now, and again when it pushes, pulls or declares the tensor. */
void sw_job_kill(struct sw_server *srv, struct sw_job *job,
	struct sw_stensor *t, uint32_t round, const char *why);
void sw_session_tell_dead(
	struct sw_server *srv, struct sw_session *s, struct sw_stensor *t);
/* A push that differs from what another rank does with the tensor: both are
 * named, and the tensor is dead. */
void sw_session_differs(
	struct sw_server *srv, struct sw_session *s, const struct sw_header *h);
/* Member @but was refused the tensor, which is dead: tell all others until they
 * say that they know; @s does, or was refused it, too; say it again. */
void sw_job_await_aware(struct sw_server *srv, struct sw_job *job,
	struct sw_stensor *t, uint16_t but);
void sw_session_is_aware(struct sw_session *s, struct sw_stensor *t);
uint64_t sw_session_tick_unaware(struct sw_server *srv, struct sw_session *s);
/* A worker says that a tensor is dead. */
void sw_session_on_mismatch(struct sw_server *srv, struct sw_session *s,
	const struct sw_header *h, const uint8_t *payload);
/* What is pulled waits for @rank, which left. */
void sw_session_fail_left(struct sw_server *srv, struct sw_session *s,
	const struct sw_answer *a, uint32_t rank);

/* sw_server_reply - answer somebody without a session; dropped when too many
 * wait, since the question will come again. */
void sw_server_reply(struct sw_server *srv, struct sw_path path,
	const struct sw_header *h, const void *payload);

/* sw_server_tick - node.tick: timers (server_tick.c). */
uint64_t sw_server_tick(struct sw_node *node, uint64_t now_ns, uint64_t gap_ns);

/* sw_server_tx - node.tx: replies to strangers, then control frames, then
 * results by class (server_tx.c). */
bool sw_server_tx(struct sw_node *node, uint64_t now_ns, uint32_t port_i,
	struct sw_tx_frame *out);

/* Handlers of admit.c and admit_declare.c; the header has been checked. */
void sw_admit_hello(struct sw_server *srv, const struct sw_rx_frame *f,
	const uint8_t *payload);
void sw_admit_join(struct sw_server *srv, struct sw_path path,
	const struct sw_header *h, const uint8_t *payload);
void sw_admit_declare(struct sw_server *srv, struct sw_session *s,
	const struct sw_header *h, const uint8_t *payload);
/* sw_admit_check - may it join now?  Else it was told why not. */
bool sw_admit_check(struct sw_server *srv, const struct sw_pending *p);
/* sw_admit_refuse - tell whoever is behind a JOIN that it cannot be let in. */
void sw_admit_refuse(struct sw_server *srv, const struct sw_pending *p, int err,
	const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* admit_pending.c */
/* sw_pending_put - keep the JOIN and offer a session; the same one again: offer
 * the same.  False: all places are taken by sessions. */
bool sw_pending_put(struct sw_server *srv, const struct sw_pending *p);
/* sw_pending_drop - forget the JOIN at @i. */
void sw_pending_drop(struct sw_server *srv, uint32_t i);
/* sw_pending_confirm - the worker behind the JOIN at @i has spoken under the id
 * that it was offered: it is a member from now on.  NULL: it cannot be any
 * more, as it was told. */
struct sw_session *sw_pending_confirm(struct sw_server *srv, uint32_t i);
/* sw_pending_build - the ACCEPT that is owed at @i. */
void sw_pending_build(
	struct sw_server *srv, uint32_t i, struct sw_tx_frame *out);
/* sw_pending_tick - timers; returns when to look again. */
uint64_t sw_pending_tick(struct sw_server *srv, uint32_t i);

/* sw_admit_drop - the batch whose memory is being prepared for the job will not
 * be declared again: its memory and its part of the quotas go back. */
void sw_admit_drop(struct sw_server *srv, struct sw_job *job);
/* admit_limit.c: may @ip, which has shown a cookie, send one more JOIN?  If not
 * it is counted, and said in the log, seldom. */
bool sw_admit_allows(struct sw_server *srv, uint32_t ip);

/* share.c */
struct sw_share sw_share_of(const struct sw_server *srv, const char *job);
/* sw_share_check - are @need bytes left of the server's quota and of the job's?
 * Else the worker was told. */
bool sw_share_check(struct sw_server *srv, struct sw_session *s, uint64_t need);
/* sw_share_take - they are this lcore's.  False: another one took them since
 * they were there; then the worker asks again, and the check says no. */
bool sw_share_take(struct sw_server *srv, struct sw_job *job, uint64_t need);
/* sw_share_give - they come back. */
void sw_share_give(struct sw_server *srv, struct sw_job *job, uint64_t bytes);
/* sw_share_tick - look who is active and divide the windows; returns when to
 * look again. */
uint64_t sw_share_tick(struct sw_server *srv);

static inline uint32_t sw_job_index(
	const struct sw_server *srv, const struct sw_job *job)
{
	return (uint32_t)(job - srv->jobs);
}

/* job.c */
struct sw_job *sw_job_find(struct sw_server *srv, const char *name);
struct sw_job *sw_job_open(struct sw_server *srv, const struct sw_join *join);

/* sw_join_place - the facts in a JOIN that decide where chunks lie. */
struct sw_place_job sw_join_place(const struct sw_join *join);
bool sw_job_has_room(const struct sw_server *srv);
/* sw_job_enter - the worker behind @s is the member of @join's rank. */
void sw_job_enter(struct sw_server *srv, struct sw_job *job,
	struct sw_session *s, const struct sw_join *join);
/* sw_job_leave - a member is gone; err != 0 fails the job of a coordinator;
 * the last one closes the job. */
void sw_job_leave(struct sw_server *srv, struct sw_job *job, uint16_t rank,
	int err, const char *text);
/* sw_job_left - one of @members that has left without an error (of any other
 * the coordinator says why, if it ends the job), SW_MAX_MEMBERS when none. */
uint32_t sw_job_left(const struct sw_job *job, uint64_t members);
void sw_job_fail(struct sw_server *srv, struct sw_job *job, uint16_t rank,
	int err, const char *text);
void sw_job_close(struct sw_server *srv, struct sw_job *job);
/* sw_job_announce - something changed: every member is told until it has
 * acknowledged it. */
void sw_job_announce(struct sw_server *srv, struct sw_job *job);
/* sw_job_status - the state as member @rank is told it. */
void sw_job_status(
	const struct sw_job *job, uint16_t rank, struct sw_status *out);

/* job_wait.c: whom a job that forms waits for */
/* sw_job_describe - what is known of those that are missing, and the addresses
 * of those that are here; cut to @size. */
void sw_job_describe(const struct sw_job *job, char *text, size_t size);
/* sw_job_wait - it forms from now on; sw_job_tell_waiting - say so in the log,
 * ever more seldom; called when now_ns has come to wait_at_ns. */
void sw_job_wait(struct sw_server *srv, struct sw_job *job);
void sw_job_tell_waiting(struct sw_server *srv);
/* sw_job_note_refused - a worker that the job may wait for was refused. */
void sw_job_note_refused(struct sw_server *srv, const struct sw_pending *p,
	int err, const char *why);

/* job_knobs.c: the coordinator's part of knobs.h */
/* sw_job_tune - a member asks for other knobs: they are numbered once, and all
 * are told. */
void sw_job_tune(
	struct sw_server *srv, struct sw_session *s, const uint8_t *payload);

#endif
