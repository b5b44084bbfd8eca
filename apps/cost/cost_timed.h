/* cost_timed.h - the CPU time that packets cost a server, in two threads.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_COST_COST_TIMED_H
#define SW_APPS_COST_COST_TIMED_H

#include "apps/cost/cost_fold.h"
#include "apps/cli/quartiles.h"

/* Time of the server's kernels alone. */
struct cost_alone {
	struct sw_quartiles gbit_s;
	struct sw_quartiles ratio; /* the server's over that, by round */
};

/* CPU time of the threads without their waits for each other and without the
 * wire's copies, which stand for a port's. After each round the server's thread
 * runs the kernels of that round alone. */
struct cost_time {
	uint32_t n_rounds;
	uint64_t n_packets; /* in a round: PUSHes folded, RESULTs sent */
	uint64_t n_frames;  /* all that the server took and sent, ACKs too */
	double mean_us;     /* a tensor of a member: submit to result */
	struct sw_quartiles tensor_us; /* the same */
	struct sw_quartiles server_ns; /* per packet, at the server */
	struct sw_quartiles port_ns;   /* the wire, in the server's thread */
	struct sw_quartiles worker_ns; /* the workers */
	struct sw_quartiles gbit_s;    /* summed and returned, server */
	bool has_isal;                 /* else nothing of it */
	struct cost_alone alone[COST_N_KERNELS];
};

/* sw_cost_time - measure.  Returns 0 or a negative error; why a job failed
 * was printed. */
int sw_cost_time(const struct cost_shape *shape, struct cost_time *out);

#endif
