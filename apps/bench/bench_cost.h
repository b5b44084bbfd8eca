/* bench_cost.h - the CPU time that packets cost a server, in two threads.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_BENCH_COST_H
#define SW_BENCH_COST_H

#include "apps/bench/bench_nodes.h"

/* CPU time of the threads, but for what they wait for each other. */
struct bench_cost {
	uint32_t n_rounds;
	uint64_t n_packets;    /* in a round: PUSHes folded, RESULTs sent */
	uint64_t n_frames;     /* all that the server took and sent, ACKs too */
	double mean_us;        /* a tensor of a member: submit to result */
	double best_us;        /* the same, of the best round */
	double packet_ns;      /* the server alone, of the median round */
	double packet_best_ns; /* the same, of the best round */
};

/* sw_bench_cost - measure.  Returns 0 or a negative error; why a job failed
 * was printed. */
int sw_bench_cost(const struct bench_shape *shape, struct bench_cost *out);

#endif
