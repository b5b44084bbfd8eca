/* train_dtype.c - convert gradients from f32 to the transferred dtype and back.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "apps/examples/train.h"
#include "sum/sum.h"

static const struct sw_sum_ops *ops_of(enum sw_dtype dtype)
{
	return &sw_sum_find("auto")->ops[dtype];
}

void sw_train_encode(
	enum sw_dtype dtype, void *dst, const float *src, uint64_t n)
{
	double *wide = dst;

	if (dtype == SW_F32)
		memcpy(dst, src, n * sizeof(*src));
	else if (dtype == SW_F64)
		for (uint64_t i = 0; i < n; i++)
			wide[i] = src[i];
	else
		ops_of(dtype)->round(dst, src, n);
}

void sw_train_decode(
	enum sw_dtype dtype, float *dst, const void *src, uint64_t n)
{
	const double *wide = src;

	if (dtype == SW_F32)
		memcpy(dst, src, n * sizeof(*dst));
	else if (dtype == SW_F64)
		for (uint64_t i = 0; i < n; i++)
			dst[i] = (float)wide[i];
	else
		ops_of(dtype)->put(dst, src, n);
}
