/* bench_cost.h - the CPU time that packets cost a server, in two threads.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_BENCH_COST_H
#define SW_BENCH_COST_H

#include "apps/bench/bench_nodes.h"
#include "apps/cli/quartiles.h"

/* CPU time of the threads, but for what they wait for each other.  After each
 * round the server's thread runs the kernels of that round alone. */
struct bench_cost {
	uint32_t n_rounds;
	uint64_t n_packets; /* in a round: PUSHes folded, RESULTs sent */
	uint64_t n_frames;  /* all that the server took and sent, ACKs too */
	double mean_us;     /* a tensor of a member: submit to result */
	struct sw_quartiles tensor_us;   /* the same */
	struct sw_quartiles server_ns;   /* of a packet, the server */
	struct sw_quartiles worker_ns;   /* the workers */
	struct sw_quartiles gbit_s;      /* summed and returned, server */
	struct sw_quartiles fold_gbit_s; /* by the kernels alone */
	struct sw_quartiles fold_ratio;  /* server's over that, by round */
};

/* sw_bench_cost - measure.  Returns 0 or a negative error; why a job failed
 * was printed. */
int sw_bench_cost(const struct bench_shape *shape, struct bench_cost *out);

#endif
