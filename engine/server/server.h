/* server.h - the summation service of one lcore: jobs, sessions, frames.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The loop passes frames in, takes frames out, and asks for the next deadline.
 * One thread, its lcore, makes all calls below unless a comment says otherwise.
 */
#ifndef SW_ENGINE_SERVER_SERVER_H
#define SW_ENGINE_SERVER_SERVER_H

#include "engine/base/env.h"
#include "engine/base/limits.h"
#include "engine/base/params.h"
#include "engine/base/stats.h"
#include "engine/loop/engine.h"
#include "engine/peer/peer_view.h"
#include "engine/wire/wire.h"

/* A job's share of a server. */
struct sw_share {
	const char *job;
	uint32_t weight; /* its weight against other jobs under load */
	uint64_t quota_bytes;
	/* Bytes that all lcores of the process have taken of the quota, which
	 * they share; borrowed.  NULL: this lcore is the only one. */
	_Atomic uint64_t *all_used;
};

struct sw_server;

/* sw_server_open - open an idle server, *out.
 * @params, @env  env is borrowed until close
 * @ports  n_ports of them; the fields ip, udp, max_payload, is_inner and
 *         is_trusted are read
 * @quota_bytes  for all jobs together
 * Errors: SW_EINVAL too many ports; SW_ENOMEM.  Then *out is NULL. */
int sw_server_open(struct sw_server **out, const struct sw_params *params,
	const struct sw_env *env, struct sw_port *const *ports,
	uint32_t n_ports, uint64_t quota_bytes);

/* sw_server_set_lcores - make it one of @n lcores that serve in this process.
 * They share the quota (@all_used as in struct sw_share) and the queue before
 * them, which their grants fit together.  Call before the first frame. */
void sw_server_set_lcores(
	struct sw_server *srv, uint32_t n, _Atomic uint64_t *all_used);

/* sw_server_set_keys - admit members of keyed jobs, by the secrets in @keyring,
 * which is borrowed until close or until another one is set.  Call it before
 * the first frame, or from the server's lcore: then JOINs from now on need the
 * new one, and sessions end whose secrets were taken away: their job's own, or
 * that of all jobs.  A secret that was replaced keeps its sessions. */
struct sw_keyring;
void sw_server_set_keys(
	struct sw_server *srv, const struct sw_keyring *keyring);

/* sw_server_engine - return the part that a loop drives. */
struct sw_engine *sw_server_engine(struct sw_server *srv);

/* sw_server_stats - return the counters.  Thread: any (sw_stats_add). */
const struct sw_stats *sw_server_stats(const struct sw_server *srv);

/* sw_server_share - set the shares of named jobs.  An unnamed job has weight 1
 * and no quota of its own.  Affects jobs opened later; @shares is borrowed
 * until close.  Errors: SW_EINVAL, a weight is not 1…SW_MAX_WEIGHT. */
int sw_server_share(
	struct sw_server *srv, const struct sw_share *shares, uint32_t n);

/* sw_server_reshare - use changed weights and quotas in the borrowed @shares,
 * in open jobs, too.  A job that exceeds its new quota keeps what it has.
 * Thread: the server's. */
void sw_server_reshare(struct sw_server *srv);

/* A network: addresses whose first @bits bits are those of @ip. */
struct sw_net {
	struct sw_ip ip;
	uint32_t bits;
};

/* Jobs and networks whose agents may join. */
struct sw_guests {
	const char *jobs; /* names, separated by commas; '*' at the end of one
			     stands for any text; "": every job */
	const struct sw_net *nets;
	uint32_t n_nets; /* 0: every network */
};

/* sw_server_limit - admit only @guests from now on; they are borrowed until
 * close. An agent behind an inner port is this node's own, and needs no
 * network. */
void sw_server_limit(struct sw_server *srv, const struct sw_guests *guests);

/* sw_server_close - drop all sessions and jobs, and free all memory.  @srv may
 * be NULL. */
void sw_server_close(struct sw_server *srv);

