/* avx512.c - the kernels for CPUs with AVX-512 F, BW and VL.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The bf16 instructions are not used: they flush denormals. */
#include <immintrin.h>

#define LEVEL        sw_sum_avx512
#define LEVEL_CODE   SW_SUM_AVX512
#define LEVEL_NAME   "avx512"
#define VB           64
#define STREAM(p, v) _mm512_stream_si512((void *)(p), (__m512i)(v))

#include "sum/vec.inc.h"

INLINE vf nan_f(vf a, vf b, vf otherwise)
{
	return _mm512_mask_mov_ps(otherwise,
		_mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q),
		(vf)_mm512_set1_epi32(0x7fc00000));
}

INLINE vd nan_d(vd a, vd b, vd otherwise)
{
	return _mm512_mask_mov_pd(otherwise,
		_mm512_cmp_pd_mask(a, b, _CMP_UNORD_Q),
		(vd)_mm512_set1_epi64(0x7ff8000000000000));
}

/* One instruction: of the eight classes of its operand, the two NaN classes
 * select the constant (0), all others the operand (1). */
INLINE vf canon_f(vf v)
{
	return _mm512_fixupimm_ps((vf)_mm512_set1_epi32(0x7fc00000), v,
		_mm512_set1_epi32(0x11111100), 0);
}

INLINE vd canon_d(vd v)
{
	return _mm512_fixupimm_pd((vd)_mm512_set1_epi64(0x7ff8000000000000), v,
		_mm512_set1_epi64(0x11111100), 0);
}

INLINE bool has_nan_f(vf a, vf b)
{
	return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q);
}

INLINE bool has_nan_d(vd a, vd b)
{
	return _mm512_cmp_pd_mask(a, b, _CMP_UNORD_Q);
}

/* If both operands are zero, the instruction returns the second one. So it runs
 * in both orders: or keeps a minus sign, and and drops it. */
INLINE vf min_f(vf a, vf b)
{
	return nan_f(a, b,
		(vf)((v32)_mm512_min_ps(a, b) | (v32)_mm512_min_ps(b, a)));
}

INLINE vf max_f(vf a, vf b)
{
	return nan_f(a, b,
		(vf)((v32)_mm512_max_ps(a, b) & (v32)_mm512_max_ps(b, a)));
}

INLINE vd min_d(vd a, vd b)
{
	return nan_d(a, b,
		(vd)((v64)_mm512_min_pd(a, b) | (v64)_mm512_min_pd(b, a)));
}

INLINE vd max_d(vd a, vd b)
{
	return nan_d(a, b,
		(vd)((v64)_mm512_max_pd(a, b) & (v64)_mm512_max_pd(b, a)));
}

#define MIN_MAX(suffix, vec, instr)                                     \
	INLINE vec min_##suffix(vec a, vec b)                           \
	{                                                               \
		return (vec)_mm512_min_##instr((__m512i)a, (__m512i)b); \
	}                                                               \
	INLINE vec max_##suffix(vec a, vec b)                           \
	{                                                               \
		return (vec)_mm512_max_##instr((__m512i)a, (__m512i)b); \
	}

MIN_MAX(u8, v8, epu8)
MIN_MAX(i8, v8, epi8)
MIN_MAX(i32, v32, epi32)
MIN_MAX(i64, v64, epi64)

INLINE vf f16_load(const uint8_t *p)
{
	return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i_u *)p));
}

INLINE void f16_pack(uint8_t *p, vf lo, vf hi)
{
	__m256i_u *at = (__m256i_u *)p;

	at[0] = _mm512_cvtps_ph(lo, _MM_FROUND_TO_NEAREST_INT);
	at[1] = _mm512_cvtps_ph(hi, _MM_FROUND_TO_NEAREST_INT);
}

INLINE vf bf16_load(const uint8_t *p)
{
	__m256i h = _mm256_loadu_si256((const __m256i_u *)p);

	return (vf)_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16);
}

/* Packing works within each quarter of a vector; the permutation restores the
 * order. */
INLINE void bf16_pack(uint8_t *p, vf lo, vf hi)
{
	__m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
	__m512i u = _mm512_packus_epi32(
		(__m512i)bf16_bits(lo), (__m512i)bf16_bits(hi));

	*(__m512i_u *)p = _mm512_permutexvar_epi64(order, u);
}

#include "sum/body.inc.h"
