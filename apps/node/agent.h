/* agent.h - the agent as a whole: shared state and the threads' parts.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_NODE_AGENT_H
#define SW_APPS_NODE_AGENT_H

#include "apps/node/agent_core.h"
#include "apps/node/agent_group.h"
#include "apps/node/agent_lane.h"

/* A function that runs on a thread takes that thread's part, and reaches only
 * this part and the shared state.  Functions that set the parts up take the
 * whole agent. */
struct agent {
	struct agent_shared shared;
	struct agent_control control;
	struct agent_core core;
	/* an error file lies at its socket (agent_error.h) */
	bool has_error_file;
};

/* sw_agent_open_lanes - allocate the lanes that the configuration asks for.
 * Errors: SW_ENOMEM. */
int sw_agent_open_lanes(struct agent_shared *shared);

/* sw_agent_init_parts - connect the worker's lanes to their lcores, after
 * sw_agent_open_lanes. */
void sw_agent_init_parts(struct agent *a);

/* sw_agent_has_mail - return whether lcore @from has work for lcore @to, as in
 * struct sw_daemon; @ctx is a struct agent. */
bool sw_agent_has_mail(const void *ctx, uint32_t from, uint32_t to);

#endif
