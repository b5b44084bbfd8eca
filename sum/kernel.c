/* kernel.c - the kernels of sum.h by number.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "sum/kernel.h"

static const char *const names[SW_N_KERNELS] = {
	[SW_KERNEL_COPY] = "copy",
	[SW_KERNEL_PUT] = "put",
	[SW_KERNEL_ADD] = "add",
	[SW_KERNEL_SUM] = "sum",
	[SW_KERNEL_SCALE] = "scale",
	[SW_KERNEL_ROUND] = "round",
	[SW_KERNEL_ROUND_SCALE] = "round_scale",
	[SW_KERNEL_MIN] = "min",
	[SW_KERNEL_MAX] = "max",
	[SW_KERNEL_MUL] = "mul",
	[SW_KERNEL_BAND] = "band",
	[SW_KERNEL_BOR] = "bor",
	[SW_KERNEL_BXOR] = "bxor",
	[SW_KERNEL_DIVIDE] = "divide",
};

const char *sw_kernel_name(enum sw_kernel kernel)
{
	return kernel < SW_N_KERNELS ? names[kernel] : "?";
}

static bool has(const struct sw_sum_ops *ops, enum sw_kernel kernel)
{
	switch (kernel) {
	case SW_KERNEL_SCALE:
		return ops->scale;
	case SW_KERNEL_ROUND:
		return ops->round;
	case SW_KERNEL_ROUND_SCALE:
		return ops->round_scale;
	case SW_KERNEL_BAND:
	case SW_KERNEL_BOR:
	case SW_KERNEL_BXOR:
		return ops->band;
	case SW_KERNEL_DIVIDE:
		return ops->divide;
	default:
		return ops->elem_bytes && kernel < SW_N_KERNELS;
	}
}

bool sw_kernel_shape(const struct sw_sum_ops *ops, enum sw_kernel kernel,
	struct sw_sum_shape *out)
{
	bool is_elem_out =
		kernel == SW_KERNEL_COPY || kernel == SW_KERNEL_SCALE;
	bool is_round =
		kernel == SW_KERNEL_ROUND || kernel == SW_KERNEL_ROUND_SCALE;
	bool is_fold = kernel == SW_KERNEL_ADD ||
		       (kernel >= SW_KERNEL_MIN && kernel <= SW_KERNEL_BXOR);

	if (!has(ops, kernel))
		return false;
	out->dst_bytes =
		is_elem_out || is_round ? ops->elem_bytes : ops->acc_bytes;
	out->src_bytes = is_round || kernel == SW_KERNEL_DIVIDE
				 ? ops->acc_bytes
				 : ops->elem_bytes;
	out->reads_dst = is_fold;
	out->may_alias = out->src_bytes >= out->dst_bytes;
	return true;
}

void sw_kernel_run(const struct sw_sum_ops *ops, enum sw_kernel kernel,
	const struct sw_sum_call *c)
{
	switch (kernel) {
	case SW_KERNEL_COPY:
		ops->copy(c->dst, c->src[0], c->n);
		return;
	case SW_KERNEL_PUT:
		ops->put(c->dst, c->src[0], c->n);
		return;
	case SW_KERNEL_ADD:
		ops->add(c->dst, c->src[0], c->n);
		return;
	case SW_KERNEL_SUM:
		ops->sum(c->dst, c->src, c->n_src, c->n);
		return;
	case SW_KERNEL_SCALE:
		ops->scale(c->dst, c->src[0], c->factor, c->n);
		return;
	case SW_KERNEL_ROUND:
		ops->round(c->dst, c->src[0], c->n);
		return;
	case SW_KERNEL_ROUND_SCALE:
		ops->round_scale(c->dst, c->src[0], c->factor, c->n);
		return;
	case SW_KERNEL_MIN:
		ops->min(c->dst, c->src[0], c->n);
		return;
	case SW_KERNEL_MAX:
		ops->max(c->dst, c->src[0], c->n);
		return;
	case SW_KERNEL_MUL:
		ops->mul(c->dst, c->src[0], c->n);
		return;
	case SW_KERNEL_BAND:
		ops->band(c->dst, c->src[0], c->n);
		return;
	case SW_KERNEL_BOR:
		ops->bor(c->dst, c->src[0], c->n);
		return;
	case SW_KERNEL_BXOR:
		ops->bxor(c->dst, c->src[0], c->n);
		return;
	case SW_KERNEL_DIVIDE:
		ops->divide(c->dst, c->src[0], c->by, c->n);
		return;
	case SW_N_KERNELS:
		return;
	}
}
