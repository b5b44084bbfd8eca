/* server_int.h - the state of a server: jobs, members, sessions, JOINs.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Each file calls only files below it in this list, through their headers:
 * server.c runs the timers, server_rx.c takes frames, and server_tx.c sends
 * frames; admit*.c admits workers and tensors; job.c keeps a job's members and
 * state; describe.c describes jobs to the daemon; groups.c ends and closes
 * groups; session.c tracks the frames that the server owes a worker; share.c
 * divides the server among jobs. */
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

enum {
	SW_REPLIES = 16, /* replies to strangers queued on a port */
	/* After looking at this many tensors, a burst or a tick puts further
	 * DECLAREs aside. */
	SW_DECLARE_BURST = 64,
	/* Words of a set of key indices. */
	SW_KEY_WORDS = SW_MAX_TENSORS / 64 + 1,
	/* Streams of a job that one tick checks for members that have left. */
	SW_JOB_BURST = 32,
	/* JOINs that a source may send at once, and the time until it may send
	 * one more.  A worker that keeps asking sends two per second. */
	SW_JOIN_BURST = 64,
	SW_JOIN_EVERY_MS = 125,
	SW_JOIN_SOURCES = 256,
	/* While sessions are open: HELLOs answered at once, and the time until
	 * the server answers one more. */
	SW_HELLO_BURST = 256,
	SW_HELLO_EVERY_US = 250,
	/* In SW_QUIET_S the log gets one line of each kind about a stranger's
	 * address, and at most SW_LINES about all strangers. */
	SW_QUIET_S = 60,
	SW_LINES = 64,
	/* Words of a set of sessions. */
	SW_SESSION_WORDS = SW_MAX_SESSIONS / 64,
	SW_MEMBER_TEXT = 80, /* size of sw_member_text */
};

struct sw_member {
	struct sw_session *session; /* NULL: the member is not connected */
	uint16_t n_local;
	uint16_t payload; /* largest that its paths carry; 0: unknown */
	struct sw_ip ip;  /* the last session's address, kept after its end */
	/* The last JOIN, if the server refused it; err 0: it did not. */
	struct sw_ip refused_ip;
	int16_t refused_err;
	char node[SW_NAME_MAX];
};

/* A limit on memory, and the bytes in use. */
struct sw_quota {
	uint64_t bytes, used_bytes;
	_Atomic uint64_t *all_used; /* as in struct sw_share */
};

struct sw_job {
	struct sw_server *srv;
	bool is_coordinated; /* this server coordinates the job */
	uint16_t n_members;
	uint16_t n_sessions; /* 0: this entry has no job */
	/* The STATUS for all members, without each member's own fields. */
	struct sw_status status;
	/* The last session has ended, and each tick frees a part of the job. */
	bool is_closing;
	/* Where sw_job_close_left continues; SW_KEY_NONE: nothing to do. */
	uint32_t close_at;
	uint64_t left; /* members that were connected and left, or died */
	/* Members in @left that left without an error; in a running
	 * asynchronous job, which continues, every member in @left.  Other
	 * members learn of it only when they wait for such a member. */
	uint64_t done;
	/* The fault of a member that left with an error, until judge (job.c)
	 * decides whether the job continues; err 0: none.  is_needed: at least
	 * one group has lost no member. */
	struct sw_fault lost;
	uint16_t lost_member;
	bool is_needed;
	/* FORMING: the pause before the next log line about it, and when that
	 * line is due. */
	uint64_t wait_ns, wait_at_ns;
	/* Members whose TUNE waits until all members have acknowledged the last
	 * state, and the member whose TUNE was numbered last. */
	uint64_t asking;
	uint16_t asked_last;
	uint32_t weight;
	struct sw_quota quota;
	/* Bytes of the quota taken for a batch whose memory is being prepared,
	 * and the session that declared the batch; 0: none (admit_declare.c).
	 */
	uint64_t asked_bytes;
	uint32_t asker;
	/* Contributions folded by the last look, and when a look last saw new
	 * contributions. */
	uint64_t n_folded, active_ns;
	uint64_t opened_ns;
	/* The first member's JOIN: all members agree on its terms. */
	struct sw_join terms;
	/* The payload is settled as soon as the coordinator has announced it.
	 */
	struct sw_params params;
	bool is_settled;
	/* The first member from another machine decides whether such members
	 * have tags or CRCs.  A keyed job's results are hashed under a key of
	 * this run.  The id of the secret that all members have; 0: none. */
	uint64_t key_id;
	bool is_plain;
	/* A member in this process or at a trusted port has no keys, and reads
	 * results in the clear. */
	bool has_inner;
	struct sw_result_keys *results; /* NULL: no member has tags */
	uint64_t probed;                /* members that have sent PATHS */
	struct sw_shard shard;
	struct sw_crowd crowd;           /* sessions on other machines */
	struct sw_session *sessions;     /* by member; zeroed if never used */
	struct sw_due due[SW_MAX_PORTS]; /* sessions with results, by class */
	uint64_t here[SW_SESSION_WORDS]; /* indices of its sessions */
	struct sw_member members[SW_MAX_MEMBERS];
	char name[SW_NAME_MAX];
};

