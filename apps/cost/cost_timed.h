/* cost_timed.h - the server's CPU time per packet, in two threads.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_COST_COST_TIMED_H
#define SW_APPS_COST_COST_TIMED_H

#include "apps/cost/cost_fold.h"
#include "apps/cli/quartiles.h"

/* Time of only the server's kernels. */
struct cost_alone {
	struct sw_quartiles gbit_s;
	/* the server's rate over that of the kernels, by round */
	struct sw_quartiles ratio;
};

/* CPU time of the threads, without their waits for each other and without the
 * wire's copies, which replace a port's work.  After each round the server's
 * thread runs only the kernels of that round. */
struct cost_time {
	uint32_t n_rounds;
	uint64_t n_packets; /* in a round: PUSHes folded and RESULTs sent */
	/* all frames that the server received and sent, with ACKs */
	uint64_t n_frames;
	double mean_us; /* from submit to result, per tensor of a member */
	struct sw_quartiles tensor_us; /* quartiles of mean_us */
	struct sw_quartiles server_ns; /* per packet, at the server */
	struct sw_quartiles port_ns;   /* the wire, in the server's thread */
	struct sw_quartiles worker_ns; /* per packet, at the workers */
	struct sw_quartiles gbit_s;    /* summed and returned by the server */
	/* false: the fields of ISA-L are unset */
	bool has_isal;
	struct cost_alone alone[COST_N_KERNELS];
};

/* sw_cost_time - measure @shape.  Returns 0 or a negative error.  A failed job
 * prints the reason. */
int sw_cost_time(const struct cost_shape *shape, struct cost_time *out);

#endif
