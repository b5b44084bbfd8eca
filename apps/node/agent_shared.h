/* agent_shared.h - the agent's state that several threads use.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_NODE_AGENT_SHARED_H
#define SW_APPS_NODE_AGENT_SHARED_H

#include "apps/node/serve.h"
#include "engine/worker/worker.h"
#include "pmd/host/attach.h"

enum { AGENT_LOCAL_MAX = SW_LOCAL_RANKS };

struct agent_rings;
struct agent_lane;

/* A lane of the worker, as the control thread opens and closes it.  The lane's
 * lcore holds the worker in its part, and owns it from JOIN to LEFT. */
struct agent_part {
	struct sw_worker *worker;
	struct sw_worker_events events; /* callbacks into the lcore */
	struct sw_env env;
};

/* Owner of the description of the job: nobody, the control thread, or lcore i
 * (ASKED + i).  Lcore i adds its part and hands on to the next lcore. */
enum agent_look { AGENT_LOOK_NONE, AGENT_LOOK_TOLD, AGENT_LOOK_ASKED };

/* A session of lane @lane; path.server is not set. */
struct agent_session {
	char server[SW_NAME_MAX];
	uint32_t lane;
	struct sw_worker_path path;
};

/* State that several threads use. */
struct agent_shared {
	/* Set up before the lcores run; each type's header names its users. */
	struct sw_daemon daemon;
	bool is_serving;       /* role = both: this node also sums */
	struct sw_serve serve; /* unused without is_serving */
	/* owned by control; lcores kick it and use its clients */
	struct sw_host *host;
	/* The further lcores; agent_lane.h names the fields that lcore 0 may
	 * see. */
	uint32_t n_others;
	struct agent_lane *others;
	/* between lcore 0 and each further lcore */
	struct sw_lane *lanes;
	struct agent_part parts[SW_LANES]; /* owned by control */
	/* The worker's secret, in locked memory; NULL: none so far.  The
	 * control thread changes it only while no worker is open. */
	struct sw_secret *secret;

	/* Shared while the lcores run; each field names its writer. */
	struct agent_rings *rings; /* one producer, one consumer each */
	/* The tuning in use, for statistics; lcore 0. */
	_Atomic uint64_t partition_bytes, credit_bytes, tuning_number;
	/* Closed streams: a bit per index; their ids; whether there is any.
	 * Lcore 0 adds, control removes. */
	_Atomic uint64_t gone[SW_TENSORS / 64];
	uint32_t gone_ids[SW_TENSORS];
	atomic_bool has_gone;
	/* some group has failed; lcore 0 sets, control clears */
	atomic_bool has_failed;
	_Atomic uint32_t n_open; /* open push_pulls; lcore 0 */
	/* client memory freed so far, in requests; lcore 0 */
	_Atomic uint32_t n_freed;
	atomic_bool is_draining; /* lcore 0 takes no push_pull; control */
	/* enum agent_look: the owner of the fields below */
	_Atomic uint32_t look;
	struct sw_worker_waits waits;
	uint32_t n_sessions;
	struct agent_session sessions[SW_MAX_SERVERS];
};

/* sw_agent_n_local - return the configured number of local ranks.  Thread:
 * any. */
static inline uint32_t sw_agent_n_local(const struct agent_shared *shared)
{
	return shared->daemon.conf.agent.local_ranks;
}

/* sw_agent_loop - return lcore 0's loop.  Thread: lcore 0. */
static inline struct sw_loop *sw_agent_loop(struct agent_shared *shared)
{
	return &shared->daemon.pollers[0].loop;
}

/* sw_agent_tensor - describe @t, which a process declares, to the worker.  A
 * stream gets the id @again.  Thread: any. */
void sw_agent_tensor(const struct agent_shared *shared,
	const struct sw_host_tensor *t, uint32_t again,
	struct sw_worker_tensor *out);

/* sw_agent_is_asked - return whether lcore @lcore must describe its part now.
 * sw_agent_describe - add the sessions of its worker (NULL: none), and hand on
 * to the next lcore.  Thread: that lcore. */
static inline bool sw_agent_is_asked(
	const struct agent_shared *shared, uint32_t lcore)
{
	return atomic_load_explicit(&shared->look, memory_order_acquire) ==
	       AGENT_LOOK_ASKED + lcore;
}

void sw_agent_describe(struct agent_shared *shared, uint32_t lcore,
	const struct sw_worker *worker);

/* sw_agent_copy_lent - copy the memory that lcore @lcore has lent to our own
 * server, after the worker has ended.  Each call copies some.  Returns true
 * when all is copied: the training processes may write it.  Thread: that lcore.
 */
bool sw_agent_copy_lent(struct agent_shared *shared, uint32_t lcore);

/* sw_agent_keep_stream - copy likewise the memory that a dead stream has lent,
 * by its key at the server.  Thread: that lcore. */
bool sw_agent_keep_stream(
	struct agent_shared *shared, uint32_t lcore, uint32_t key);

#endif
