/* body.inc.h - the vector kernels, compiled once for every vector level.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A level's file defines the following, then includes this file:
 *   LEVEL, LEVEL_CODE, LEVEL_NAME
 *   VB                    bytes of a vector; then it includes vec.inc.h
 *   canon_f, canon_d      replace every NaN lane by the canonical NaN
 *   has_nan_f, has_nan_d  whether one of two vectors has a NaN
 *   min_f … max_i64       as in sum.h, for one vector
 *   f16_load, bf16_load   VB / 4 elements widened to f32
 *   f16_pack, bf16_pack   2 x VB / 4 f32 (only canonical NaN) rounded, stored
 */
#define COPY(width)                                                    \
	static void copy_##width(void *dst, const void *src, size_t n) \
	{                                                              \
		walk(dst, src, n *(width), VB, 1, 1, copy_step, NULL); \
	}

/* name: acc[i] = f(acc[i], src[i]) for accumulators of @acc and contributions
 * of @src, both among the prefixes of _load. */
#define FOLD(name, acc, acc_bytes, src, src_bytes, f)                          \
	INLINE void name##_step(uint8_t *a, const uint8_t *s, const void *arg) \
	{                                                                      \
		acc##_store(a, f(acc##_load(a), src##_load(s)));               \
	}                                                                      \
	static void name(void *a, const void *s, size_t n)                     \
	{                                                                      \
		walk(a, s, n, VB / (acc_bytes), acc_bytes, src_bytes,          \
			name##_step, NULL);                                    \
	}

/* name: acc[i] += src[i] of floats. Sums are stored first; four vectors later,
 * those that had a NaN are stored again with the canonical NaN. So no test
 * delays the store. */
#define FOLD_ADD(                                                              \
	name, acc, acc_bytes, vec, src, src_bytes, add, has_nan, canon)        \
	INLINE void name##_step(uint8_t *a, const uint8_t *s, const void *arg) \
	{                                                                      \
		acc##_store(a, add(acc##_load(a), src##_load(s)));             \
	}                                                                      \
	INLINE void name##_block(uint8_t *a, const uint8_t *s)                 \
	{                                                                      \
		vec v[4];                                                      \
                                                                               \
		for (int j = 0; j < 4; j++) {                                  \
			v[j] = acc##_load(a + j * VB) +                        \
			       src##_load(s +                                  \
					  j * VB * (src_bytes) / (acc_bytes)); \
			acc##_store(a + j * VB, v[j]);                         \
		}                                                              \
		if (__builtin_expect(                                          \
			    has_nan(v[0], v[1]) | has_nan(v[2], v[3]), 0))     \
			for (int j = 0; j < 4; j++)                            \
				acc##_store(a + j * VB, canon(v[j]));          \
	}                                                                      \
	static void name(void *acc_at, const void *src_at, size_t n)           \
	{                                                                      \
		const size_t lanes = 4 * VB / (acc_bytes);                     \
		const uint8_t *s = src_at;                                     \
		uint8_t *a = acc_at;                                           \
                                                                               \
		for (; n >= lanes; n -= lanes) {                               \
			name##_block(a, s);                                    \
			a += lanes * (acc_bytes);                              \
			s += lanes * (src_bytes);                              \
		}                                                              \
		walk(a, s, n, VB / (acc_bytes), acc_bytes, src_bytes,          \
			name##_step, NULL);                                    \
	}

/* name: acc[i] = src[i] widened to f32 */
#define WIDEN(name, src, src_bytes)                                            \
	INLINE void name##_step(uint8_t *d, const uint8_t *s, const void *arg) \
	{                                                                      \
		f32_store(d, src##_load(s));                                   \
	}                                                                      \
	static void name(void *d, const void *s, size_t n)                     \
	{                                                                      \
		walk(d, s, n, VB / 4, 4, src_bytes, name##_step, NULL);        \
	}

/* pack_dst: round two vectors of any f32; NaN are rare, so their branch is not
 * taken. */
#define PACK(dst)                                             \
	INLINE void pack_##dst(uint8_t *d, vf lo, vf hi)      \
	{                                                     \
		if (__builtin_expect(has_nan_f(lo, hi), 0)) { \
			lo = canon_f(lo);                     \
			hi = canon_f(hi);                     \
		}                                             \
		dst##_pack(d, lo, hi);                        \
	}

PACK(f16)
PACK(bf16)

/* name: dst[i] = src[i] rounded from f32 */
#define NARROW(name, dst)                                                      \
	INLINE void name##_step(uint8_t *d, const uint8_t *s, const void *arg) \
	{                                                                      \
		pack_##dst(d, f32_load(s), f32_load(s + VB));                  \
	}                                                                      \
	static void name(void *d, const void *s, size_t n)                     \
	{                                                                      \
		walk(d, s, n, VB / 2, 2, 4, name##_step, NULL);                \
	}

/* name: dst[i] = src[i] * factor, one vector at a time */
#define SCALE(name, x, bytes, wide, vec, canon)                                \
	INLINE void name##_step(uint8_t *d, const uint8_t *s, const void *arg) \
	{                                                                      \
		x##_store(d, canon(x##_load(s) * *(const vec *)arg));          \
	}                                                                      \
	static void name(void *d, const void *s, double factor, size_t n)      \
	{                                                                      \
		vec by = (wide)factor - (vec){0};                              \
                                                                               \
		walk(d, s, n, VB / (bytes), bytes, bytes, name##_step, &by);   \
	}

/* name: the same into 16 bits, a vector of them at a time */
#define SCALE_NARROW(name, dst, src, src_bytes)                                \
	INLINE void name##_step(uint8_t *d, const uint8_t *s, const void *arg) \
	{                                                                      \
		vf by = *(const vf *)arg;                                      \
                                                                               \
		pack_##dst(d, src##_load(s) * by,                              \
			src##_load(s + VB / 4 * (src_bytes)) * by);            \
	}                                                                      \
	static void name(void *d, const void *s, double factor, size_t n)      \
	{                                                                      \
		vf by = (float)factor - (vf){0};                               \
                                                                               \
		walk(d, s, n, VB / 2, 2, src_bytes, name##_step, &by);         \
	}

/* name: acc[i] = src[0][i] + …, four vectors of accumulators in registers.
 * Replacing NaN by the canonical NaN at the end gives the same bytes as after
 * each addition. The remainder goes through buffers as in walk. */
#define SUM(                                                                   \
	name, acc, acc_bytes, vec, src, src_bytes, add, canon, first, next)    \
	INLINE void name##_block(                                              \
		uint8_t *d, const void *const *s, uint32_t n_s, size_t at)     \
	{                                                                      \
		const uint8_t *p = (const uint8_t *)s[0] + at * (src_bytes);   \
		vec a[4];                                                      \
                                                                               \
		for (int j = 0; j < 4; j++)                                    \
			a[j] = src##_load(                                     \
				p + j * VB * (src_bytes) / (acc_bytes));       \
		for (uint32_t k = 1; k < n_s; k++) {                           \
			p = (const uint8_t *)s[k] + at * (src_bytes);          \
			for (int j = 0; j < 4; j++)                            \
				a[j] = add(a[j],                               \
					src##_load(p + j * VB * (src_bytes) /  \
							       (acc_bytes)));  \
		}                                                              \
		for (int j = 0; j < 4; j++)                                    \
			acc##_store(                                           \
				d + at * (acc_bytes) + j * VB, canon(a[j]));   \
	}                                                                      \
	static void name(                                                      \
		void *dst, const void *const *s, uint32_t n_s, size_t n)       \
	{                                                                      \
		const size_t lanes = 4 * VB / (acc_bytes);                     \
		uint8_t rest[4 * VB], *d = dst;                                \
		size_t at = 0;                                                 \
                                                                               \
		if (n_s == 1) {                                                \
			first(dst, s[0], n);                                   \
			return;                                                \
		}                                                              \
		for (; n - at >= lanes; at += lanes)                           \
			name##_block(d, s, n_s, at);                           \
		if (at == n)                                                   \
			return;                                                \
		first(rest, (const uint8_t *)s[0] + at * (src_bytes), n - at); \
		for (uint32_t k = 1; k < n_s; k++)                             \
			next(rest, (const uint8_t *)s[k] + at * (src_bytes),   \
				n - at);                                       \
		memcpy(d + at * (acc_bytes), rest, (n - at) * (acc_bytes));    \
	}

#define SAME(x)     (x)
#define ADD(a, b)   ((a) + (b))
#define MUL(a, b)   ((a) * (b))
#define AND(a, b)   ((a) & (b))
#define OR(a, b)    ((a) | (b))
#define XOR(a, b)   ((a) ^ (b))
#define ADD_F(a, b) canon_f((a) + (b))
#define ADD_D(a, b) canon_d((a) + (b))
#define MUL_F(a, b) canon_f((a) * (b))
#define MUL_D(a, b) canon_d((a) * (b))

COPY(1)
COPY(2)
COPY(4)
COPY(8)

FOLD_ADD(f32_add, f32, 4, vf, f32, 4, ADD_F, has_nan_f, canon_f)
FOLD(f32_min, f32, 4, f32, 4, min_f)
FOLD(f32_max, f32, 4, f32, 4, max_f)
FOLD(f32_mul, f32, 4, f32, 4, MUL_F)
SUM(f32_sum, f32, 4, vf, f32, 4, ADD, canon_f, copy_4, f32_add)
SCALE(f32_scale, f32, 4, float, vf, canon_f)

FOLD_ADD(f64_add, f64, 8, vd, f64, 8, ADD_D, has_nan_d, canon_d)
FOLD(f64_min, f64, 8, f64, 8, min_d)
FOLD(f64_max, f64, 8, f64, 8, max_d)
FOLD(f64_mul, f64, 8, f64, 8, MUL_D)
SUM(f64_sum, f64, 8, vd, f64, 8, ADD, canon_d, copy_8, f64_add)
SCALE(f64_scale, f64, 8, double, vd, canon_d)

/* A 16-bit float: widened on load, rounded on store. */
#define HALF(h)                                                        \
	WIDEN(h##_put, h, 2)                                           \
	NARROW(h##_round, h)                                           \
	SCALE_NARROW(h##_scale, h, h, 2)                               \
	SCALE_NARROW(h##_round_scale, h, f32, 4)                       \
	FOLD_ADD(h##_add, f32, 4, vf, h, 2, ADD_F, has_nan_f, canon_f) \
	FOLD(h##_min, f32, 4, h, 2, min_f)                             \
	FOLD(h##_max, f32, 4, h, 2, max_f)                             \
	FOLD(h##_mul, f32, 4, h, 2, MUL_F)                             \
	SUM(h##_sum, f32, 4, vf, h, 2, ADD, canon_f, h##_put, h##_add)

HALF(f16)
HALF(bf16)

FOLD(i8_add, i8, 1, i8, 1, ADD)
FOLD(i32_add, i32, 4, i32, 4, ADD)
FOLD(i64_add, i64, 8, i64, 8, ADD)
FOLD(i8_mul, i8, 1, i8, 1, MUL)
FOLD(i32_mul, i32, 4, i32, 4, MUL)
FOLD(i64_mul, i64, 8, i64, 8, MUL)

#define BITS(width, x)                             \
	FOLD(and_##width, x, width, x, width, AND) \
	FOLD(or_##width, x, width, x, width, OR)   \
	FOLD(xor_##width, x, width, x, width, XOR)

BITS(1, i8)
BITS(4, i32)
BITS(8, i64)

SUM(i8_sum, i8, 1, v8, i8, 1, ADD, SAME, copy_1, i8_add)
SUM(i32_sum, i32, 4, v32, i32, 4, ADD, SAME, copy_4, i32_add)
SUM(i64_sum, i64, 8, v64, i64, 8, ADD, SAME, copy_8, i64_add)
SUM(bool_sum, i8, 1, v8, i8, 1, OR, SAME, copy_1, or_1)
FOLD(u8_min, i8, 1, i8, 1, min_u8)
FOLD(u8_max, i8, 1, i8, 1, max_u8)
FOLD(i8_min, i8, 1, i8, 1, min_i8)
FOLD(i8_max, i8, 1, i8, 1, max_i8)
FOLD(i32_min, i32, 4, i32, 4, min_i32)
FOLD(i32_max, i32, 4, i32, 4, max_i32)
FOLD(i64_min, i64, 8, i64, 8, min_i64)
FOLD(i64_max, i64, 8, i64, 8, max_i64)

#include "sum/scale.inc.h"
#include "sum/table.inc.h"

/* Whole lines bypass the caches; the bytes before and after them do not. The
 * fence serves waiting threads: a later release does not order streaming
 * stores. */
static void stream(void *dst, const void *src, size_t n)
{
	uint8_t *d = dst;
	const uint8_t *s = src;
	size_t i = -(uintptr_t)d % LINE;

	i = i < n ? i : n;
	copy_1(d, s, i);
	for (; n - i >= LINE; i += LINE)
		for (size_t k = 0; k < LINE; k += VB)
			STREAM(d + i + k, i8_load(s + i + k));
	copy_1(d + i, s + i, n - i);
	_mm_sfence();
}

const struct sw_sum LEVEL = {
	.level = LEVEL_CODE,
	.name = LEVEL_NAME,
	.ops = SW_SUM_OPS,
	.stream = stream,
	.copy = memcpy,
};
