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
	double gbyte_s;       /* bytes loaded and stored, 10^9 per second */
	double ratio_to_move; /* 1: as fast as loads and stores alone */
};

/* One comparison of two ways to do the same work. */
struct sw_sum_bench_versus {
	const char *name; /* names of both sides, static */
	uint64_t working_set_bytes;
	double ratio;     /* median ratio; 0: skipped */
	double low, high; /* quartiles of the ratio */
	double target;    /* target ratio */
	bool is_upper;    /* the target is an upper bound */
};

/* Working sets: half of L1, half of L2, 8 x L2, and more than any cache
 * holds. */
enum sw_sum_bench_set {
	SW_BENCH_L1,
	SW_BENCH_L2,
	SW_BENCH_L3,
	SW_BENCH_DRAM,
	SW_N_BENCH_SETS,
};

/* sw_sum_bench_open - allocate the memory (1.5 GiB; 96 MiB if @is_quick, which
 * also skips SW_BENCH_DRAM and takes fewer samples). Return false if there is
 * not enough. sw_sum_bench_close frees it. */
bool sw_sum_bench_open(bool is_quick, struct sw_sum_bench **out);
void sw_sum_bench_close(struct sw_sum_bench **b);

/* sw_sum_bench_measure - measure @op of @dtype at level @sum. Return false if
 * there is no such operation, or if @set is skipped. Cost: about 20 ms. Medians
 * of 15 pairs (5 if quick), kernel and yardstick in turn, with buffers
 * staggered in their low 12 address bits. */
bool sw_sum_bench_measure(struct sw_sum_bench *b, const struct sw_sum *sum,
	enum sw_dtype dtype, enum sw_kernel op, enum sw_sum_bench_set set,
	struct sw_sum_bench_row *out);

/* sw_sum_bench_compare - measure comparison @i (from 0) at level @sum. Return
 * false past the last one. */
bool sw_sum_bench_compare(struct sw_sum_bench *b, const struct sw_sum *sum,
	uint32_t i, struct sw_sum_bench_versus *out);

/* sw_sum_bench_compare_crc - compare a CRC-32C kernel that runs here with ISA-L
 * (libisal.so.2); without ISA-L skip all. */
bool sw_sum_bench_compare_crc(struct sw_sum_bench *b, const struct sw_crc *crc,
	uint32_t i, struct sw_sum_bench_versus *out);

/* sw_sum_bench_compare_polyval - compare a POLYVAL kernel that runs here with
 * the CRC-32C kernel of the same name. */
bool sw_sum_bench_compare_polyval(struct sw_sum_bench *b,
	const struct sw_polyval *polyval, uint32_t i,
	struct sw_sum_bench_versus *out);

#endif
