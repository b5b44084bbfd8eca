/* crc_clmul256.c - CRC-32C with VPCLMULQDQ and AVX2.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <immintrin.h>

#include "sum/crc.h"

#define ROW             sw_crc_clmul256
#define NAME            "clmul256"
#define IS_FAR_STRAIGHT false
#define VEC             __m256i
#define VB              32
#define ROUNDS          1
#define WORDS           4

#define FOLD(v, pair, next)                        \
	(_mm256_clmulepi64_epi128(v, pair, 0x00) ^ \
		_mm256_clmulepi64_epi128(v, pair, 0x11) ^ (next))
#define SPREAD(pair) \
	_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(pair)))
#define WIDEN(v) _mm256_zextsi128_si256(v)

static const uint64_t powers[4][2] = {{0x3da6d0cb, 0xba4fc28e},
	{0x740eef02, 0x9e4addf8}, {0xc49f4f67, 0x0715ce53},
	{0x6992cea2, 0x0d3b6092}};

static const struct sw_crc_block blocks[2] = {
	{31, {0xc2a5b65e, 0x82f89c77},
		{{0x579a5cc0}, {0xce5bee64}, {0x250fc12c}, {0xaab37f1c}}},
	{4, {0x4d56973c, 0x6b749fb2},
		{{0xdd07448e}, {0x8d96551c}, {0x4d56973c}, {0xbd6f81f8}}},
};

#include "sum/crc.inc.h"
