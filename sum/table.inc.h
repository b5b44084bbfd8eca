/* table.inc.h - names of a level's functions to its row; same for all levels.
 * SPDX-License-Identifier: BSD-3-Clause */

/* A dtype whose accumulator holds the dtype itself, @width bytes wide. */
#define SW_SUM_PLAIN(width, x, low, scale_)                                \
	{                                                                  \
		.elem_bytes = (width), .acc_bytes = (width),               \
		.put = copy_##width, .copy = copy_##width, .add = x##_add, \
		.sum = x##_sum, .scale = (scale_), .min = low##_min,       \
		.max = low##_max,                                          \
	}

/* A 16-bit float, accumulated in f32. */
#define SW_SUM_HALF(x)                                              \
	{                                                           \
		.elem_bytes = 2, .acc_bytes = 4, .put = x##_put,    \
		.copy = copy_2, .add = x##_add, .sum = x##_sum,     \
		.scale = x##_scale, .min = x##_min, .max = x##_max, \
		.round = x##_round, .round_scale = x##_round_scale, \
	}

#define SW_SUM_OPS                                               \
	{                                                        \
		[SW_F32] = SW_SUM_PLAIN(4, f32, f32, f32_scale), \
		[SW_F64] = SW_SUM_PLAIN(8, f64, f64, f64_scale), \
		[SW_F16] = SW_SUM_HALF(f16),                     \
		[SW_U8] = SW_SUM_PLAIN(1, i8, u8, u8_scale),     \
		[SW_I32] = SW_SUM_PLAIN(4, i32, i32, i32_scale), \
		[SW_I8] = SW_SUM_PLAIN(1, i8, i8, i8_scale),     \
		[SW_I64] = SW_SUM_PLAIN(8, i64, i64, i64_scale), \
		[SW_BOOL] = SW_SUM_PLAIN(1, bool, u8, NULL),     \
		[SW_BF16] = SW_SUM_HALF(bf16),                   \
	}
