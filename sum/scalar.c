/* scalar.c - the reference: one element at a time, plain C.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>

#include "sum/half.h"
#include "sum/level.h"
#include "sum/scale.inc.h"

/* Any pointer may be unaligned or equal to another, so access elements by
 * memcpy. */
#define GET(type, p, i)                                               \
	({                                                            \
		type get_;                                            \
		memcpy(&get_, (const char *)(p) + (i) * sizeof(type), \
			sizeof(type));                                \
		get_;                                                 \
	})
#define SET(type, p, i, value)                                                 \
	do {                                                                   \
		type set_ = (value);                                           \
		memcpy((char *)(p) + (i) * sizeof(type), &set_, sizeof(type)); \
	} while (0)

/* Hardware keeps one of two payloads, depending on the order of operands, so
 * replace every computed NaN by the canonical NaN. */
static inline float canon_f(float f)
{
	return f == f ? f : sw_f32_from_bits(0x7fc00000);
}

static inline double canon_d(double d)
{
	static const uint64_t nan_bits = 0x7ff8000000000000;
	double nan_d;

	memcpy(&nan_d, &nan_bits, sizeof(nan_d));
	return d == d ? d : nan_d;
}

/* IEEE 754-2019 minimum and maximum, for float and double. */
#define MIN_MAX(suffix, type)                           \
	static inline type min_##suffix(type a, type b) \
	{                                               \
		if (a != a || b != b)                   \
			return canon_##suffix(a + b);   \
		if (a == b)                             \
			return signbit(a) ? a : b;      \
		return a < b ? a : b;                   \
	}                                               \
	static inline type max_##suffix(type a, type b) \
	{                                               \
		if (a != a || b != b)                   \
			return canon_##suffix(a + b);   \
		if (a == b)                             \
			return signbit(a) ? b : a;      \
		return a > b ? a : b;                   \
	}

MIN_MAX(f, float)
MIN_MAX(d, double)

#define SAME(x)      (x)
#define ADD_F(a, b)  canon_f((a) + (b))
#define ADD_D(a, b)  canon_d((a) + (b))
#define ADD_8(a, b)  (uint8_t)((a) + (b))
#define ADD_32(a, b) ((a) + (b))
#define ADD_64(a, b) ((a) + (b))
#define MUL_F(a, b)  canon_f((a) * (b))
#define MUL_D(a, b)  canon_d((a) * (b))
#define MUL_8(a, b)  (uint8_t)((a) * (b))
#define MUL(a, b)    ((a) * (b))
#define AND(a, b)    ((a) & (b))
#define OR(a, b)     ((a) | (b))
#define XOR(a, b)    ((a) ^ (b))
#define MIN(a, b)    ((a) < (b) ? (a) : (b))
#define MAX(a, b)    ((a) > (b) ? (a) : (b))

/* name: acc[i] = f(acc[i], src[i]) */
#define FOLD(name, acc_t, src_t, widen, f)                     \
	static void name(void *acc, const void *src, size_t n) \
	{                                                      \
		for (size_t i = 0; i < n; i++) {               \
			acc_t a = GET(acc_t, acc, i);          \
			acc_t s = widen(GET(src_t, src, i));   \
                                                               \
			SET(acc_t, acc, i, f(a, s));           \
		}                                              \
	}

/* name: acc[i] = src[0][i] + … */
#define SUM(name, acc_t, src_t, widen, add)                                  \
	static void name(                                                    \
		void *acc, const void *const *src, uint32_t n_src, size_t n) \
	{                                                                    \
		for (size_t i = 0; i < n; i++) {                             \
			acc_t a = widen(GET(src_t, src[0], i));              \
                                                                             \
			for (uint32_t k = 1; k < n_src; k++) {               \
				acc_t s = widen(GET(src_t, src[k], i));      \
                                                                             \
				a = add(a, s);                               \
			}                                                    \
			SET(acc_t, acc, i, a);                               \
		}                                                            \
	}

/* name: dst[i] = f(src[i]) */
#define MAP(name, dst_t, src_t, f)                                 \
	static void name(void *dst, const void *src, size_t n)     \
	{                                                          \
		for (size_t i = 0; i < n; i++)                     \
			SET(dst_t, dst, i, f(GET(src_t, src, i))); \
	}

/* name: dst[i] = narrow(widen(src[i]) * factor) */
#define SCALE(name, dst_t, src_t, wide_t, widen, canon, narrow)               \
	static void name(void *dst, const void *src, double factor, size_t n) \
	{                                                                     \
		wide_t by = (wide_t)factor;                                   \
                                                                              \
		for (size_t i = 0; i < n; i++) {                              \
			wide_t x = widen(GET(src_t, src, i)) * by;            \
                                                                              \
			SET(dst_t, dst, i, narrow(canon(x)));                 \
		}                                                             \
	}

