/* server.h - the summation service of one lcore: jobs, sessions, frames.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames in, frames out, next deadline.  server.c takes frames, server_tx.c
 * sends, server_tick.c has the timers, admit.c and admit_declare.c let workers
 * and tensors in, job.c keeps members and the state of a job (the coordinator's
 * part), shard.c sums.
 */
#ifndef SW_SERVER_H
#define SW_SERVER_H

#include "engine/drr.h"
#include "engine/due.h"
#include "engine/knobs.h"
#include "engine/node.h"
#include "engine/shard.h"

enum {
	SW_REPLIES = 16,      /* answers to strangers that wait on a port */
	SW_DECLARE_MAX = 512, /* tensors in one DECLARE frame */
	SW_NO_SESSION = UINT16_MAX,
};

/* Control frames that a session owes; the lowest bit leaves first. */
enum sw_owed {
	SW_OWE_ERROR,
	SW_OWE_ACCEPT,
	SW_OWE_STATUS,
	SW_OWE_DECLARED,
	SW_OWE_ANSWER,
	SW_OWE_ACK,
	SW_OWE_KEEPALIVE,
	SW_N_OWED,
};

struct sw_member {
	uint16_t session_i; /* SW_NO_SESSION: not here */
	uint16_t n_local;
	uint64_t incarnation; /* of the last session, also when it has gone */
	bool has_left;        /* was here and left, or died */
	bool is_done;         /* left without an error */
	uint32_t request;     /* its last TUNE that was numbered */
	char node[SW_NAME_MAX];
};

struct sw_job {
	bool is_used;
	bool is_coordinated; /* this server is the job's coordinator */
	enum sw_job_state state;
	uint64_t epoch;
	uint64_t joined; /* members whose session is confirmed */
	uint16_t n_members;
	int16_t err; /* FAILED: why, and through which member */
	uint16_t err_rank;
	uint16_t seq; /* of the state; grows with every change */
	uint32_t weight;
	uint64_t quota_bytes;
	_Atomic uint64_t *all_used;   /* as struct sw_share */
	uint64_t n_folded, active_ns; /* when contributions came last */
	struct sw_params params;
	struct sw_knobs knobs; /* committed last; number 0: the JOINs' */
	struct sw_knobs next;  /* proposed; policy NULL: none is */
	uint64_t promised;     /* members that have answered to it */
	uint32_t limit;        /* no round above has begun at any of them */
	struct sw_shard shard;
	struct sw_due due[SW_MAX_PORTS]; /* results, by class */
	struct sw_member members[SW_MAX_MEMBERS];
	char name[SW_NAME_MAX];
	char text[SW_TEXT_MAX];
};

struct sw_session {
	uint32_t id;   /* ours: index << 16 | generation */
	uint32_t peer; /* the worker's */
	struct sw_path path;
	struct sw_job *job;
	uint16_t member;
	uint16_t join_bytes; /* of its JOIN: so long is ACCEPT */
	uint8_t due_class;   /* set in which the session stands, or 8 */
	bool is_confirmed;   /* its worker has spoken under the id */
	bool has_crc;        /* data payloads to it and from it */
	uint64_t nonce, incarnation;
	uint64_t heard_ns;
	uint64_t sent_ns;      /* control: data that is lost proves no life */
	uint64_t status_at_ns; /* when to say ACCEPT, or the state, again */
	uint64_t status_wait_ns;
	uint64_t error_at_ns; /* not before then */
	uint16_t status_seq;  /* acknowledged */
	uint32_t owed;        /* bits of enum sw_owed */
	uint32_t turn_order;  /* where the next result in turn goes on */
	uint32_t n_answers;
	uint32_t batch; /* next DECLARE expected */
	uint16_t n_declared;
	struct sw_fault fault; /* err 0: none */
	struct sw_answer answers[SW_PULL_MAX];
	/* keys of the last batch, and their places */
	uint32_t declared[SW_DECLARE_MAX], firsts[SW_DECLARE_MAX];
	struct sw_flow flow;
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
	struct sw_due due[SW_MAX_PORTS]; /* control frames */
	struct sw_drr drr[SW_MAX_PORTS]; /* jobs with results */
	struct sw_session *sessions[SW_MAX_SESSIONS];
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
 * by stopping now. */
uint64_t sw_server_open_chunks(const struct sw_server *srv);

/* --- between server.c, admit.c and job.c --- */

static inline uint32_t sw_session_index(const struct sw_session *s)
{
	return s->id >> 16;
}

/* sw_session_touch - a frame came from it or goes to it: a timer may have been
 * set, none shorter than ack_delay. */
static inline void sw_session_touch(
	struct sw_server *srv, const struct sw_session *s)
{
	uint64_t *at = &srv->tick_at_ns[sw_session_index(s)];

