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

/* A lane of the worker, as the control thread opens and closes it.  The worker
 * lies in the part of its lcore, which owns it from JOIN to LEFT. */
struct agent_part {
	struct sw_worker *worker;
	struct sw_worker_events events; /* to the lcore */
	struct sw_env env;
};

/* A look at the job is with nobody, with the control thread, or with lcore i
 * (ASKED + i), which describes its part and hands on to the next lcore. */
enum agent_look { AGENT_LOOK_NONE, AGENT_LOOK_TOLD, AGENT_LOOK_ASKED };

/* A session of lane @lane; path.server points to nothing. */
struct agent_session {
	char server[SW_NAME_MAX];
	uint32_t lane;
	struct sw_worker_path path;
};

/* State that several threads use. */
struct agent_shared {
	/* Made before the lcores run; later each header says who may use it. */
	struct sw_daemon daemon;
	bool is_serving;       /* role = both: this node also sums */
	struct sw_serve serve; /* only if is_serving */
	struct sw_host *host;  /* control's; lcores kick it and use clients */
	/* The other lcores; agent_lane.h says which fields lcore 0 may see. */
	uint32_t n_others;
	struct agent_lane *others;
	struct sw_lane *lanes;             /* between lcore 0 and each */
	struct agent_part parts[SW_LANES]; /* control's */
	/* The secret of the worker, in locked memory; NULL: none was ever
	 * used.  Control changes it while no worker is open. */
	struct sw_secret *secret;

	/* Read and written while they run; each says who writes. */
	struct agent_rings *rings; /* one puts, one takes */
	/* The tuning in use, for statistics; lcore 0. */
	_Atomic uint64_t partition_bytes, credit_bytes, tuning_number;
	/* Closed streams: a bit by index; their ids; whether there is one.
	 * Lcore 0 adds, control takes. */
	_Atomic uint64_t gone[SW_TENSORS / 64];
	uint32_t gone_ids[SW_TENSORS];
	atomic_bool has_gone;
	atomic_bool has_failed;  /* a group has; lcore 0 sets, control clears */
	_Atomic uint32_t n_open; /* push_pulls; lcore 0 */
	_Atomic uint32_t n_freed; /* memory of clients, so far; lcore 0 */
	atomic_bool is_draining;  /* take no push_pull; control */
	_Atomic uint32_t look;    /* enum agent_look: who may use the rest */
	struct sw_worker_waits waits;
	uint32_t n_sessions;
	struct agent_session sessions[SW_MAX_SERVERS];
};

/* sw_agent_n_local - local ranks, as configured.  Any thread. */
static inline uint32_t sw_agent_n_local(const struct agent_shared *shared)
{
	return shared->daemon.conf.agent.local_ranks;
}

/* sw_agent_loop - lcore 0's loop, for that lcore. */
static inline struct sw_loop *sw_agent_loop(struct agent_shared *shared)
{
	return &shared->daemon.pollers[0].loop;
}

/* sw_agent_tensor - describe @t, which a process declares, to the worker; a
 * stream has the id @again.  Any thread. */
void sw_agent_tensor(const struct agent_shared *shared,
	const struct sw_host_tensor *t, uint32_t again,
	struct sw_worker_tensor *out);

/* sw_agent_is_asked - is it lcore @lcore's turn to describe its part?
 * sw_agent_describe - add the sessions of its worker, NULL: it has none, and
 * hand on.  Thread: that lcore. */
static inline bool sw_agent_is_asked(
	const struct agent_shared *shared, uint32_t lcore)
{
	return atomic_load_explicit(&shared->look, memory_order_acquire) ==
	       AGENT_LOOK_ASKED + lcore;
}

void sw_agent_describe(struct agent_shared *shared, uint32_t lcore,
	const struct sw_worker *worker);

/* sw_agent_copy_lent - copy the memory that lcore @lcore has lent to our own
 * server, after the worker has ended; each call copies some.  Returns true when
 * all is copied, and the training processes may write it.  Thread: that lcore.
 */
bool sw_agent_copy_lent(struct agent_shared *shared, uint32_t lcore);

/* sw_agent_keep_stream - do the same for a dead stream, by its server's key.
 * Thread: that lcore. */
bool sw_agent_keep_stream(
	struct agent_shared *shared, uint32_t lcore, uint32_t key);

#endif
