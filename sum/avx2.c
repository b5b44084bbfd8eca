/* avx2.c - the kernels for CPUs with AVX2 and F16C.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <immintrin.h>

#define LEVEL        sw_sum_avx2
#define LEVEL_CODE   SW_SUM_AVX2
#define LEVEL_NAME   "avx2"
#define VB           32
#define STREAM(p, v) _mm256_stream_si256((__m256i *)(p), (__m256i)(v))

#include "sum/vec.inc.h"

INLINE vf nan_f(vf a, vf b, vf otherwise)
{
	return _mm256_blendv_ps(otherwise, (vf)_mm256_set1_epi32(0x7fc00000),
		_mm256_cmp_ps(a, b, _CMP_UNORD_Q));
}

INLINE vd nan_d(vd a, vd b, vd otherwise)
{
	return _mm256_blendv_pd(otherwise,
		(vd)_mm256_set1_epi64x(0x7ff8000000000000),
		_mm256_cmp_pd(a, b, _CMP_UNORD_Q));
}

INLINE vf canon_f(vf v)
{
	return nan_f(v, v, v);
}

INLINE vd canon_d(vd v)
{
	return nan_d(v, v, v);
}

INLINE bool has_nan_f(vf a, vf b)
{
	return _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_UNORD_Q));
}

INLINE bool has_nan_d(vd a, vd b)
{
	return _mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_UNORD_Q));
}

/* If both operands are zero, the instruction returns the second one. So it runs
 * in both orders: or keeps a minus sign, and and drops it. */
INLINE vf min_f(vf a, vf b)
{
	return nan_f(
		a, b, _mm256_or_ps(_mm256_min_ps(a, b), _mm256_min_ps(b, a)));
}

INLINE vf max_f(vf a, vf b)
{
	return nan_f(
		a, b, _mm256_and_ps(_mm256_max_ps(a, b), _mm256_max_ps(b, a)));
}

INLINE vd min_d(vd a, vd b)
{
	return nan_d(
		a, b, _mm256_or_pd(_mm256_min_pd(a, b), _mm256_min_pd(b, a)));
}

INLINE vd max_d(vd a, vd b)
{
	return nan_d(
		a, b, _mm256_and_pd(_mm256_max_pd(a, b), _mm256_max_pd(b, a)));
}

#define MIN_MAX(suffix, vec, instr)                                     \
	INLINE vec min_##suffix(vec a, vec b)                           \
	{                                                               \
		return (vec)_mm256_min_##instr((__m256i)a, (__m256i)b); \
	}                                                               \
	INLINE vec max_##suffix(vec a, vec b)                           \
	{                                                               \
		return (vec)_mm256_max_##instr((__m256i)a, (__m256i)b); \
	}

MIN_MAX(u8, v8, epu8)
MIN_MAX(i8, v8, epi8)
MIN_MAX(i32, v32, epi32)

/* AVX2 has no such instruction. */
INLINE v64 min_i64(v64 a, v64 b)
{
	return (v64)_mm256_blendv_epi8((__m256i)a, (__m256i)b,
		_mm256_cmpgt_epi64((__m256i)a, (__m256i)b));
}

INLINE v64 max_i64(v64 a, v64 b)
{
	return (v64)_mm256_blendv_epi8((__m256i)b, (__m256i)a,
		_mm256_cmpgt_epi64((__m256i)a, (__m256i)b));
}

INLINE vf f16_load(const uint8_t *p)
{
	return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i_u *)p));
}

INLINE void f16_pack(uint8_t *p, vf lo, vf hi)
{
	__m128i_u *at = (__m128i_u *)p;

	at[0] = _mm256_cvtps_ph(lo, _MM_FROUND_TO_NEAREST_INT);
	at[1] = _mm256_cvtps_ph(hi, _MM_FROUND_TO_NEAREST_INT);
}

/* Shuffle eight bf16, loaded into both halves, at once: each half places its
 * four above two zero bytes. */
INLINE vf bf16_load(const uint8_t *p)
{
	const __m256i order = _mm256_setr_epi8(-1, -1, 0, 1, -1, -1, 2, 3, -1,
		-1, 4, 5, -1, -1, 6, 7, -1, -1, 8, 9, -1, -1, 10, 11, -1, -1,
		12, 13, -1, -1, 14, 15);
	__m128i h = _mm_loadu_si128((const __m128i_u *)p);

	return (vf)_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(h), order);
}

/* Packing works within each half of a vector; the permutation restores the
 * order. */
INLINE void bf16_pack(uint8_t *p, vf lo, vf hi)
{
	__m256i u = _mm256_packus_epi32(
		(__m256i)bf16_bits(lo), (__m256i)bf16_bits(hi));

	*(__m256i_u *)p = _mm256_permute4x64_epi64(u, 0xd8);
}

#include "sum/body.inc.h"
