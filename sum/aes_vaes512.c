/* aes_vaes512.c - AES-128 with VAES and AVX-512.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <immintrin.h>

#include "sum/aes.h"

#define ROW           sw_aes_vaes512
#define NAME          "vaes512"
#define VEC           __m512i
#define VB            64
#define SPREAD(p)     _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)(p)))
#define GATHER(p)     gather(p)
#define ROUND(v, k)   _mm512_aesenc_epi128(v, k)
#define LAST(v, k)    _mm512_aesenclast_epi128(v, k)
#define ADD(a, b)     _mm512_add_epi32(a, b)
#define SHUFFLE(v, m) _mm512_shuffle_epi8(v, m)

static inline __m128i block(const uint8_t *p, uint32_t message)
{
	return _mm_loadu_si128((const void *)(p + message * SW_AES_MESSAGE));
}

static inline VEC gather(const uint8_t *p)
{
	VEC v = _mm512_castsi128_si512(block(p, 0));

	v = _mm512_inserti32x4(v, block(p, 1), 1);
	v = _mm512_inserti32x4(v, block(p, 2), 2);
	return _mm512_inserti32x4(v, block(p, 3), 3);
}

#include "sum/aes.inc.h"
