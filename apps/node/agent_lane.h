/* agent_lane.h - any agent lcore except the first: a lane of the worker.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_NODE_AGENT_LANE_H
#define SW_APPS_NODE_AGENT_LANE_H

#include "apps/node/agent_shared.h"

/* State of a lane, and lcore 0's command to it. */
enum agent_lane_stage {
	AGENT_LANE_CLOSED,  /* the lane has no worker */
	AGENT_LANE_OPEN,    /* from lcore 0: drive the job's worker */
	AGENT_LANE_CLOSING, /* from lcore 0: close once the ports release it */
};

/* An lcore of the agent other than the first: a lane of the worker
 * (engine/worker/lane.h). */
struct agent_lane {
	struct agent_shared *shared;
	uint32_t i; /* number of the lane and of the lcore, from 1 */
	_Atomic int stage;
	bool is_open; /* its loop has the worker */
	/* The value of shared->n_freed up to which this lcore's ports have
	 * released freed memory, and the value that the current wait will
	 * reach. */
	_Atomic uint32_t n_freed;
	uint32_t n_marked;
	struct sw_release freeing, ending;
	/* The worker has ended and lent memory is copied (sw_agent_copy_lent),
	 * so this lcore uses no tensor of a client.  Lcore 0 reads it. */
	atomic_bool is_kept;
	struct sw_worker worker;
};

/* sw_agent_lane_events - return the callbacks of this lane. */
struct sw_worker_events sw_agent_lane_events(struct agent_lane *l);

/* sw_agent_lane_work - do this lcore's work in each turn; @ctx is the lane. */
uint32_t sw_agent_lane_work(void *ctx, uint64_t now_ns);

#endif