struct sw_session {
	struct sw_server *srv;
	struct sw_job *job;
	uint16_t member;
	uint32_t status_number; /* message number of its last STATUS */
	/* Its last TUNE; valid while job->asking has its bit. */
	struct sw_tune_ask ask;
	uint16_t probe_bytes; /* payload of the PROBE to answer */
	uint64_t probed_ns;   /* when the last PROBE of a running job arrived */
	/* When the server may next answer a frame of the session with its
	 * fault; UINT64_MAX: no fault.  ERROR is no message of the control
	 * stream, because it must not wait for a worker that acknowledges
	 * nothing, and a refused JOIN or an expelled session has no stream. */
	uint64_t error_at_ns;
	struct sw_peer peer;   /* its id is index << 16 | generation */
	struct sw_fault fault; /* err 0: none */
	uint64_t nonce;        /* the nonce of its JOIN */
	uint64_t key_id;       /* names its secret; 0: none */
	bool has_own_key;      /* the secret is for this job alone */
	uint32_t n_answers;
	struct sw_bitmap ends; /* indices of groups whose END is due */
	uint64_t end_words[SW_KEY_WORDS];
	uint32_t n_queries; /* QUERY frames received */
	/* The DECLARE put aside (srv->aside); length 0: none. */
	uint16_t declare_len;
	uint8_t declare[SW_ORDERED_MAX];
	uint16_t n_declared;
	/* Why the server refused the last tensor; err 0: it did not. */
	struct sw_fault refused;
	struct sw_answer answers[SW_QUERY_MAX];
	/* The last batch's keys, and their places on the line. */
	uint32_t declared[SW_DECLARE_MAX], firsts[SW_DECLARE_MAX];
};

/* A JOIN whose worker has not yet sent a frame with the offered session id.
 * The JOIN holds only a place in the table, and a newer JOIN may evict it. */
struct sw_pending {
	uint32_t id; /* id of the offered session; 0: the place is free */
	struct sw_path path;
	struct sw_join join;
	uint16_t join_bytes; /* payload length of the JOIN, and so of ACCEPT */
	bool is_owed;        /* ACCEPT is due */
	/* Keyed: the session's keys, the ACCEPT, which is built once, and the
	 * two keys of results that the ACCEPT carries (admit_keys.c). */
	struct sw_seal *seal;
	uint8_t e[SW_NOISE_E_BYTES]; /* the worker's */
	uint8_t accept[SW_ACCEPT_KEYED];
	uint8_t results[2 * SW_BLOCK_BYTES];
	bool is_of_run;     /* @results are an open job's keys, not new ones */
	uint32_t n_accepts; /* ACCEPTs sent; the packet number of the last */
	uint64_t rx_ns, accept_at_ns, accept_wait_ns;
};

/* The token bucket of a source for events of one kind, stored as the time when
 * it is full (sw_token_take). */
