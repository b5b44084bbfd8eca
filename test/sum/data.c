/* data.c - test data: every pair of special values, then random bits.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "engine/base/random.h"
#include "test/sum/data.h"

enum { N_SPECIALS = 48, N_PAIRS = N_SPECIALS * N_SPECIALS };

/* Positive values; the other half of the 48 are their negatives. */
static const uint32_t f32_specials[] = {
	0,          /* zero */
	1,          /* smallest denormal */
	0x0000ffff, /* a denormal of f32 and of bf16, once rounded */
	0x00008000, /* half the smallest denormal of bf16 */
	0x007fffff, /* largest denormal */
	0x00800000, /* smallest normal */
	0x33000000, /* half the smallest denormal of f16 */
	0x33000001, /* just above half the smallest denormal of f16 */
	0x33c00000, /* one and a half times the smallest denormal of f16 */
	0x387fe000, /* between denormal and normal f16 */
	0x38800000, /* smallest normal f16 */
	0x3f800000, /* 1 */
	0x3f801000, /* 1 + half an ulp of f16: a tie */
	0x3f803000, /* a tie that rounds up */
	0x3f808000, /* a tie of bf16 */
	0x3f818001, /* just above a tie of bf16 */
	0x477fe000, /* 65504, largest f16 */
	0x477fefff, /* rounds down to 65504 */
	0x477ff000, /* rounds to infinity */
	0x7f7f8000, /* rounds to infinity as bf16 */
	0x7f7fffff, /* largest finite */
	0x7f800000, /* infinity */
	0x7f800001, /* signalling NaN */
	0x7fd23456, /* quiet NaN with a payload */
};

static const uint64_t f64_specials[] = {
	0,
	1,
	0xffff,
	0xfffffffffffff,
	0x10000000000000,
	0x10000000000001,
	0x3690000000000000,
	0x36a0000000000000,
	0x3fd5555555555555,
	0x3fe0000000000000,
	0x3fefffffffffffff,
	0x3ff0000000000000,
	0x3ff0000000000001,
	0x4000000000000000,
	0x4008000000000000,
	0x41dfffffffc00000,
	0x43e0000000000000,
	0x4340000000000000,
	0x7fe0000000000000,
	0x7fefffffffffffff,
	0x7feffffffffffffe,
	0x7ff0000000000000,
	0x7ff0000000000001,
	0x7ffabcdef0123456,
};

static const uint16_t f16_specials[] = {
	0,
	1,
	2,
	0x1ff,
	0x200,
	0x3fe,
	0x3ff,
	0x400,
	0x401,
	0x3555,
	0x3800,
	0x3bff,
	0x3c00,
	0x3c01,
	0x4000,
	0x4200,
	0x5640,
	0x6400,
	0x7800,
	0x7bfe,
	0x7bff,
	0x7c00,
	0x7c01,
	0x7e55,
};

static const uint16_t bf16_specials[] = {
	0,
	1,
	2,
	0x3f,
	0x40,
	0x7e,
	0x7f,
	0x80,
	0x81,
	0x3eaa,
	0x3f00,
	0x3f7f,
	0x3f80,
	0x3f81,
	0x4000,
	0x4040,
	0x4780,
	0x5000,
	0x7f00,
	0x7f7e,
	0x7f7f,
	0x7f80,
	0x7f81,
	0x7fd5,
};

_Static_assert(sizeof(f32_specials) == N_SPECIALS / 2 * 4, "24 rows");
_Static_assert(sizeof(f64_specials) == N_SPECIALS / 2 * 8, "24 rows");
_Static_assert(sizeof(f16_specials) == N_SPECIALS / 2 * 2, "24 rows");
_Static_assert(sizeof(bf16_specials) == N_SPECIALS / 2 * 2, "24 rows");

uint64_t random_u64(uint64_t *state)
{
	return sw_random_next(state);
}

/* Return the limits of the range of @bits bits, and powers of two with their
 * neighbours. */
static uint64_t int_special(uint32_t i, uint32_t bits)
{
	uint64_t power = (uint64_t)1 << (i / 3 * (bits / 8) % bits);

	return i < 24 ? power + i % 3 - 1 : -(power + i % 3 - 1);
}

static uint64_t special(enum sw_dtype dtype, uint32_t i)
{
	uint64_t minus = i >= N_SPECIALS / 2;
	uint32_t at = i % (N_SPECIALS / 2);

	switch (dtype) {
	case SW_F32:
		return f32_specials[at] | minus << 31;
	case SW_F64:
		return f64_specials[at] | minus << 63;
	case SW_F16:
		return f16_specials[at] | minus << 15;
	case SW_BF16:
		return bf16_specials[at] | minus << 15;
	case SW_BOOL:
		return i & 1;
	default:
		return int_special(i, 8 * sw_dtype_bytes(dtype));
	}
}

void pool_fill(void *p, enum sw_dtype dtype, uint32_t side)
{
	uint32_t bytes = sw_dtype_bytes(dtype);
	uint64_t seed = side * 1000 + dtype;

	for (uint32_t i = 0; i < POOL; i++) {
		uint32_t at = side ? i + side - 1 : i / N_SPECIALS;
		uint64_t x = i < N_PAIRS ? special(dtype, at % N_SPECIALS)
					 : random_u64(&seed);

		if (dtype == SW_BOOL)
			x &= 1;
		memcpy((char *)p + i * bytes, &x, bytes);
	}
}