	if (*at > srv->now_ns + srv->params.ack_delay)
		*at = srv->now_ns + srv->params.ack_delay;
}

/* sw_session_fate - what became of a RESULT; @ctx is the session. */
void sw_session_fate(void *ctx, const struct sw_sent *sent, uint32_t class,
	enum sw_fate fate);

/* sw_session_owe - a control frame is due. */
void sw_session_owe(
	struct sw_server *srv, struct sw_session *s, enum sw_owed what);

/* sw_session_refresh - put the session into the set of its most urgent result
 * that it has credit for. */
void sw_session_refresh(struct sw_server *srv, struct sw_session *s);

/* sw_session_close - forget it; its member has left. */
void sw_session_close(struct sw_server *srv, struct sw_session *s);

/* sw_session_drop - close a session that was never confirmed, and its job if
 * it has no other. */
void sw_session_drop(struct sw_server *srv, struct sw_session *s);

/* sw_session_fail - tell this worker that it cannot go on. */
void sw_session_fail(struct sw_server *srv, struct sw_session *s, int err,
	uint32_t key, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* server_fail.c: of a push that differs from what another rank does
 * with the tensor, both are named; what is pulled waits for @rank, which left.
 */
void sw_session_fail_differs(
	struct sw_server *srv, struct sw_session *s, const struct sw_header *h);
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

/* share.c */
struct sw_share sw_share_of(const struct sw_server *srv, const char *job);
/* sw_share_check - are @need bytes left of the server's quota and of the job's?
 * Else the worker was told. */
bool sw_share_check(struct sw_server *srv, struct sw_session *s, uint64_t need);
/* sw_share_take - they are this lcore's.  False: another one took them since
 * they were there; then the worker asks again, and the check says no. */
bool sw_share_take(
	struct sw_server *srv, const struct sw_job *job, uint64_t need);
/* sw_share_give - they come back. */
void sw_share_give(
	struct sw_server *srv, const struct sw_job *job, uint64_t bytes);
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
/* sw_job_enter - @s has the place of @join's rank; the member counts when it
 * is confirmed. */
void sw_job_enter(struct sw_server *srv, struct sw_job *job,
	struct sw_session *s, const struct sw_join *join);
/* sw_job_confirm - the worker behind @s has spoken under its id. */
void sw_job_confirm(
	struct sw_server *srv, struct sw_job *job, struct sw_session *s);
/* sw_job_forget - @rank has no session, and the one that it may have had was
 * never confirmed; a job without any is closed. */
void sw_job_forget(struct sw_server *srv, struct sw_job *job, uint16_t rank);
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

/* job_knobs.c: the coordinator's part of knobs.h */
/* sw_job_tune - a member asks for other knobs.  It is numbered unless a change
 * before it is not known to all yet: then it will come again. */
void sw_job_tune(
	struct sw_server *srv, struct sw_session *s, const uint8_t *payload);
/* sw_job_promise - a member begins no round above @limit before proposal
 * @number is committed. */
void sw_job_promise(struct sw_server *srv, struct sw_session *s,
	uint32_t number, uint32_t limit);
/* sw_job_is_answered - has the member acknowledged the state, and promised if
 * that is a proposal? */
bool sw_job_is_answered(const struct sw_session *s);
/* sw_job_commit_if_all - a promise came, or a member that owed one left. */
void sw_job_commit_if_all(struct sw_server *srv, struct sw_job *job);

#endif