MAP(copy_1, uint8_t, uint8_t, SAME)
MAP(copy_2, uint16_t, uint16_t, SAME)
MAP(copy_4, uint32_t, uint32_t, SAME)
MAP(copy_8, uint64_t, uint64_t, SAME)

FOLD(f32_add, float, float, SAME, ADD_F)
FOLD(f32_min, float, float, SAME, min_f)
FOLD(f32_max, float, float, SAME, max_f)
FOLD(f32_mul, float, float, SAME, MUL_F)
SUM(f32_sum, float, float, SAME, ADD_F)
SCALE(f32_scale, float, float, float, SAME, canon_f, SAME)

FOLD(f64_add, double, double, SAME, ADD_D)
FOLD(f64_min, double, double, SAME, min_d)
FOLD(f64_max, double, double, SAME, max_d)
FOLD(f64_mul, double, double, SAME, MUL_D)
SUM(f64_sum, double, double, SAME, ADD_D)
SCALE(f64_scale, double, double, double, SAME, canon_d, SAME)

MAP(f16_put, float, uint16_t, sw_f16_widen)
FOLD(f16_add, float, uint16_t, sw_f16_widen, ADD_F)
FOLD(f16_min, float, uint16_t, sw_f16_widen, min_f)
FOLD(f16_max, float, uint16_t, sw_f16_widen, max_f)
FOLD(f16_mul, float, uint16_t, sw_f16_widen, MUL_F)
SUM(f16_sum, float, uint16_t, sw_f16_widen, ADD_F)
MAP(f16_round, uint16_t, float, sw_f16_round)
SCALE(f16_round_scale, uint16_t, float, float, SAME, canon_f, sw_f16_round)
SCALE(f16_scale, uint16_t, uint16_t, float, sw_f16_widen, canon_f, sw_f16_round)

MAP(bf16_put, float, uint16_t, sw_bf16_widen)
FOLD(bf16_add, float, uint16_t, sw_bf16_widen, ADD_F)
FOLD(bf16_min, float, uint16_t, sw_bf16_widen, min_f)
FOLD(bf16_max, float, uint16_t, sw_bf16_widen, max_f)
FOLD(bf16_mul, float, uint16_t, sw_bf16_widen, MUL_F)
SUM(bf16_sum, float, uint16_t, sw_bf16_widen, ADD_F)
MAP(bf16_round, uint16_t, float, sw_bf16_round)
SCALE(bf16_round_scale, uint16_t, float, float, SAME, canon_f, sw_bf16_round)
SCALE(bf16_scale, uint16_t, uint16_t, float, sw_bf16_widen, canon_f,
	sw_bf16_round)

/* Add and multiply signed integers as unsigned ones, which wrap. */
FOLD(i8_add, uint8_t, uint8_t, SAME, ADD_8)
FOLD(i32_add, uint32_t, uint32_t, SAME, ADD_32)
FOLD(i64_add, uint64_t, uint64_t, SAME, ADD_64)
SUM(i8_sum, uint8_t, uint8_t, SAME, ADD_8)
SUM(i32_sum, uint32_t, uint32_t, SAME, ADD_32)
SUM(i64_sum, uint64_t, uint64_t, SAME, ADD_64)
FOLD(i8_mul, uint8_t, uint8_t, SAME, MUL_8)
FOLD(i32_mul, uint32_t, uint32_t, SAME, MUL)
FOLD(i64_mul, uint64_t, uint64_t, SAME, MUL)
FOLD(u8_min, uint8_t, uint8_t, SAME, MIN)
FOLD(u8_max, uint8_t, uint8_t, SAME, MAX)
FOLD(i8_min, int8_t, int8_t, SAME, MIN)
FOLD(i8_max, int8_t, int8_t, SAME, MAX)
FOLD(i32_min, int32_t, int32_t, SAME, MIN)
FOLD(i32_max, int32_t, int32_t, SAME, MAX)
FOLD(i64_min, int64_t, int64_t, SAME, MIN)
FOLD(i64_max, int64_t, int64_t, SAME, MAX)

#define BITS(width, type)                        \
	FOLD(and_##width, type, type, SAME, AND) \
	FOLD(or_##width, type, type, SAME, OR)   \
	FOLD(xor_##width, type, type, SAME, XOR)

BITS(1, uint8_t)
BITS(4, uint32_t)
BITS(8, uint64_t)
SUM(bool_sum, uint8_t, uint8_t, SAME, OR)

#include "sum/table.inc.h"

const struct sw_sum sw_sum_scalar = {
	.level = SW_SUM_SCALAR,
	.name = "scalar",
	.ops = SW_SUM_OPS,
	.stream = copy_1,
	.copy = memcpy,
};
