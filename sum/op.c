/* op.c - the operations of sum.h by number.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "sum/op.h"

static const char *const names[SW_N_SUM_OPS] = {
	[SW_OP_COPY] = "copy",
	[SW_OP_PUT] = "put",
	[SW_OP_ADD] = "add",
	[SW_OP_SUM] = "sum",
	[SW_OP_SCALE] = "scale",
	[SW_OP_ROUND] = "round",
	[SW_OP_ROUND_SCALE] = "round_scale",
	[SW_OP_MIN] = "min",
	[SW_OP_MAX] = "max",
	[SW_OP_MUL] = "mul",
	[SW_OP_BAND] = "band",
	[SW_OP_BOR] = "bor",
	[SW_OP_BXOR] = "bxor",
	[SW_OP_DIVIDE] = "divide",
};

const char *sw_sum_op_name(enum sw_sum_op op)
{
	return op < SW_N_SUM_OPS ? names[op] : "?";
}

static bool has(const struct sw_sum_ops *ops, enum sw_sum_op op)
{
	switch (op) {
	case SW_OP_SCALE:
		return ops->scale;
	case SW_OP_ROUND:
		return ops->round;
	case SW_OP_ROUND_SCALE:
		return ops->round_scale;
	case SW_OP_BAND:
	case SW_OP_BOR:
	case SW_OP_BXOR:
		return ops->band;
	case SW_OP_DIVIDE:
		return ops->divide;
	default:
		return ops->elem_bytes && op < SW_N_SUM_OPS;
	}
}

bool sw_sum_op_shape(const struct sw_sum_ops *ops, enum sw_sum_op op,
	struct sw_sum_shape *out)
{
	bool is_elem_out = op == SW_OP_COPY || op == SW_OP_SCALE;
	bool is_round = op == SW_OP_ROUND || op == SW_OP_ROUND_SCALE;
	bool is_fold = op == SW_OP_ADD || (op >= SW_OP_MIN && op <= SW_OP_BXOR);

	if (!has(ops, op))
		return false;
	out->dst_bytes =
		is_elem_out || is_round ? ops->elem_bytes : ops->acc_bytes;
	out->src_bytes = is_round || op == SW_OP_DIVIDE ? ops->acc_bytes
							: ops->elem_bytes;
	out->reads_dst = is_fold;
	out->may_alias = out->src_bytes >= out->dst_bytes;
	return true;
}

void sw_sum_op_run(const struct sw_sum_ops *ops, enum sw_sum_op op,
	const struct sw_sum_call *c)
{
	switch (op) {
	case SW_OP_COPY:
		ops->copy(c->dst, c->src[0], c->n);
		return;
	case SW_OP_PUT:
		ops->put(c->dst, c->src[0], c->n);
		return;
	case SW_OP_ADD:
		ops->add(c->dst, c->src[0], c->n);
		return;
	case SW_OP_SUM:
		ops->sum(c->dst, c->src, c->n_src, c->n);
		return;
	case SW_OP_SCALE:
		ops->scale(c->dst, c->src[0], c->factor, c->n);
		return;
	case SW_OP_ROUND:
		ops->round(c->dst, c->src[0], c->n);
		return;
	case SW_OP_ROUND_SCALE:
		ops->round_scale(c->dst, c->src[0], c->factor, c->n);
		return;
	case SW_OP_MIN:
		ops->min(c->dst, c->src[0], c->n);
		return;
	case SW_OP_MAX:
		ops->max(c->dst, c->src[0], c->n);
		return;
	case SW_OP_MUL:
		ops->mul(c->dst, c->src[0], c->n);
		return;
	case SW_OP_BAND:
		ops->band(c->dst, c->src[0], c->n);
		return;
	case SW_OP_BOR:
		ops->bor(c->dst, c->src[0], c->n);
		return;
	case SW_OP_BXOR:
		ops->bxor(c->dst, c->src[0], c->n);
		return;
	case SW_OP_DIVIDE:
		ops->divide(c->dst, c->src[0], c->by, c->n);
		return;
	case SW_N_SUM_OPS:
		return;
	}
}
