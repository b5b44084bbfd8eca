/* op.h - the operations of sum.h by number, for the checker and the bench.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_SUM_OP_H
#define SW_SUM_OP_H

#include "sum/sum.h"

enum sw_sum_op {
	SW_OP_COPY,
	SW_OP_PUT,
	SW_OP_ADD,
	SW_OP_SUM,
	SW_OP_SCALE,
	SW_OP_ROUND,
	SW_OP_ROUND_SCALE,
	SW_OP_MIN,
	SW_OP_MAX,
	SW_OP_MUL,
	SW_OP_BAND,
	SW_OP_BOR,
	SW_OP_BXOR,
	SW_OP_DIVIDE,
	SW_N_SUM_OPS,
};

enum { SW_OP_MAX_SRC = 8 };

/* What one element of an operation reads and writes, in bytes. */
struct sw_sum_shape {
	uint32_t dst_bytes; /* written */
	uint32_t src_bytes; /* read from each source */
	bool reads_dst;     /* dst_bytes are read as well */
	bool may_alias;     /* dst may equal a source */
};

/* The arguments of one call; an operation ignores what it has not. */
struct sw_sum_call {
	void *dst;
	const void *src[SW_OP_MAX_SRC]; /* only SW_OP_SUM reads beyond [0] */
	uint32_t n_src;                 /* of SW_OP_SUM */
	double factor;
	uint32_t by; /* of SW_OP_DIVIDE */
	size_t n;
};

/* sw_sum_op_name - "copy", "put", "add", "sum", …  Static text. */
const char *sw_sum_op_name(enum sw_sum_op op);

/* sw_sum_op_shape - fill @out; false where @ops has no such operation (a dtype
 * not in use, rounding of a dtype that is its own accumulator, bits of floats,
 * scaled bool). */
bool sw_sum_op_shape(const struct sw_sum_ops *ops, enum sw_sum_op op,
	struct sw_sum_shape *out);

/* sw_sum_op_run - make the call; @ops must have the operation. */
void sw_sum_op_run(const struct sw_sum_ops *ops, enum sw_sum_op op,
	const struct sw_sum_call *call);

#endif
