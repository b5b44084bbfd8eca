/* aes_vaes256.c - AES-128 with VAES and AVX2.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <immintrin.h>

#include "sum/aes.h"

#define ROW  sw_aes_vaes256
#define NAME "vaes256"
#define VEC  __m256i
#define VB   32
#define SPREAD(p) \
	_mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)(p)))
#define GATHER(p)                                                           \
	_mm256_inserti128_si256(                                            \
		_mm256_castsi128_si256(_mm_loadu_si128((const void *)(p))), \
		_mm_loadu_si128((const void *)((p) + SW_AES_MESSAGE)), 1)
#define ROUND(v, k)   _mm256_aesenc_epi128(v, k)
#define LAST(v, k)    _mm256_aesenclast_epi128(v, k)
#define ADD(a, b)     _mm256_add_epi32(a, b)
#define SHUFFLE(v, m) _mm256_shuffle_epi8(v, m)

#include "sum/aes.inc.h"
