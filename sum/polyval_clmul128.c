/* polyval_clmul128.c - POLYVAL with PCLMULQDQ.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <immintrin.h>

#include "sum/polyval.h"

#define ROW                 sw_polyval_clmul128
#define NAME                "clmul128"
#define VEC                 __m128i
#define VB                  16
#define CLMUL(a, b, halves) _mm_clmulepi64_si128(a, b, halves)
#define SWAP(v)             _mm_shuffle_epi32(v, 0x4e)
#define CROSS(x, p)         ((x) ^ SWAP(x))
#define SUM(a, b, c)        ((a) ^ (b) ^ (c))
#define SPREAD(p)           _mm_loadu_si128((const void *)(p))
#define WIDEN(v)            (v)
#define NARROW(v)           (v)

#include "sum/polyval.inc.h"
