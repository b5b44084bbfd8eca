/* bench_nodes.h - a server and its workers in two threads, and what they cost.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The real engine, without ports and processes: what one node sends the other
 * receives by pointer.  All is as over a port that gathers: payloads carry
 * their CRC, and nothing is lent (pmd/lcores/handoff.h does both otherwise).
 */
#ifndef SW_BENCH_NODES_H
#define SW_BENCH_NODES_H

#include <stdint.h>

struct bench_shape {
	uint32_t n_members; /* 1 to 64 */
	uint32_t n_tensors; /* 1 to 4096, pushed together */
	uint64_t bytes;     /* of a tensor of f32, a multiple of 64 */
};

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

/* sw_bench_nodes - measure.  Returns 0 or a negative error; why a job failed
 * was printed. */
int sw_bench_nodes(const struct bench_shape *shape, struct bench_cost *out);

#endif
