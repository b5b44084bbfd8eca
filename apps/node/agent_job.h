/* agent_job.h - the control thread opens, fills and closes a job's worker.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_NODE_AGENT_JOB_H
#define SW_APPS_NODE_AGENT_JOB_H

#include "apps/node/agent_group.h"

/* sw_agent_open_worker - open the worker in all lanes, before JOIN.  After an
 * error the caller must close the lanes.
 * Errors: as sw_worker_open. */
int sw_agent_open_worker(struct agent_shared *shared);

/* sw_agent_close_worker - close the worker in all lanes that have it, after
 * LEFT. */
void sw_agent_close_worker(struct agent_shared *shared);

/* sw_agent_build - build the batch in c->building once there is memory for it,
 * and pass it to lcore 0.  Called in each turn. */
void sw_agent_build(struct agent_control *c);

/* sw_agent_take_gone - free the memory of closed streams.  @is_closed: the
 * worker was closed, which has freed it.  Called in each turn. */
void sw_agent_take_gone(struct agent_control *c, bool is_closed);

/* sw_agent_make_memory - make some memory present for each lane.  Called in
 * each turn.  Returns whether more work may remain. */
bool sw_agent_make_memory(struct agent_shared *shared);

#endif
