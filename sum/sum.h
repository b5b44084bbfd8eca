/* sum.h - the summation kernels: a table of functions, chosen once at start.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef SW_SUM_SUM_H
#define SW_SUM_SUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sum/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The kernels of one dtype at one level.
 *
 * A contribution has elements of the dtype; an accumulator has elements of
 * acc_bytes each (f32 for f16 and bf16, the dtype itself for all others). Every
 * level gives the same bytes; README.md defines NaN, infinities, denormals, -0
 * and integers.
 *
 * Pointers need no alignment; n may be 0; a kernel accesses nothing outside n
 * elements. Output and inputs may be equal, but must not overlap partly; put,
 * sum and the folding functions (add, min, max, mul) of f16 and bf16, which
 * widen, require separate memory. Thread: any; the functions hold no state.
 * They expect the default floating-point mode: round to nearest even, keep
 * denormals. */
struct sw_sum_ops {
	uint32_t elem_bytes;
	uint32_t acc_bytes;
	/* acc[i] = src[i], widened where acc_bytes > elem_bytes */
	void (*put)(void *acc, const void *src, size_t n);
	/* acc[i] += src[i]; integers wrap, bool is or */
	void (*add)(void *acc, const void *src, size_t n);
	/* dst[i] = (dtype) acc[i], nearest even; NULL if acc_bytes ==
	 * elem_bytes, because the accumulator is then the result. */
	void (*round)(void *dst, const void *acc, size_t n);
	/* dst[i] = (dtype) (acc[i] * (float)factor): the product is rounded to
	 * f32 and then to the dtype; NULL if round is NULL. */
	void (*round_scale)(
		void *dst, const void *acc, double factor, size_t n);
	/* acc[i] = src[0][i] + … + src[n_src - 1][i], in one pass; the result
	 * is that of put and adds from left to right; n_src >= 1, acc may equal
	 * any src if acc_bytes == elem_bytes. Keep the sources apart in their
	 * low 12 address bits: equal spacing costs up to a factor of three. */
	void (*sum)(
		void *acc, const void *const *src, uint32_t n_src, size_t n);
	/* dst[i] = src[i], both of elem_bytes, bits untouched */
	void (*copy)(void *dst, const void *src, size_t n);
	/* dst[i] = src[i] * factor, both of elem_bytes. f32, f16, bf16 use
	 * (float)factor; integers are rounded to the nearest (ties to even) and
	 * saturate. NULL for bool. */
	void (*scale)(void *dst, const void *src, double factor, size_t n);
	/* acc[i] = the smaller / larger of acc[i] and src[i]; a NaN on either
	 * side gives NaN, and -0 is smaller than +0 */
	void (*min)(void *acc, const void *src, size_t n);
	void (*max)(void *acc, const void *src, size_t n);
	/* acc[i] *= src[i]; integers wrap, bool is and */
	void (*mul)(void *acc, const void *src, size_t n);
	/* acc[i] = acc[i] and, or, exclusive or src[i], bitwise; NULL for
	 * floats */
	void (*band)(void *acc, const void *src, size_t n);
	void (*bor)(void *acc, const void *src, size_t n);
	void (*bxor)(void *acc, const void *src, size_t n);
	/* dst[i] = acc[i] / by, both of acc_bytes, by >= 1: a sum's average.
	 * Integers are truncated towards zero. NULL for bool. */
	void (*divide)(void *dst, const void *acc, uint32_t by, size_t n);
};

enum sw_sum_level {
	SW_SUM_SCALAR = 0,
	SW_SUM_AVX2 = 1,
	SW_SUM_AVX512 = 2,
};

/* One level's kernels. */
struct sw_sum {
	enum sw_sum_level level;
	const char *name;                   /* "scalar", "avx2", "avx512" */
	struct sw_sum_ops ops[SW_N_DTYPES]; /* zero for an unused code */
	/* Copy bytes dst[i] = src[i], bypassing the caches if the level can:
	 * for memory that this core does not read again and that is not in its
	 * caches, where a normal store would first read every line. A thread
	 * that sees a later release store of this thread sees the whole
	 * copy. */
	void (*stream)(void *dst, const void *src, size_t n);
	/* memcpy: the same copy through the caches. */
	void *(*copy)(void *dst, const void *src, size_t n);
};

/* sw_sum_best - return the kernels of the highest level <= @max that this CPU
 * supports; static memory, never NULL (scalar is always there). Cost: CPUID;
 * call once at start. */
const struct sw_sum *sw_sum_best(enum sw_sum_level max);

/* sw_sum_row - return row @i of the table of levels, lower levels first; NULL
 * past its end. Set @runs (or NULL) to whether this CPU supports the level. */
const struct sw_sum *sw_sum_row(uint32_t i, bool *runs);

/* sw_sum_find - return the level called @name, or the best one for "auto".
 * NULL: this build has no such level, or this CPU does not support it
 * (sw_sum_row tells which). */
const struct sw_sum *sw_sum_find(const char *name);

/* sw_sum_fold - verify a received chunk, then fold it.
 * @fold     ops->put, or a folding function: ops->add, ops->min, …
 * @crc      the expected CRC-32C of the @n elements at @src
 * Returns false, with @acc untouched, if the CRC differs. @src must not change
 * during the call. */
bool sw_sum_fold(const struct sw_sum_ops *ops,
	void (*fold)(void *acc, const void *src, size_t n), void *acc,
	const void *src, size_t n, uint32_t crc);

/* sw_crc32c - return the CRC-32C (Castagnoli, RFC 3720 §12.1) of @n bytes at
 * @p, continuing from @crc. Start with 0; sw_crc32c(sw_crc32c(0, a), b) equals
 * the CRC of a and b joined. The function includes the usual inversion before
 * and after. Thread: any. Cost: about 35, 16, 14 bytes a cycle in cache with
 * products of 512, 256, 128 bits, 0.4 without; 50 bytes take some 20 cycles. */
uint32_t sw_crc32c(uint32_t crc, const void *p, size_t n);

/* sw_crc32c_both - continue @crc over @n bytes at @p and then @m bytes at
 * @q. */
uint32_t sw_crc32c_both(
	uint32_t crc, const void *p, size_t n, const void *q, size_t m);

/* sw_crc32c_both_far - the same, faster if @q is not in this core's caches,
 * such as data that another core or a device has just written; slower if it
 * is. */
uint32_t sw_crc32c_both_far(
	uint32_t crc, const void *p, size_t n, const void *q, size_t m);

#ifdef __cplusplus
}
#endif

#endif
