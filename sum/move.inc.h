/* move.inc.h - the loads and stores of the kernels, without arithmetic.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The yardstick of the bench: the same table, loop and vectors, loaded into
 * registers and not used. The including file defines LEVEL, LEVEL_CODE,
 * LEVEL_NAME, VB.
 */
#include "sum/vec.inc.h"

#if VB == 16
typedef uint64_t vh;
#define USE_HALF(v) __asm__ volatile("" : : "r"(v))
#else
typedef uint8_t vh __attribute__((vector_size(VB / 2)));
#define USE_HALF(v) __asm__ volatile("" : : "x"(v))
#endif

INLINE vh half_load(const uint8_t *p)
{
	vh v;

	memcpy(&v, p, VB / 2);
	return v;
}

/* USE: @v must be in a register here. RENEW: the compiler must not assume that
 * it stores the loaded value. */
#define USE(v)   __asm__ volatile("" : : "x"(v))
#define RENEW(v) __asm__ volatile("" : "+x"(v))

INLINE void fold_step(uint8_t *a, const uint8_t *s, const void *arg)
{
	v8 acc = i8_load(a);

	USE(i8_load(s));
	RENEW(acc);
	i8_store(a, acc);
}

INLINE void fold_half_step(uint8_t *a, const uint8_t *s, const void *arg)
{
	v8 acc = i8_load(a);

	USE_HALF(half_load(s));
	RENEW(acc);
	i8_store(a, acc);
}

INLINE void widen_step(uint8_t *d, const uint8_t *s, const void *arg)
{
	USE_HALF(half_load(s));
	i8_store(d, (v8){0});
}

INLINE void narrow_step(uint8_t *d, const uint8_t *s, const void *arg)
{
	USE(i8_load(s));
	USE(i8_load(s + VB));
	i8_store(d, (v8){0});
}

#define MOVE(name, lanes, dst_bytes, src_bytes, step)                   \
	static void name(void *d, const void *s, size_t n)              \
	{                                                               \
		walk(d, s, n, lanes, dst_bytes, src_bytes, step, NULL); \
	}

#define MOVE_SCALE(name, lanes, dst_bytes, src_bytes, step)               \
	static void name(void *d, const void *s, double factor, size_t n) \
	{                                                                 \
		walk(d, s, n, lanes, dst_bytes, src_bytes, step, NULL);   \
	}

#define MOVE_DIVIDE(name, lanes, bytes)                                 \
	static void name(void *d, const void *s, uint32_t by, size_t n) \
	{                                                               \
		walk(d, s, n, lanes, bytes, bytes, copy_step, NULL);    \
	}

/* Skip a remainder of less than four vectors: 64 of these are far more. */
#define MOVE_SUM(name, width, src_bytes, load, use)                           \
	static void name(                                                     \
		void *dst, const void *const *s, uint32_t n_s, size_t n)      \
	{                                                                     \
		const size_t lanes = 4 * VB / (width);                        \
		uint8_t *d = dst;                                             \
                                                                              \
		for (size_t at = 0; n - at >= lanes; at += lanes) {           \
			for (uint32_t k = 0; k < n_s; k++) {                  \
				const uint8_t *p = (const uint8_t *)s[k] +    \
						   at * (src_bytes);          \
                                                                              \
				for (int j = 0; j < 4; j++)                   \
					use(load(p + j * VB * (src_bytes) /   \
							     (width)));       \
			}                                                     \
			for (int j = 0; j < 4; j++)                           \
				i8_store(d + at * (width) + j * VB, (v8){0}); \
		}                                                             \
	}

#define PLAIN(w)                                          \
	MOVE(copy_##w, VB / w, w, w, copy_step)           \
	MOVE(m##w##_add, VB / w, w, w, fold_step)         \
	MOVE_SCALE(m##w##_scale, VB / w, w, w, copy_step) \
	MOVE_DIVIDE(m##w##_divide, VB / w, w)             \
	MOVE_SUM(m##w##_sum, w, w, i8_load, USE)

PLAIN(1)
PLAIN(4)
PLAIN(8)
MOVE(copy_2, VB / 2, 2, 2, copy_step)
MOVE(half_put, VB / 4, 4, 2, widen_step)
MOVE(half_add, VB / 4, 4, 2, fold_half_step)
MOVE(half_round, VB / 2, 2, 4, narrow_step)
MOVE_SCALE(half_scale, VB / 2, 2, 2, copy_step)
MOVE_SCALE(half_round_scale, VB / 2, 2, 4, narrow_step)
MOVE_SUM(half_sum, 4, 2, half_load, USE_HALF)

#define PLAIN_OPS(w)                                                      \
	{                                                                 \
		.elem_bytes = w, .acc_bytes = w, .put = copy_##w,         \
		.copy = copy_##w, .add = m##w##_add, .min = m##w##_add,   \
		.max = m##w##_add, .mul = m##w##_add, .band = m##w##_add, \
		.bor = m##w##_add, .bxor = m##w##_add, .sum = m##w##_sum, \
		.scale = m##w##_scale, .divide = m##w##_divide,           \
	}

#define HALF_OPS                                                           \
	{                                                                  \
		.elem_bytes = 2, .acc_bytes = 4, .put = half_put,          \
		.copy = copy_2, .add = half_add, .min = half_add,          \
		.max = half_add, .mul = half_add, .divide = m4_divide,     \
		.sum = half_sum, .scale = half_scale, .round = half_round, \
		.round_scale = half_round_scale,                           \
	}

const struct sw_sum LEVEL = {
	.level = LEVEL_CODE,
	.name = LEVEL_NAME,
	.ops =
		{
			[SW_F32] = PLAIN_OPS(4),
			[SW_F64] = PLAIN_OPS(8),
			[SW_F16] = HALF_OPS,
			[SW_U8] = PLAIN_OPS(1),
			[SW_I32] = PLAIN_OPS(4),
			[SW_I8] = PLAIN_OPS(1),
			[SW_I64] = PLAIN_OPS(8),
			[SW_BOOL] = PLAIN_OPS(1),
			[SW_BF16] = HALF_OPS,
		},
};
