/* cost_fold.h - the kernels of a server's round alone: CRC and add.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_COST_COST_FOLD_H
#define SW_APPS_COST_COST_FOLD_H

#include "apps/cost/cost_nodes.h"
#include "sum/bench_crc.h"

/* Which ones. */
enum cost_kernels {
	COST_KERNELS_OURS,
	COST_KERNELS_FED,  /* ours, of bytes that another core wrote, as it
			       writes what a server receives */
	COST_KERNELS_ISAL, /* ISA-L's CRC beside our add */
	COST_N_KERNELS,
};

struct cost_fold {
	const struct cost_shape *shape;
	const struct sw_sum_ops *ops;
	struct sw_isal isal;
	bool has_isal;
	char *sources; /* as many chunks as a wire holds */
	char *fed;     /* the same, which another thread writes */
	char *sums;    /* two rounds of all tensors, as a server's cells */
	uint64_t sums_bytes;
};

/* sw_cost_fold_open - by kernels of @level at most, and ISA-L's for this CPU,
 * where it is installed.  SW_ENOMEM; it may be closed then, too. */
int sw_cost_fold_open(struct cost_fold *f, const struct cost_shape *shape,
	enum sw_sum_level level);

/* sw_cost_fold_some - go on with a round: of all chunks of all tensors, each
 * member's is verified and added, then the sum's CRC is made, as RESULTs carry
 * it.  From contribution @at on, a burst of them; returns the next one's @at,
 * 0 after the last one. */
uint64_t sw_cost_fold_some(struct cost_fold *f, enum cost_kernels kernels,
	uint32_t round, uint64_t at);

/* sw_cost_fold_feed - write what the next burst of COST_KERNELS_FED reads. */
void sw_cost_fold_feed(struct cost_fold *f);

void sw_cost_fold_close(struct cost_fold *f);

#endif
