/* server_int.h - the state of a server: jobs, members, sessions.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Files call downwards: server.c, server_tick.c and server_tx.c take frames,
 * have the timers and send; admit.h, who and what is let in; mismatch.h,
 * tensors that members call differently; job.h, the members and the state of a
 * job; session.h, what is said to a worker; share.h, what a job gets.
 */
#ifndef SW_SERVER_INT_H
#define SW_SERVER_INT_H

#include "engine/peer/peer.h"
#include "engine/sched/drr.h"
#include "engine/sched/due.h"
#include "engine/sched/tuning.h"
#include "engine/server/server.h"
#include "engine/sums/shard.h"

enum {
	SW_REPLIES = 16,      /* answers to strangers that wait on a port */
	SW_DECLARE_MAX = 512, /* tensors in one DECLARE frame */
};

struct sw_member {
	struct sw_session *session; /* NULL: not here */
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
	struct sw_job_tuning tuning; /* the newest; number 0: the JOINs' */
	struct sw_shard shard;
	struct sw_due due[SW_MAX_PORTS]; /* results, by class */
	struct sw_member members[SW_MAX_MEMBERS];
	char name[SW_NAME_MAX];
	char text[SW_TEXT_MAX]; /* FORMING: who is known; FAILED: why */
};

enum { SW_KEY_WORDS = SW_MAX_TENSORS / 64 + 1 }; /* a set of keys */

struct sw_session {
	struct sw_peer peer; /* its id: index << 16 | generation */
	struct sw_server *srv;
	struct sw_job *job;
	uint16_t member;
	uint64_t nonce;        /* of its JOIN */
	uint64_t status_at_ns; /* when to say the state again */
	uint64_t status_wait_ns;
	uint64_t error_at_ns; /* not before then */
	uint16_t status_seq;  /* acknowledged */
	uint32_t n_answers;
	/* Keys of dead tensors (mismatch.c): that it is to be told of; that it
	 * is told of again, until it says that it knows. */
	struct sw_bitmap to_tell, unaware;
	uint64_t key_words[2 * SW_KEY_WORDS];
	uint64_t unaware_at_ns, unaware_wait_ns;
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
	uint64_t rx_ns, accept_at_ns, accept_wait_ns;
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

/* Those that came last; more share the entry 0. */
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

_Static_assert(
	(int)SW_MEM_OWNERS == (int)SW_MAX_JOBS, "memory is prepared by job");

struct sw_server {
	struct sw_node node;
	struct sw_params params;
	const struct sw_env *env;
	struct sw_stats stats;
	uint64_t now_ns, gap_ns;
	uint64_t quota_bytes, used_bytes;
	_Atomic uint64_t *all_used; /* as struct sw_share */
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

static inline uint32_t sw_job_index(
	const struct sw_server *srv, const struct sw_job *job)
{
	return (uint32_t)(job - srv->jobs);
}

/* sw_server_tick - node.tick: timers (server_tick.c). */
uint64_t sw_server_tick(struct sw_node *node, uint64_t now_ns, uint64_t gap_ns);

/* sw_server_tx - node.tx: replies to strangers, then control frames, then
 * results by class (server_tx.c). */
bool sw_server_tx(struct sw_node *node, uint64_t now_ns, uint32_t port_i,
	struct sw_tx_frame *out);

#endif
