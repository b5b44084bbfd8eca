/* crc_clmul512.c - CRC-32C with VPCLMULQDQ and AVX-512.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <immintrin.h>

#include "sum/crc.h"

#define ROW             sw_crc_clmul512
#define NAME            "clmul512"
#define IS_FAR_STRAIGHT true
#define VEC             __m512i
#define VB              64
#define ROUNDS          2
#define WORDS           4

#define FOLD(v, pair, next)                                                \
	_mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(v, pair, 0x00), \
		_mm512_clmulepi64_epi128(v, pair, 0x11), next, 0x96)
#define SPREAD(pair) \
	_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(pair)))
#define WIDEN(v) _mm512_zextsi128_si512(v)

static const uint64_t powers[4][2] = {{0x740eef02, 0x9e4addf8},
	{0x6992cea2, 0x0d3b6092}, {0xa87ab8a8, 0xab7aff2a},
	{0xdcb17aa4, 0xb9e02b86}};

static const struct sw_crc_block blocks[2] = {
	{12, {0xde8a97f8, 0xaa7c7ad5},
		{{0xb4ec83ce}, {0xf3513434}, {0xb3712545}, {0xdb808623}}},
	{2, {0xbd6f81f8, 0xdd7e3b0c},
		{{0x93781dc7}, {0x63ae91e6}, {0x1dc0632a}, {0xfe314258}}},
};

#include "sum/crc.inc.h"
