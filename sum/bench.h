/* bench.h - measure the kernels as a ratio to moving the same data.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_SUM_BENCH_H
#define SW_SUM_BENCH_H

#include "sum/crc.h"
#include "sum/polyval.h"
#include "sum/kernel.h"

struct sw_sum_bench; /* the buffers of the benchmark */

/* One line of the table. */
struct sw_sum_bench_row {
	enum sw_dtype dtype;
	enum sw_kernel op; /* SW_KERNEL_SUM is measured with 8 sources */
	const struct sw_sum *sum;
	uint64_t working_set_bytes; /* destination and sources */
	double gbyte_s;             /* loaded and stored, 10^9 bytes a second */
	double ratio_to_move; /* 1: as fast as the bare loads and stores */
};

/* One comparison of two ways to do the same work. */
struct sw_sum_bench_versus {
	const char *name; /* names of both sides, static */
	uint64_t working_set_bytes;
	double ratio;     /* median ratio of the two; 0: left out */
	double low, high; /* quartiles of it */
	double target;    /* target ratio */
	bool is_upper;    /* the target is an upper bound */
};

/* Working sets: half of L1, half of L2, 8 x L2 and what no cache holds. */
enum sw_sum_bench_set {
	SW_BENCH_L1,
	SW_BENCH_L2,
	SW_BENCH_L3,
	SW_BENCH_DRAM,
	SW_N_BENCH_SETS,
};

/* sw_sum_bench_open - allocate the memory (1.5 GiB; 96 MiB when @is_quick,
 * which also leaves out SW_BENCH_DRAM and takes fewer samples). Returns false
 * if there is not enough. sw_sum_bench_close frees it. */
bool sw_sum_bench_open(bool is_quick, struct sw_sum_bench **out);
void sw_sum_bench_close(struct sw_sum_bench **b);

/* sw_sum_bench_measure - measure @op of @dtype at level @sum.  False: there is
 * no such operation, or @set is left out.  Cost: about 20 ms. Medians of 15
 * pairs (5 when quick), kernel and yardstick in turn, the buffers staggered in
 * their low 12 address bits. */
bool sw_sum_bench_measure(struct sw_sum_bench *b, const struct sw_sum *sum,
	enum sw_dtype dtype, enum sw_kernel op, enum sw_sum_bench_set set,
	struct sw_sum_bench_row *out);

/* sw_sum_bench_compare - measure comparison @i (from 0) at level @sum. Returns
 * false past the last one. */
bool sw_sum_bench_compare(struct sw_sum_bench *b, const struct sw_sum *sum,
	uint32_t i, struct sw_sum_bench_versus *out);

/* sw_sum_bench_compare_crc - the same for a CRC-32C kernel that runs here,
 * against ISA-L (libisal.so.2); without ISA-L all are left out. */
bool sw_sum_bench_compare_crc(struct sw_sum_bench *b, const struct sw_crc *crc,
	uint32_t i, struct sw_sum_bench_versus *out);

/* sw_sum_bench_compare_polyval - the same for a kernel of POLYVAL that runs
 * here, against the CRC-32C kernel of the same name. */
bool sw_sum_bench_compare_polyval(struct sw_sum_bench *b,
	const struct sw_polyval *polyval, uint32_t i,
	struct sw_sum_bench_versus *out);

#endif
