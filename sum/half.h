/* half.h - convert one f16 or bf16 to f32 and back, in integer arithmetic.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * These functions are the definition; vector levels must match them bit for
 * bit.
 */
#ifndef SW_SUM_HALF_H
#define SW_SUM_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t sw_f32_bits(float f)
{
	uint32_t u;

	memcpy(&u, &f, sizeof(u));
	return u;
}

static inline float sw_f32_from_bits(uint32_t u)
{
	float f;

	memcpy(&f, &u, sizeof(f));
	return f;
}

/* Widen an f16, exactly; a NaN keeps sign and payload and becomes quiet. */
static inline float sw_f16_widen(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16;
	uint32_t exp = h >> 10 & 31, frac = h & 0x3ff;

	if (exp == 31)
		return sw_f32_from_bits(
			sign | 0x7f800000 | frac << 13 | (frac ? 0x400000 : 0));
	if (exp == 0) {
		float f = (float)frac * 0x1p-24f;

		return sw_f32_from_bits(sign | sw_f32_bits(f));
	}
	return sw_f32_from_bits(sign | (exp + 112) << 23 | frac << 13);
}

/* Round to the nearest, ties to even; beyond 65519.99… to infinity; every NaN
 * becomes 0x7e00. */
static inline uint16_t sw_f16_round(float f)
{
	uint32_t u = sw_f32_bits(f), sign = u >> 16 & 0x8000;
	uint32_t mag = u & 0x7fffffff, exp = mag >> 23, frac, drop, rest, half;

	if (mag > 0x7f800000)
		return 0x7e00;
	if (mag >= 0x47800000)
		return (uint16_t)(sign | 0x7c00);
	if (exp < 102) /* below half the smallest denormal */
		return (uint16_t)sign;
	/* Keep exponent and fraction of a normal result in one number, so that
	 * a carry out of the fraction increments the exponent. */
	drop = exp < 113 ? 126 - exp : 13;
	frac = exp < 113 ? (mag & 0x7fffff) | 0x800000 : mag - (112u << 23);
	half = 1u << (drop - 1);
	rest = frac & (2 * half - 1);
	frac >>= drop;
	if (rest > half || (rest == half && (frac & 1)))
		frac++;
	return (uint16_t)(sign | frac);
}

/* Widen: a bf16 is the upper half of an f32. */
static inline float sw_bf16_widen(uint16_t b)
{
	return sw_f32_from_bits((uint32_t)b << 16);
}

/* Round to the nearest, ties to even; keep denormals; every NaN becomes
 * 0x7fc0. */
static inline uint16_t sw_bf16_round(float f)
{
	uint32_t u = sw_f32_bits(f);

	if ((u & 0x7fffffff) > 0x7f800000)
		return 0x7fc0;
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

#endif
