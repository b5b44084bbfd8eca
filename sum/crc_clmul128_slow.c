/* crc_clmul128_slow.c - CRC-32C where a product of 128 bits takes two cycles.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <immintrin.h>

#include "sum/crc.h"

#define ROW             sw_crc_clmul128_slow
#define NAME            "clmul128_slow"
#define IS_FAR_STRAIGHT false
#define VEC             __m128i
#define VB              16
#define ROUNDS          1
#define WORDS           4

#define FOLD(v, pair, next)                    \
	(_mm_clmulepi64_si128(v, pair, 0x00) ^ \
		_mm_clmulepi64_si128(v, pair, 0x11) ^ (next))
#define SPREAD(pair) _mm_loadu_si128((const __m128i *)(pair))
#define WIDEN(v)     (v)

static const uint64_t powers[4][2] = {{0xf20c0dfe, 0x493c7d27},
	{0x3da6d0cb, 0xba4fc28e}, {0x1c291d04, 0xddc0152b},
	{0x740eef02, 0x9e4addf8}};

static const struct sw_crc_block blocks[2] = {
	{42, {0xff770459, 0xfa0f2bd0},
		{{0x4ca5524c}, {0xdd821e9b}, {0x9c1de0de}, {0xe5e25bd0}}},
	{6, {0xd8d26619, 0x26f6a60a},
		{{0x80ff0093}, {0x8d96551c}, {0x52148f02}, {0x00ac29cf}}},
};

#include "sum/crc.inc.h"
