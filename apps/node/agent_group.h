/* agent_group.h - the control thread's part: processes and their group.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_NODE_AGENT_GROUP_H
#define SW_APPS_NODE_AGENT_GROUP_H

#include "apps/node/agent_mail.h"

/* One process. */
struct agent_rank {
	uint32_t id, pid;
	bool is_here; /* the id is in use */
	/* it hung up, was refused, or knows that the job is over */
	bool is_gone;
};

/* The processes of one job, by local rank. */
struct agent_group {
	struct agent_rank ranks[AGENT_LOCAL_MAX];
	uint32_t n_here;
	uint64_t tell_at_ns; /* when to report missing ranks */
	uint64_t since_ns;   /* when the first process attached */
};

/* The part of the control thread.  No other thread touches it. */
struct agent_control {
	struct agent_shared *shared;
	struct sw_spsc commands; /* producer side */
	struct sw_spsc reports;  /* consumer side */
	uint32_t n_joined;       /* groups that have joined */
	bool is_stopping;
	struct agent_group group;
	struct agent_group next; /* gathers until group is released */
	/* With [agent] stay = no: whether a process has attached, and when the
	 * agent was last in use. */
	bool was_used;
	uint64_t used_at_ns;
	bool is_begun;    /* lcore 0 has the order to join */
	bool is_admitted; /* the group knows that the job runs */
	/* its processes have gone, or will learn that it ended */
	bool is_ended;
	int end_err; /* error that AGENT_ENDED passes to the processes */
	char end_text[2 * SW_TEXT_MAX];
	uint32_t first, size;     /* rank of local rank 0; ranks of the job */
	uint32_t declarer, batch; /* the declaring process, and its batch */
	/* The declarer's batch, until all lanes have built it; n = 0: none.
	 */
	struct agent_command building;
	/* Lanes that have built it; tensors built so far; indices used so
	 * far. */
	uint32_t n_lanes_built, n_built, n_places;
	/* id of the batch's stream if it reuses an index; else 0 */
	uint32_t again;
	/* Ids of closed streams, in order, and the number of reused ones.  Only
	 * with one local rank; with several, the host keeps the ids. */
	uint32_t n_freed, n_reused;
	uint32_t freed[SW_TENSORS];
	bool is_busy; /* memory waits to be made or unmapped: do not sleep */
};

/* Callbacks of struct sw_host_events; @ctx is the struct agent_control. */
void sw_agent_on_attach(
	void *ctx, uint32_t id, uint32_t pid, uint32_t uid, uint32_t wanted);
void sw_agent_on_declare(void *ctx, uint32_t id, uint32_t batch,
	const struct sw_host_tensor *tensors, uint32_t n);
void sw_agent_on_detach(
	void *ctx, uint32_t id, enum sw_host_why why, const char *text);
void sw_agent_on_tune(void *ctx, uint32_t id, const struct sw_edge_tune *tune);
void sw_agent_on_end(void *ctx, uint32_t id, const struct sw_edge_end *end);
void sw_agent_on_free(void *ctx, uint32_t id, uint32_t item);

/* sw_agent_take_reports - handle all reports of lcore 0. */
void sw_agent_take_reports(struct agent_control *c);

/* sw_agent_tell_waiting - tell waiting processes which local ranks are missing,
 * if the next such message is due. */
void sw_agent_tell_waiting(struct agent_control *c);

/* sw_agent_stop_gathering - begin no further job: refuse processes that attach
 * or wait for a job to begin.  Called first when the agent stops. */
void sw_agent_stop_gathering(struct agent_control *c);

/* sw_agent_stop - end the running job, and tell its processes and the
 * servers. */
void sw_agent_stop(struct agent_control *c);

#endif
