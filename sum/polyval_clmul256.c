/* polyval_clmul256.c - POLYVAL with VPCLMULQDQ and AVX2.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <immintrin.h>

#include "sum/polyval.h"

#define ROW                 sw_polyval_clmul256
#define NAME                "clmul256"
#define VEC                 __m256i
#define VB                  32
#define CLMUL(a, b, halves) _mm256_clmulepi64_epi128(a, b, halves)
#define SWAP(v)             _mm256_shuffle_epi32(v, 0x4e)
#define CROSS(x, p)         ((x) ^ SWAP(x))
#define SUM(a, b, c)        ((a) ^ (b) ^ (c))
#define SPREAD(p) \
	_mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)(p)))
#define WIDEN(v)  _mm256_zextsi128_si256(v)
#define NARROW(v) (_mm256_castsi256_si128(v) ^ _mm256_extracti128_si256(v, 1))

#include "sum/polyval.inc.h"
