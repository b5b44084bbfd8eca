/* bench_count.h - instructions by stage, as callgrind counts them.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_BENCH_BENCH_COUNT_H
#define SW_APPS_BENCH_BENCH_COUNT_H

#include "apps/bench/bench_step.h"

/* What instructions are for. */
enum bench_part {
	BENCH_ENGINE, /* all that is none of these */
	BENCH_CRC,
	BENCH_ADD,
	BENCH_COPY,
	BENCH_PORT, /* the wire, in place of a driver */
	BENCH_PARTS,
};

struct bench_counts {
	struct bench_steps steps;
	uint64_t instructions[BENCH_N_STAGES][BENCH_PARTS];
};

/* sw_bench_count - run "bench engine --stepped" of @shape under valgrind.
 * Errors, all printed: SW_ENOENT there is no valgrind; SW_EIO. */
int sw_bench_count(const struct bench_shape *shape, struct bench_counts *out);

#endif