/* sw_server_copy_lent - copy some of the contributions that sums refer to in
 * their senders' memory (shard.h), before that memory changes.  Returns true
 * when all are copied.
 * sw_server_keep_stream - do so for the contributions to stream @key. */
bool sw_server_copy_lent(struct sw_server *srv);
bool sw_server_keep_stream(struct sw_server *srv, uint32_t key);

/* sw_server_stop - admit no worker and begin no sum from now on.  Sums that
 * wait for members continue until close. */
void sw_server_stop(struct sw_server *srv);

/* sw_server_fail_all - tell every member that this server stops. */
void sw_server_fail_all(struct sw_server *srv, const char *why);

/* sw_job_bytes - return what a job of @n_members takes here at most, besides
 * its tensors (shard.h): tables, and a session for each member.  Linear in
 * @n_members. */
uint64_t sw_job_bytes(uint32_t n_members);

/* sw_server_has_job - is a job open, or still closing?  Its members may have no
 * tensors yet. */
bool sw_server_has_job(const struct sw_server *srv);

/* A member of a job, as the server knows it. */
struct sw_server_member {
	uint16_t first, n_local; /* its ranks; n_local 0: it has not joined */
	bool is_ranked;          /* first is known */
	bool is_here, has_left;
	/* Samples in which its contribution was the last of all: the time since
	 * the first one. */
	struct sw_histogram late;
	uint64_t push_bytes, result_bytes; /* payloads folded and sent */
	/* If it is connected: the path, and the largest payload it carries. */
	struct sw_peer_view path;
	uint32_t payload;
	char node[SW_NAME_MAX];
};

/* A job as one lcore of a server sees it. */
struct sw_server_job {
	char name[SW_NAME_MAX];
	uint8_t state;       /* enum sw_job_state */
	bool is_coordinated; /* by this lcore */
	bool is_closing;     /* its last member has left */
	bool is_keyed;       /* frames of its members have tags */
	bool is_encrypted;
	uint16_t n_members, n_here; /* members expected; connected */
	uint16_t n_ranks;           /* ranks of connected members */
	uint16_t size;              /* ranks of the job; 0: not known yet */
	/* Largest payload that the members agreed on, 0: not yet, and that this
	 * server's ports carry. */
	uint32_t payload, most_payload;
	uint64_t age_ns, idle_ns; /* since it was opened; since the last push */
	uint64_t open_chunks, open_slots; /* slots: those of groups */
	uint64_t done_chunks;
	uint64_t missing;    /* members that are not connected, a bit each */
	struct sw_fault why; /* the missing members, or why the job failed */
	struct sw_server_member members[SW_MAX_MEMBERS];
};

/* A tensor or stream with chunks that wait. */
struct sw_server_wait {
	uint32_t job; /* index of its job below */
	uint32_t n_open;
	bool is_stream;
	uint8_t kind; /* stream: enum sw_coll_kind of its oldest */
	uint32_t
		number; /* stream: its number in the group; tensor: the round */
	uint64_t still_ns; /* time without progress */
	uint64_t lacks;    /* members that it waits for; 0: not known */
	char name[SW_NAME_MAX];
};

enum { SW_LOOK_JOBS = 8, SW_LOOK_WAITS = 32 };

/* The state of a server, and the position of a look that goes on. */
struct sw_server_view {
	uint32_t n_jobs, n_waits;
	uint32_t n_more; /* tensors that wait, beside those listed */
	struct sw_server_job jobs[SW_LOOK_JOBS];
	struct sw_server_wait waits[SW_LOOK_WAITS];
	/* Position: the job's slot, whether it is in @jobs, and within it. */
	uint32_t slot;
	bool is_begun;
	uint32_t index, chunk, n_found, round;
	uint64_t lacks;
};

/* sw_server_describe - describe the open jobs, and what their sums wait for.
 * Each call does a part; returns true when all is done.  @l is zeroed before
 * the first call. */
bool sw_server_describe(
	const struct sw_server *srv, uint64_t now_ns, struct sw_server_view *l);

/* sw_server_open_chunks - count the chunks that wait for members, which
 * stopping now would drop. */
uint64_t sw_server_open_chunks(const struct sw_server *srv);

#endif