struct sw_source {
	struct sw_ip net;
	enum sw_source_kind { SW_JOINS, SW_LINE_JOINS, SW_LINE_KEY } kind;
	uint64_t full_ns;
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
	void *mem; /* the allocation that holds this struct */
	struct sw_stats stats;
	uint64_t now_ns, gap_ns;
	struct sw_quota quota;
	uint64_t secret[2];
	const struct sw_keyring *keyring; /* NULL: no keys */
	bool has_tags; /* some sessions may have tags: check each by its own */
	uint64_t hello_full_ns; /* bucket of all HELLOs (sw_source) */
	uint32_t n_lcores; /* lcores of this process that serve; 1 after open */
	uint32_t n_ports;
	uint32_t max_payload[SW_MAX_PORTS];
	bool is_inner[SW_MAX_PORTS], is_trusted[SW_MAX_PORTS];
	struct sw_ip ip[SW_MAX_PORTS]; /* this server's */
	uint16_t udp[SW_MAX_PORTS];    /* UDP port of the first endpoint */
	const struct sw_share *shares;
	uint32_t n_shares;
	const struct sw_guests *guests; /* NULL: every agent may join */
	uint32_t active; /* jobs active at the last look, as bits */
	bool is_shared;  /* several jobs, some of them active */
	uint64_t look_at_ns;
	uint64_t wait_at_ns; /* when the next line about a FORMING job is due */
	/* Sessions and JOINs with a control frame to send. */
	struct sw_due due[SW_MAX_PORTS];
	struct sw_drr drr[SW_MAX_PORTS]; /* jobs with results to send */
	/* Sessions from which frames arrived, and sessions whose results may
	 * have become ready or stale.  sw_server_look looks at both before the
	 * server sends. */
	uint64_t received[SW_SESSION_WORDS], touched[SW_SESSION_WORDS];
	struct sw_session *sessions[SW_MAX_SESSIONS];
	/* A JOIN uses the index that its session will have. */
	struct sw_pending pending[SW_MAX_SESSIONS];
	/* Sources that find no bucket of their own share the first one: for
	 * JOINs, and for log lines. */
	struct sw_source sources[SW_JOIN_SOURCES];
	struct sw_source lines[SW_LINES];
	uint16_t generations[SW_MAX_SESSIONS];
	uint32_t n_sessions; /* above the indices of all sessions and JOINs */
	uint32_t n_open;     /* open sessions */
	/* A lower bound of the session's next timer. */
	uint64_t tick_at_ns[SW_MAX_SESSIONS];
	struct sw_grants grants; /* shared by the sessions of other machines */
	uint64_t paused_ns;      /* no timers of sessions fire until then */
	struct sw_job jobs[SW_MAX_JOBS];
	/* Two queues, so that a flood of HELLOs does not displace other
	 * replies. */
	struct sw_replies cookies[SW_MAX_PORTS], replies[SW_MAX_PORTS];
	bool has_cookie_turn;
	/* Tensors of DECLAREs looked at in this burst or tick. */
	uint32_t n_looked;
	/* Sessions whose DECLARE is put aside, and when to try again. */
	struct sw_due_set aside;
	uint64_t aside_at_ns;
	bool is_stopping;
	bool is_ending; /* sw_jobs_end has groups or jobs to free */
	/* Sessions have opened or closed since the windows were divided. */
	bool has_changed;
	/* Payloads of the control frames being sent, and where the next payload
	 * goes. */
	uint8_t payload[2 * SW_PAYLOAD_MAX], *next;
	struct sw_tagging tagging; /* the results being sent to a session */
	/* Ring of encrypted payloads of the results being sent. */
	uint32_t n_ciphers;
	_Alignas(64) uint8_t ciphers[SW_TX_BURST][SW_PAYLOAD_MAX];
};

static inline uint32_t sw_job_index(const struct sw_job *job)
{
	return (uint32_t)(job - job->srv->jobs);
}

/* sw_job_all - return all members of @job as bits, joined or not. */
static inline uint64_t sw_job_all(const struct sw_job *job)
{
	return ~0ULL >> (64 - job->n_members);
}

/* --- server_rx.c, server_tx.c --- */

/* sw_server_rx - handle a burst (engine.rx): look up each run of PUSHes once,
 * then look at the sessions that may send something now. */
void sw_server_rx(struct sw_engine *engine, uint64_t now_ns, uint32_t port_i,
	const struct sw_rx_frame *frames, uint32_t n);

/* sw_server_tx - send (engine.tx): first replies to strangers, one a call, then
 * control frames, then results by class. */
uint32_t sw_server_tx(struct sw_engine *engine, uint64_t now_ns,
	uint32_t port_i, struct sw_tx_frame *out, uint32_t max);

/* sw_server_build - build a control frame (hub.build). */
uint32_t sw_server_build(
	struct sw_peer *p, enum sw_owed what, struct sw_header *h);

/* --- describe.c --- */

/* sw_server_peer, sw_server_tensor - name a session or tensor for a trace, as
 * in struct sw_engine. */
bool sw_server_peer(
	const struct sw_engine *engine, uint32_t i, struct sw_engine_peer *out);
bool sw_server_tensor(const struct sw_engine *engine, uint32_t i, uint32_t key,
	struct sw_engine_tensor *out);

#endif
