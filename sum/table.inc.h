/* table.inc.h - fill a level's row with its functions; same for all levels.
 * SPDX-License-Identifier: BSD-3-Clause
 */

/* A dtype whose accumulator holds the dtype itself, @width bytes wide. */
#define SW_SUM_PLAIN(width, x, low)                                       \
	.elem_bytes = (width), .acc_bytes = (width), .put = copy_##width, \
	.copy = copy_##width, .sum = x##_sum, .min = low##_min,           \
	.max = low##_max

#define SW_SUM_FLOAT(width, x)                                             \
	{                                                                  \
		SW_SUM_PLAIN(width, x, x), .add = x##_add, .mul = x##_mul, \
					   .scale = x##_scale,             \
					   .divide = x##_divide            \
	}

/* Bitwise operations. */
#define SW_SUM_BITS(width) \
	.band = and_##width, .bor = or_##width, .bxor = xor_##width

/* An integer; its add and mul are those of @x. */
#define SW_SUM_INT(width, x, low)                                             \
	{                                                                     \
		SW_SUM_PLAIN(width, x, low), SW_SUM_BITS(width),              \
			.add = x##_add, .mul = x##_mul, .scale = low##_scale, \
			.divide = low##_divide                                \
	}

/* A 16-bit float, accumulated in f32. */
#define SW_SUM_HALF(x)                                                    \
	{                                                                 \
		.elem_bytes = 2, .acc_bytes = 4, .put = x##_put,          \
		.copy = copy_2, .add = x##_add, .sum = x##_sum,           \
		.scale = x##_scale, .min = x##_min, .max = x##_max,       \
		.mul = x##_mul, .divide = f32_divide, .round = x##_round, \
		.round_scale = x##_round_scale,                           \
	}

#define SW_SUM_OPS                                                            \
	{                                                                     \
		[SW_F32] = SW_SUM_FLOAT(4, f32),                              \
		[SW_F64] = SW_SUM_FLOAT(8, f64), [SW_F16] = SW_SUM_HALF(f16), \
		[SW_U8] = SW_SUM_INT(1, i8, u8),                              \
		[SW_I32] = SW_SUM_INT(4, i32, i32),                           \
		[SW_I8] = SW_SUM_INT(1, i8, i8),                              \
		[SW_I64] = SW_SUM_INT(8, i64, i64),                           \
		[SW_BOOL] = {SW_SUM_PLAIN(1, bool, u8), SW_SUM_BITS(1),       \
			.add = or_1, .mul = and_1},                           \
		[SW_BF16] = SW_SUM_HALF(bf16),                                \
	}
