/* scale.inc.h - scale integers, divide sums: plain C, for every level.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Use buffers, because the compiler vectorizes only memory that it knows not to
 * overlap. Round the product to the nearest integer within [@lo, @hi], both
 * exact as double. NaN gives 0. */
#define SCALE_INT(name, type, lo, hi)                                         \
	static void name(void *dst, const void *src, double factor, size_t n) \
	{                                                                     \
		const char *s = src;                                          \
		char *d = dst;                                                \
                                                                              \
		while (n) {                                                   \
			size_t part = n < 256 ? n : 256;                      \
			type in[256], out[256];                               \
                                                                              \
			memcpy(in, s, part * sizeof(type));                   \
			for (size_t i = 0; i < part; i++) {                   \
				double x = rint((double)in[i] * factor);      \
                                                                              \
				x = x == x ? x : 0;                           \
				x = x < (lo) ? (lo) : x;                      \
				x = x > (hi) ? (hi) : x;                      \
				out[i] = (type)(int32_t)x;                    \
			}                                                     \
			memcpy(d, out, part * sizeof(type));                  \
			s += part * sizeof(type);                             \
			d += part * sizeof(type);                             \
			n -= part;                                            \
		}                                                             \
	}

SCALE_INT(u8_scale, uint8_t, 0, UINT8_MAX)
SCALE_INT(i8_scale, int8_t, INT8_MIN, INT8_MAX)
SCALE_INT(i32_scale, int32_t, INT32_MIN, INT32_MAX)

__extension__ typedef __int128 wide;

/* Multiply by @m * 2^@e, |@m| < 2^53; the product has at most 116 bits. A
 * double would not be exact: it holds 53 of the 63 bits of @v. */
static int64_t i64_times(int64_t v, int64_t m, int e)
{
	wide p = (wide)v * m, half, rest;

	if (e < -117 || !p)
		return 0;
	if (e > 63)
		return p < 0 ? INT64_MIN : INT64_MAX;
	if (e >= 0 && p > INT64_MAX >> e)
		return INT64_MAX;
	if (e >= 0)
		return p < -((wide)1 << 63 >> e)
			       ? INT64_MIN
			       : (int64_t)(p * ((wide)1 << e));
	rest = p & (((wide)1 << -e) - 1);
	half = (wide)1 << (-e - 1);
	p >>= -e; /* rounds down */
	p += rest > half || (rest == half && (p & 1));
	p = p > INT64_MAX ? INT64_MAX : p;
	return (int64_t)(p < INT64_MIN ? INT64_MIN : p);
}

static void i64_scale(void *dst, const void *src, double factor, size_t n)
{
	int e = 0;
	/* An infinite factor acts like a very large one, except that 0 stays 0;
	 * NaN gives 0. */
	int64_t m = isfinite(factor) ? (int64_t)ldexp(frexp(factor, &e), 53)
		    : isnan(factor)  ? 0
				     : (factor > 0) - (factor < 0);

	e = isfinite(factor) ? e - 53 : INT16_MAX;
	for (size_t i = 0; i < n; i++) {
		int64_t v;

		memcpy(&v, (const char *)src + 8 * i, 8);
		v = i64_times(v, m, e);
		memcpy((char *)dst + 8 * i, &v, 8);
	}
}

/* Floats: rounded once; every NaN becomes the canonical NaN. For a power of two
 * the product with the inverse has the same bits, and is several times as fast.
 */
#define DIVIDE_FLOAT(name, type, nan)                                       \
	static void name(void *dst, const void *acc, uint32_t by, size_t n) \
	{                                                                   \
		bool is_exact = !(by & (by - 1));                           \
		type with = is_exact ? 1 / (type)by : (type)by;             \
                                                                            \
		for (size_t i = 0; i < n; i++) {                            \
			type x;                                             \
                                                                            \
			memcpy(&x, (const char *)acc + i * sizeof(x),       \
				sizeof(x));                                 \
			x = is_exact ? x * with : x / with;                 \
			x = x == x ? x : nan;                               \
			memcpy((char *)dst + i * sizeof(x), &x, sizeof(x)); \
		}                                                           \
	}

DIVIDE_FLOAT(f32_divide, float, __builtin_nanf(""))
DIVIDE_FLOAT(f64_divide, double, __builtin_nan(""))

/* Integers: towards zero. */
#define DIVIDE_INT(name, type)                                              \
	static void name(void *dst, const void *acc, uint32_t by, size_t n) \
	{                                                                   \
		for (size_t i = 0; i < n; i++) {                            \
			type x;                                             \
                                                                            \
			memcpy(&x, (const char *)acc + i * sizeof(x),       \
				sizeof(x));                                 \
			x = (type)((int64_t)x / (int64_t)by);               \
			memcpy((char *)dst + i * sizeof(x), &x, sizeof(x)); \
		}                                                           \
	}

DIVIDE_INT(u8_divide, uint8_t)
DIVIDE_INT(i8_divide, int8_t)
DIVIDE_INT(i32_divide, int32_t)
DIVIDE_INT(i64_divide, int64_t)
