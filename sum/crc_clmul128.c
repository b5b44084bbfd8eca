/* crc_clmul128.c - CRC-32C for CPUs with PCLMULQDQ and AVX.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <immintrin.h>

#include "sum/crc.h"

#define ROW             sw_crc_clmul128
#define NAME            "clmul128"
#define IS_FAR_STRAIGHT false
#define VEC             __m128i
#define VB              16
#define ROUNDS          1
#define WORDS           2

#define FOLD(v, pair, next)                    \
	(_mm_clmulepi64_si128(v, pair, 0x00) ^ \
		_mm_clmulepi64_si128(v, pair, 0x11) ^ (next))
#define SPREAD(pair) _mm_loadu_si128((const __m128i *)(pair))
#define WIDEN(v)     (v)

static const uint64_t powers[4][2] = {{0xf20c0dfe, 0x493c7d27},
	{0x3da6d0cb, 0xba4fc28e}, {0x1c291d04, 0xddc0152b},
	{0x740eef02, 0x9e4addf8}};

static const struct sw_crc_block blocks[2] = {
	{63, {0xc2a5b65e, 0x82f89c77},
		{{0x74e43a0d}, {0x8e8ad744}, {0x1593c7d3}, {0x9c1de0de}}},
	{9, {0x4d56973c, 0x6b749fb2},
		{{0x6c23e841}, {0x14338754}, {0x5b397730}, {0x52148f02}}},
};

#include "sum/crc.inc.h"
