/* sum.h - the summation kernels: one table of functions, chosen once at start.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_SUM_H
#define SW_SUM_H

#include <stddef.h>
#include <stdint.h>

#include "sum/dtype.h"

/* What the packet path needs of one dtype at one level.
 *
 * A contribution arrives in elements of the dtype; an accumulator holds
 * elements of acc_bytes each (f32 for f16 and bf16, the dtype itself for all
 * others).  No alignment is asked of any pointer; any n including 0; nothing
 * is read or written outside n elements.  dst and src may be equal, never
 * partly overlapping.  Thread: any; the functions hold no state. */
struct sw_sum_ops {
	uint32_t elem_bytes;
	uint32_t acc_bytes;
	/* acc[i] = src[i], widened where acc_bytes > elem_bytes */
	void (*put)(void *acc, const void *src, size_t n);
	/* acc[i] += src[i]; integers wrap, bool is or */
	void (*add)(void *acc, const void *src, size_t n);
	/* dst[i] = (dtype) acc[i], nearest even; NULL where acc_bytes ==
	 * elem_bytes, since the accumulator is then the result. */
	void (*round)(void *dst, const void *acc, size_t n);
};

enum sw_sum_level {
	SW_SUM_SCALAR = 0,
	SW_SUM_AVX2 = 1,
	SW_SUM_AVX512 = 2,
};

/* One level's kernels. */
struct sw_sum {
	enum sw_sum_level level;
	const char *name;		     /* "scalar", "avx2", "avx512" */
	struct sw_sum_ops ops[SW_N_DTYPES]; /* zero where a code is not in use */
};

/* sw_sum_best - the kernels of the highest level <= @max that this CPU has.
 * Returns static memory, never NULL (scalar is always there).
 * Cost: CPUID; call once at start. */
const struct sw_sum *sw_sum_best(enum sw_sum_level max);

/* sw_crc32c - CRC-32C (Castagnoli, RFC 3720 §12.1) of @n bytes at @p, going on
 * from @crc.  Start with 0; sw_crc32c(sw_crc32c(0, a), b) equals the CRC of a
 * and b joined.  The usual inversion before and after is inside.
 * Thread: any.  Cost: about 20 bytes a cycle in cache (ISA-L). */
uint32_t sw_crc32c(uint32_t crc, const void *p, size_t n);

#endif
