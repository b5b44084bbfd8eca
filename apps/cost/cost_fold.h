/* cost_fold.h - only the kernels of a server's round: CRC and add.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_COST_COST_FOLD_H
#define SW_APPS_COST_COST_FOLD_H

#include "apps/cost/cost_nodes.h"
#include "sum/bench_crc.h"

/* The kernels that are measured. */
enum cost_kernels {
	COST_KERNELS_OURS,
	/* ours, on bytes that another core has written, as it does for a server
	 * that receives them */
	COST_KERNELS_FED,
	COST_KERNELS_ISAL, /* ISA-L's CRC beside our add */
	COST_N_KERNELS,
};

struct cost_fold {
	const struct cost_shape *shape;
	const struct sw_sum_ops *ops;
	struct sw_isal isal;
	bool has_isal;
	char *sources; /* as many chunks as a wire holds */
	char *fed;     /* like sources, but written by another thread */
	char *sums;    /* two rounds of all tensors, as a server's cells */
	uint64_t sums_bytes;
};

/* sw_cost_fold_open - choose kernels of @level at most, and ISA-L's for this
 * CPU if it is installed.
 * Errors: SW_ENOMEM; close @f also after an error. */
int sw_cost_fold_open(struct cost_fold *f, const struct cost_shape *shape,
	enum sw_sum_level level);

/* sw_cost_fold_some - continue a round.  For each chunk of each tensor it
 * verifies and adds every member's contribution, then computes the sum's CRC,
 * as RESULTs carry it.  A call handles a burst from contribution @at on.
 * Returns the next @at, or 0 after the last contribution. */
uint64_t sw_cost_fold_some(struct cost_fold *f, enum cost_kernels kernels,
	uint32_t round, uint64_t at);

/* sw_cost_fold_feed - write the bytes that the next burst of COST_KERNELS_FED
 * reads. */
void sw_cost_fold_feed(struct cost_fold *f);

void sw_cost_fold_close(struct cost_fold *f);

#endif
