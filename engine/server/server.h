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
#include "engine/sums/shard.h"
#include "engine/wire/wire.h"

/* A job's share of a server. */
struct sw_share {
	const char *job;
	uint32_t weight; /* its weight against other jobs under load */
	uint64_t quota_bytes;
	/* The bytes that all lcores of the process have taken from the quota,
	 * which the lcores share; borrowed.  NULL: this lcore is the only one.
	 */
	_Atomic uint64_t *all_used;
};

struct sw_server;

/* sw_server_open - open an idle server, *out.
 * @params, @env  env is borrowed until close
 * @ports  n_ports ports; open reads their fields ip, udp, max_payload, is_inner
 *         and is_trusted
 * @quota_bytes  memory limit of all jobs together
 * Errors: SW_EINVAL too many ports; SW_ENOMEM.  Then *out is NULL. */
int sw_server_open(struct sw_server **out, const struct sw_params *params,
	const struct sw_env *env, struct sw_port *const *ports,
	uint32_t n_ports, uint64_t quota_bytes);

/* sw_server_set_lcores - make @srv one of @n lcores that serve in this process.
 * The lcores share the quota (@all_used as in struct sw_share) and the receive
 * queue, which must hold all their grants together.  Call before the first
 * frame. */
void sw_server_set_lcores(
	struct sw_server *srv, uint32_t n, _Atomic uint64_t *all_used);

/* sw_server_set_keys - admit members of keyed jobs by the secrets in @keyring,
 * which is borrowed until close or the next call.  Call it before the first
 * frame, or from the server's lcore: later JOINs then need a secret in the new
 * keyring.  If a job's own secret or the secret of all jobs was removed without
 * a replacement, its sessions end.  Sessions of a replaced secret continue. */
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

/* sw_server_reshare - apply changed weights and quotas in the borrowed @shares,
 * also to open jobs.  A job that exceeds its new quota keeps its memory.
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

/* sw_server_limit - admit only @guests from now on; @guests is borrowed until
 * close.  An agent behind an inner port belongs to this node, so its network is
 * not checked. */
void sw_server_limit(struct sw_server *srv, const struct sw_guests *guests);

/* sw_server_close - drop all sessions and jobs, and free all memory.  @srv may
 * be NULL. */
void sw_server_close(struct sw_server *srv);

/* sw_server_copy_lent - copy some of the contributions that sums borrow from
 * their senders' memory (shard.h).  Call before that memory changes, until it
 * returns true: all are copied.
 * sw_server_keep_stream - copy some of the contributions to stream @key. */
bool sw_server_copy_lent(struct sw_server *srv);
bool sw_server_keep_stream(struct sw_server *srv, uint32_t key);

/* sw_server_stop - stop admitting workers and beginning sums.  Sums that wait
 * for members continue until close. */
void sw_server_stop(struct sw_server *srv);

/* sw_server_fail_all - tell every member that this server stops. */
void sw_server_fail_all(struct sw_server *srv, const char *why);

/* sw_job_bytes - return the most bytes that a job of @n_members takes here,
 * besides its tensors (shard.h): tables, and a session for each member.  Linear
 * in @n_members. */
uint64_t sw_job_bytes(uint32_t n_members);

/* sw_server_has_job - return whether a job is open or still closing.  Its
 * members may have no tensors yet. */
bool sw_server_has_job(const struct sw_server *srv);

/* A member of a job, as the server knows it. */
struct sw_server_member {
	uint16_t first, n_local; /* its ranks; n_local 0: has not joined */
	bool is_ranked;          /* first is known */
	bool is_here, has_left;
	/* Sampled sums to which it contributed last: the time since the first
	 * contribution. */
	struct sw_histogram late;
	uint64_t push_bytes, result_bytes; /* payload bytes folded; sent */
	/* If it is connected: the path, and the largest payload it carries. */
	struct sw_peer_view path;
	uint32_t payload;
	char node[SW_NAME_MAX];
};

/* A job as one lcore of a server sees it. */
struct sw_server_job {
	char name[SW_NAME_MAX];
	uint8_t state;   /* enum sw_job_state */
	bool is_closing; /* its last member has left */
	bool is_keyed;   /* frames of its members have tags */
	bool is_encrypted;
	uint16_t n_members, n_here; /* members expected; connected */
	uint16_t n_ranks;           /* ranks of connected members */
	uint16_t size;              /* ranks of the job; 0: not known yet */
	/* The payload that the members agreed on, 0: not yet; and the largest
	 * that this server's ports carry. */
	uint32_t payload, most_payload;
	uint64_t age_ns, idle_ns; /* since it opened; since the last push */
	uint64_t open_chunks, open_slots; /* slots: of groups */
	uint64_t done_chunks;
	uint64_t missing;    /* members that are not connected, as bits */
	struct sw_fault why; /* the missing members, or why the job failed */
	struct sw_server_member members[SW_MAX_MEMBERS];
};

/* A tensor or stream with chunks that wait for members. */
struct sw_server_wait {
	uint32_t job; /* index of its job below */
	uint32_t n_open;
	bool is_stream;
	uint8_t kind; /* stream: enum sw_coll_kind of its oldest */
	uint32_t
		number; /* stream: its number in the group; tensor: the round */
	uint64_t still_ns; /* time without progress */
	uint64_t lacks;    /* members that it waits for; 0: unknown */
	char name[SW_NAME_MAX];
};

enum { SW_LOOK_JOBS = 8, SW_LOOK_WAITS = 32 };

/* The state of a server, and where the next call of describe continues. */
struct sw_server_view {
	uint32_t n_jobs, n_waits;
	uint32_t n_more; /* waiting tensors that found no place in @waits */
	struct sw_server_job jobs[SW_LOOK_JOBS];
	struct sw_server_wait waits[SW_LOOK_WAITS];
	/* Position: the job's slot, whether the job is in @jobs already, and
	 * the place within the job. */
	uint32_t slot;
	bool is_begun;
	struct sw_shard_look at;
};

/* sw_server_describe - describe the open jobs, and the members that their sums
 * wait for.  Each call does a part; returns true after the last one.  Zero @l
 * before the first call. */
bool sw_server_describe(
	const struct sw_server *srv, uint64_t now_ns, struct sw_server_view *l);

/* sw_server_open_chunks - count the chunks that wait for members.  Stopping now
 * would drop these chunks. */
uint64_t sw_server_open_chunks(const struct sw_server *srv);

#endif
