/* plan_sim.h - iterations of a training, as events: computation and one link.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The DAG of paper 000, section 2.2: f_i waits for f_(i-1) and for the pulls of
 * layer i, b_i for b_(i+1), and the pushes of layer i for b_i.  All ranks are
 * alike, so one is simulated; the link is its own, full duplex.  A chunk's
 * result leaves when the chunk is summed, so a pull ends a latency after its
 * push.  Tensors of a device are copied out and back, a stage before the link
 * and one behind it, piece by piece: out in order of priority, back in the
 * order in which they come, which is that of the link and no faster. Data that
 * has landed may leave; data that has arrived may go back. All pure.
 */
#ifndef SW_APPS_LAB_PLAN_SIM_H
#define SW_APPS_LAB_PLAN_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/lab/model.h"
#include "engine/sched/policy.h"

struct sw_plan_link {
	double rate_bytes_s; /* each way */
	double overhead_s;   /* time in which the link rests per partition */
	double latency_s;    /* from its last byte out to its result here */
	double credit_s;     /* the same to its credit */
	double copy_bytes_s; /* device to host and back, each way; 0: tensors
				are in the host's memory */
	double piece_bytes;  /* bytes copied at once */
	/* Parts that wait for the link leave by priority, as from our own
	 * transmit queue; else first in, first out, as below ByteScheduler. */
	bool is_sorted;
};

struct sw_plan_run {
	const struct sw_model *model;
	struct sw_plan_link link;
	bool has_barrier;  /* f_0 waits for all pulls */
	double time_scale; /* factor for the model's times; 1 */
};

/* sw_plan_simulate - seconds of one iteration, the mean of 10 after 2, or of as
 * many as it takes until all are alike.
 * Errors: SW_EINVAL a rate or scale that is not positive, SW_ENOMEM. */
int sw_plan_simulate(const struct sw_plan_run *run,
	const struct sw_policy *policy, double *iteration_s);

/* sw_plan_ideal - the same with partitions and pieces of no size, free
 * preemption and neither overhead nor latency: the optimum of BS-T1, at the
 * rate of link or copies, whichever is lower. */
int sw_plan_ideal(const struct sw_plan_run *run, double *iteration_s);

/* sw_plan_bound - return how much longer than the ideal an iteration may take
 * with partitions of @partition_bytes (paper 000, section 4.1, for PS). Each
 * way of copying adds two pieces: one that is not interrupted, and one's
 * own. */
double sw_plan_bound(const struct sw_plan_run *run, uint64_t partition_bytes);

#endif
