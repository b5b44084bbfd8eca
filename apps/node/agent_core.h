/* agent_core.h - the state of lcore 0, and its functions for the poller.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_NODE_AGENT_CORE_H
#define SW_APPS_NODE_AGENT_CORE_H

#include "apps/node/agent_mail.h"

/* The part of lcore 0.  No other thread touches it, except that the control
 * thread reads the worker's counters by sw_word. */
struct agent_core {
	struct agent_shared *shared;
	struct sw_spsc commands; /* consumer side */
	struct sw_spsc reports;  /* producer side */
	struct sw_worker worker; /* lane 0 */
	/* waits for the lcore's clock; then has_worker is set */
	bool is_joining;
	bool has_worker, is_leaving;
	/* FAILED or ENDED, reported once all lcores have released the
	 * tensors. */
	bool is_ending;
	struct agent_report ending;
	uint32_t n_lost; /* dropped log lines; the next report carries them */
	/* NULL: takes no submits */
	struct sw_host_client *clients[AGENT_LOCAL_MAX];
	uint32_t next_client; /* first client of the next turn */
	/* The batch in declaration, whether some of its tensors are unchecked,
	 * and the number of checked ones. */
	struct agent_command batch;
	bool is_declaring;
	uint32_t n_looked;
	struct sw_host_tuning tuning; /* in use, as the processes see it */
	bool are_tuning_shown;
	/* Memory of a client that is being freed: item of local.  No collective
	 * of the tensors before at uses it. client NULL: no search runs. */
	struct {
		struct sw_host_client *client;
		uint32_t local, item, at;
		const void *base;
		uint64_t bytes;
	} freed;
	/* Local ranks that wait for a free; shared->n_freed as of their last
	 * request; n_freed as of the begin of the current wait for the
	 * ports. */
	uint32_t n_freeing;
	bool is_freeing[AGENT_LOCAL_MAX];
	uint32_t freed_at[AGENT_LOCAL_MAX], n_marked;
	struct sw_release freeing, leaving;
};

/* sw_agent_is_over - return whether the job has ended.  If so, the agent starts
 * and answers nothing, and a hang-up tells each process why. */
static inline bool sw_agent_is_over(const struct agent_core *core)
{
	return !core->has_worker || core->is_leaving ||
	       sw_worker_end_of(&core->worker);
}

/* sw_agent_events - return the callbacks of lane 0. */
struct sw_worker_events sw_agent_events(struct agent_core *core);

/* sw_agent_on_declared - report that the batch is admitted, even if one of its
 * tensors is dead.  @ctx is the core. */
void sw_agent_on_declared(void *ctx);

/* sw_agent_find_use - check whether collectives use core->freed.  Each call
 * checks some of them; the last call clears core->freed.client. */
void sw_agent_find_use(struct agent_core *core);

/* sw_agent_work_free - answer the local ranks in core->is_freeing, once no port
 * refers to their memory. */
void sw_agent_work_free(struct agent_core *core);

/* Functions for struct sw_poller; @ctx is the core. */
uint32_t sw_agent_work(void *ctx, uint64_t now_ns);
void sw_agent_rest(void *ctx, const int *fds, uint32_t n_fds, uint64_t max_ns);
void sw_agent_nap(void *ctx, uint64_t max_ns);
bool sw_agent_is_awaited(void *ctx);
bool sw_agent_are_computing(void *ctx);

#endif
