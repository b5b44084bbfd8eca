/* polyval_clmul512.c - POLYVAL with VPCLMULQDQ and AVX-512.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <immintrin.h>

#include "sum/polyval.h"

#define ROW                 sw_polyval_clmul512
#define NAME                "clmul512"
#define VEC                 __m512i
#define VB                  64
#define CLMUL(a, b, halves) _mm512_clmulepi64_epi128(a, b, halves)
#define SWAP(v)             _mm512_shuffle_epi32(v, 0x4e)
#define CROSS(x, p)         ((x) ^ duplicate(p))
#define SUM(a, b, c)        _mm512_ternarylogic_epi64(a, b, c, 0x96)
#define SPREAD(p)           _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)(p)))
#define WIDEN(v)            _mm512_zextsi128_si512(v)
#define NARROW(v)                                                      \
	(_mm512_castsi512_si128(v) ^ _mm512_extracti32x4_epi32(v, 1) ^ \
		_mm512_extracti32x4_epi32(v, 2) ^                      \
		_mm512_extracti32x4_epi32(v, 3))

/* The execution unit of products also swaps halves, so duplicate the low halves
 * by a load. */
static inline VEC duplicate(const void *p)
{
	VEC v;

	__asm__("vmovddup %1, %0" : "=v"(v) : "m"(*(const char(*)[VB])p));
	return v;
}

#include "sum/polyval.inc.h"
