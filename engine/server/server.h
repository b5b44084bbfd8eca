/* server.h - the summation service of one lcore: jobs, sessions, frames.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames in, frames out, next deadline.  One thread, its lcore, calls what is
 * here unless something else is said.
 */
#ifndef SW_ENGINE_SERVER_SERVER_H
#define SW_ENGINE_SERVER_SERVER_H

#include "engine/base/env.h"
#include "engine/base/params.h"
#include "engine/base/stats.h"
#include "engine/loop/engine.h"

/* What a job gets of a server. */
struct sw_share {
	const char *job;
	uint32_t weight; /* under load, against the other jobs */
	uint64_t quota_bytes;
	/* What all lcores of the process have taken of the quota, which is
	 * theirs together; borrowed; NULL: this is the only one. */
	_Atomic uint64_t *all_used;
};

struct sw_server;

/* sw_server_open - an idle server, *out.
 * @params, @env   the latter borrowed until close
 * @ports          n_ports of them; max_payload and is_inner are read
 * @quota_bytes    all jobs together
 * Errors: SW_EINVAL too many ports; SW_ENOMEM.  Then *out is NULL. */
int sw_server_open(struct sw_server **out, const struct sw_params *params,
	const struct sw_env *env, struct sw_port *const *ports,
	uint32_t n_ports, uint64_t quota_bytes);

/* sw_server_set_lcores - it is one of @n that serve in this process, and have
 * the quota together: @all_used as in struct sw_share; what they grant fits the
 * queue before them together, too.  Before the first frame. */
void sw_server_set_lcores(
	struct sw_server *srv, uint32_t n, _Atomic uint64_t *all_used);

/* sw_server_engine - return the part that a loop drives. */
struct sw_engine *sw_server_engine(struct sw_server *srv);

/* sw_server_stats - its counters.  Thread: any (sw_stats_add). */
const struct sw_stats *sw_server_stats(const struct sw_server *srv);

/* sw_server_share - what single jobs get; a job that is not named has weight 1
 * and no quota of its own.  For jobs that are opened later; @shares are
 * borrowed until close.  Errors: SW_EINVAL, a weight is not 1…SW_MAX_WEIGHT. */
int sw_server_share(
	struct sw_server *srv, const struct sw_share *shares, uint32_t n);

/* sw_server_close - drop all sessions and jobs, give back all memory.  @srv may
 * be NULL. */
void sw_server_close(struct sw_server *srv);

/* sw_server_copy_lent - copy some of the contributions that sums refer to in
 * their senders' memory (shard.h), since it is about to change; true: of all.
 * sw_server_keep_stream - the same of what is lent to stream @key. */
bool sw_server_copy_lent(struct sw_server *srv);
bool sw_server_keep_stream(struct sw_server *srv, uint32_t key);

/* sw_server_stop - admit nobody any more and begin no sum; those that wait for
 * members go on until close. */
void sw_server_stop(struct sw_server *srv);

/* sw_server_fail_all - tell every member that this server stops. */
void sw_server_fail_all(struct sw_server *srv, const char *why);

/* sw_job_bytes - what a job of @n_members takes here besides its tensors
 * (shard.h), at most: its tables, and a session for each.  Linear. */
uint64_t sw_job_bytes(uint32_t n_members);

/* sw_server_has_job - is a job open, or still being closed?  Its members may
 * have no tensors yet. */
bool sw_server_has_job(const struct sw_server *srv);

/* sw_server_open_chunks - chunks that wait for members: what would be dropped
 * by stopping now. */
uint64_t sw_server_open_chunks(const struct sw_server *srv);

#endif
