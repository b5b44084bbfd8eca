/* plan_sim.h - training iterations as events: computation and one link.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Simulates the DAG of paper 000, section 2.2: f_i waits for f_(i-1) and for
 * the pulls of layer i, b_i for b_(i+1), and the pushes of layer i for b_i.
 * All ranks are alike, so one is simulated, with its own full-duplex link.  The
 * server returns a chunk's result when the chunk is summed, so a pull ends a
 * latency after its push.
 *
 * Tensors of a device are copied piece by piece: out to the host before the
 * link, in order of priority, and back after it, in the order of their arrival.
 * Landed data may leave at once, and arrived data may return at once.  Pure
 * functions.
 */
#ifndef SW_APPS_LAB_PLAN_SIM_H
#define SW_APPS_LAB_PLAN_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/lab/model.h"
#include "engine/sched/policy.h"

struct sw_plan_link {
	double rate_bytes_s; /* each way */
	double overhead_s;   /* idle time of the link before each partition */
	/* from its last byte sent to its result received */
	double latency_s;
	double credit_s; /* from its last byte sent to its credit */
	/* device to host and back, each way; 0: tensors are in host memory */
	double copy_bytes_s;
	double piece_bytes; /* bytes of one copy */
	/* Parts that wait for the link leave by priority, as from our own
	 * transmit queue.  Otherwise they leave first in, first out, as below
	 * ByteScheduler. */
	bool is_sorted;
};

struct sw_plan_run {
	const struct sw_model *model;
	struct sw_plan_link link;
	bool has_barrier;  /* f_0 waits for all pulls */
	double time_scale; /* factor for the model's times; default 1 */
};

/* sw_plan_simulate - compute the seconds of one iteration: the mean of 10 after
 * a warm-up of 2, or of as many as pass until all are equal.
 * Errors: SW_EINVAL a rate or scale is not positive, SW_ENOMEM. */
int sw_plan_simulate(const struct sw_plan_run *run,
	const struct sw_policy *policy, double *iteration_s);

/* sw_plan_ideal - compute an iteration with infinitely small partitions and
 * pieces, free preemption and neither overhead nor latency.  This is the
 * optimum of BS-T1, at the lower of the rates of link and copies. */
int sw_plan_ideal(const struct sw_plan_run *run, double *iteration_s);

/* sw_plan_bound - return how much longer than the ideal an iteration may take
 * with partitions of @partition_bytes (paper 000, section 4.1, for PS).  Each
 * direction of copies adds two pieces: one that cannot be preempted, and the
 * tensor's own. */
double sw_plan_bound(const struct sw_plan_run *run, uint64_t partition_bytes);

#endif
