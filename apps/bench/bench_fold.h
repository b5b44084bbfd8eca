/* bench_fold.h - the kernels of a server's round alone: CRC and add.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_BENCH_FOLD_H
#define SW_BENCH_FOLD_H

#include "apps/bench/bench_nodes.h"

struct bench_fold {
	const struct bench_shape *shape;
	const struct sw_sum_ops *ops;
	char *sources; /* as many chunks as a wire holds */
	char *sums;    /* of all tensors, of two rounds, as a server's cells */
	uint64_t sums_bytes;
};

/* sw_bench_fold_open - by kernels of @level at most.  SW_ENOMEM; it may be
 * closed then, too. */
int sw_bench_fold_open(struct bench_fold *f, const struct bench_shape *shape,
	enum sw_sum_level level);

/* sw_bench_fold_round - for each chunk of all tensors: each member's verified
 * and added, then the sum's CRC, as RESULTs carry it. */
void sw_bench_fold_round(struct bench_fold *f, uint32_t round);

void sw_bench_fold_close(struct bench_fold *f);

#endif
