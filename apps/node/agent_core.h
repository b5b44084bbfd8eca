/* agent_core.h - the part of lcore 0, and its functions for the poller.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_NODE_AGENT_CORE_H
#define SW_APPS_NODE_AGENT_CORE_H

#include "apps/node/agent_mail.h"

/* The part of lcore 0, which no other thread touches, except counters of the
 * worker, which the control thread reads by sw_word. */
struct agent_core {
	struct agent_shared *shared;
	struct sw_spsc commands; /* takes */
	struct sw_spsc reports;  /* puts */
	struct sw_worker worker; /* lane 0 */
	bool is_joining; /* has_worker becomes true when the worker is open */
	bool has_worker, is_leaving;
	/* FAILED or ENDED, told when all lcores have released the tensors. */
	bool is_ending;
	struct agent_report ending;
	uint32_t n_lost; /* lines that the next report counts */
	struct sw_host_client *clients[AGENT_LOCAL_MAX]; /* NULL: no submits */
	uint32_t next_client; /* next client whose submits are taken */
	/* The batch that is being declared, whether some of its tensors remain
	 * to be checked, and the number of checked ones. */
	struct agent_command batch;
	bool is_declaring;
	uint32_t n_looked;
	struct sw_host_tuning tuning; /* in use, as the processes see them */
	bool are_tuning_shown;
	/* A client's memory that is being freed, item of local: collectives
	 * before tensor at do not use it.  client NULL: no search runs. */
	struct {
		struct sw_host_client *client;
		uint32_t local, item, at;
		const void *base;
		uint64_t bytes;
	} freed;
	/* Local ranks that wait until memory is free; shared->n_freed after the
	 * last of them; the value for which freeing waits. */
	uint32_t n_freeing;
	bool is_freeing[AGENT_LOCAL_MAX];
	uint32_t freed_at[AGENT_LOCAL_MAX], n_marked;
	struct sw_release freeing, leaving;
};

/* sw_agent_is_over - return whether the job has ended.  Then the agent begins
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

/* sw_agent_find_use - look whether collectives use core->freed.  Each call
 * looks at some of them; the last one clears core->freed.client. */
void sw_agent_find_use(struct agent_core *core);

/* sw_agent_work_free - answer the local ranks in core->is_freeing, once no port
 * refers to their memory. */
void sw_agent_work_free(struct agent_core *core);

/* Functions for struct sw_poller; @ctx is the core. */
uint32_t sw_agent_work(void *ctx, uint64_t now_ns);
void sw_agent_rest(void *ctx, const int *fds, uint32_t n_fds, uint64_t max_ns);
void sw_agent_nap(void *ctx, uint64_t max_ns);
bool sw_agent_is_awaited(void *ctx);

#endif
