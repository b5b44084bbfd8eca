/* kernel.h - the kernels of sum.h by number, for the checker and the bench.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_SUM_KERNEL_H
#define SW_SUM_KERNEL_H

#include "sum/sum.h"

enum sw_kernel {
	SW_KERNEL_COPY,
	SW_KERNEL_PUT,
	SW_KERNEL_ADD,
	SW_KERNEL_SUM,
	SW_KERNEL_SCALE,
	SW_KERNEL_ROUND,
	SW_KERNEL_ROUND_SCALE,
	SW_KERNEL_MIN,
	SW_KERNEL_MAX,
	SW_KERNEL_MUL,
	SW_KERNEL_BAND,
	SW_KERNEL_BOR,
	SW_KERNEL_BXOR,
	SW_KERNEL_DIVIDE,
	SW_N_KERNELS,
};

enum { SW_KERNEL_MAX_SRC = 8 };

/* The bytes that a kernel reads and writes per element. */
struct sw_sum_shape {
	uint32_t dst_bytes; /* written */
	uint32_t src_bytes; /* read from each source */
	bool reads_dst;     /* dst_bytes are read as well */
	bool may_alias;     /* dst may equal a source */
};

/* Arguments of one call; a kernel ignores arguments that it does not use. */
struct sw_sum_call {
	void *dst;
	const void *src[SW_KERNEL_MAX_SRC]; /* only SW_KERNEL_SUM reads beyond
					       [0] */
	uint32_t n_src;                     /* for SW_KERNEL_SUM */
	double factor;
	uint32_t by; /* for SW_KERNEL_DIVIDE */
	size_t n;
};

/* sw_kernel_name - return "copy", "put", "add", "sum", … Static text. */
const char *sw_kernel_name(enum sw_kernel kernel);

/* sw_kernel_shape - fill @out; return false if @ops has no such kernel (an
 * unused dtype, rounding of a dtype that is its own accumulator, bits of
 * floats, scaled bool). */
bool sw_kernel_shape(const struct sw_sum_ops *ops, enum sw_kernel kernel,
	struct sw_sum_shape *out);

/* sw_kernel_run - make the call; @ops must have the kernel. */
void sw_kernel_run(const struct sw_sum_ops *ops, enum sw_kernel kernel,
	const struct sw_sum_call *call);

#endif
