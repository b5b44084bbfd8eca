/* crc.inc.h - CRC-32C by carry-less products and the crc32 instruction.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The two use different execution ports, so both run at once. A CRC is the
 * remainder of a polynomial. So it is the sum of the remainders of its parts,
 * each times a power of x for the bits that follow the part. The input is a few
 * vectors, then blocks of
 *
 *   | bytes of stream a | of b | of c | of d | rounds of four vectors |
 *
 * The streams go through the crc32 instruction, 8 bytes at a time. The rounds
 * are folded into four vectors: each 128 bits of a vector, times x^(bits of a
 * round), absorb the 128 bits a round further on. At a block's start the
 * vectors jump over its streams. At its end the streams' CRCs are multiplied to
 * the vectors' position and added there.
 *
 * Bits are reflected: the lowest bit has the highest power. A fold by n bits is
 * x^(n + 31) mod P for the low 64 bits and x^(n - 33) for the high ones; a
 * stream joins by x^(n - 33), with n to the end of the word that absorbs it. (A
 * product of reflected numbers is one power off, the instruction gives 32.)
 * crc_powers.py prints these constants.
 *
 * The including file defines VEC, VB (its bytes), ROUNDS and WORDS of each
 * stream per step, FOLD(v, pair, next), SPREAD (a pair repeated in a vector),
 * WIDEN, ROW, NAME and IS_FAR_STRAIGHT: whether to read far bytes in order, by
 * rounds alone, because prefetchers do not follow five places at once. It also
 * defines powers[], to fold by 1 to 4 vectors, and blocks[], the larger first,
 * each with a number of steps that makes it a multiple of ROUND.
 */
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum {
	ROUND = 4 * VB,
	STREAM_STEP = 8 * WORDS,
	STEP = ROUNDS * ROUND + 4 * STREAM_STEP,
	SHORT = 128, /* the crc32 instruction does fewer bytes alone */
};

struct vectors {
	VEC a, b, c, d;
};

struct streams {
	uint64_t a, b, c, d;
};

INLINE VEC take(const uint8_t *p)
{
	VEC v;

	memcpy(&v, p, VB);
	return v;
}

INLINE uint64_t word(uint64_t crc, const uint8_t *p)
{
	uint64_t w;

	memcpy(&w, p, 8);
	return _mm_crc32_u64(crc, w);
}

/* Handle few bytes by the instruction alone. */
INLINE uint32_t run_short(uint32_t crc, const uint8_t *p, size_t n)
{
	uint64_t wide = crc;

	for (; n >= 32; n -= 32, p += 32) {
		wide = word(word(wide, p), p + 8);
		wide = word(word(wide, p + 16), p + 24);
	}
	for (; n >= 8; n -= 8, p += 8)
		wide = word(wide, p);
	crc = (uint32_t)wide;
	if (n & 4) {
		uint32_t w;

		memcpy(&w, p, 4);
		crc = _mm_crc32_u32(crc, w);
		p += 4;
	}
	if (n & 2) {
		uint16_t w;

		memcpy(&w, p, 2);
		crc = _mm_crc32_u16(crc, w);
		p += 2;
	}
	if (n & 1)
		crc = _mm_crc32_u8(crc, *p);
	return crc;
}

INLINE void fold_round(struct vectors *v, VEC pair, const uint8_t *p)
{
	v->a = FOLD(v->a, pair, take(p));
	v->b = FOLD(v->b, pair, take(p + VB));
	v->c = FOLD(v->c, pair, take(p + 2 * VB));
	v->d = FOLD(v->d, pair, take(p + 3 * VB));
}

/* Do half of a round's share of words of all streams, which are @apart bytes
 * apart. */
INLINE void words(struct streams *s, const uint8_t *p, size_t apart)
{
	for (int i = 0; i < WORDS / ROUNDS / 2; i++, p += 8) {
		s->a = word(s->a, p);
		s->b = word(s->b, p + apart);
		s->c = word(s->c, p + 2 * apart);
		s->d = word(s->d, p + 3 * apart);
	}
}

/* Do one step: @p in stream a, @at in the rounds. */
INLINE void step(struct vectors *v, struct streams *s, VEC pair,
	const uint8_t *p, const uint8_t *at, size_t apart)
{
	for (int i = 0; i < ROUNDS; i++, at += ROUND) {
		v->a = FOLD(v->a, pair, take(at));
		v->b = FOLD(v->b, pair, take(at + VB));
		words(s, p, apart);
		p += STREAM_STEP / ROUNDS / 2;
		v->c = FOLD(v->c, pair, take(at + 2 * VB));
		v->d = FOLD(v->d, pair, take(at + 3 * VB));
		words(s, p, apart);
		p += STREAM_STEP / ROUNDS / 2;
	}
}

/* Pass the CRCs through memory, because the products' port also moves
 * registers. */
INLINE void join(
	struct vectors *v, const struct streams *s, const uint64_t by[4][2])
{
	uint64_t crc[4][2] = {{s->a}, {s->b}, {s->c}, {s->d}};
	__m128i sum = _mm_setzero_si128();

	__asm__("" : "+m"(crc));
	for (int i = 0; i < 4; i++)
		sum ^= _mm_clmulepi64_si128(
			_mm_loadl_epi64((const void *)crc[i]),
			_mm_loadl_epi64((const void *)by[i]), 0);
	v->a ^= WIDEN(sum);
}

INLINE size_t block_bytes(int i)
{
	return ROUND + blocks[i].n_steps * STEP;
}

/* Fold the block at @p into @v; return its end. */
INLINE const uint8_t *fold_block(struct vectors *v, int i, const uint8_t *p)
{
	const size_t apart = STREAM_STEP * blocks[i].n_steps;
	const uint8_t *at = p + 4 * apart, *end = p + apart;
	struct streams s = {0};

	fold_round(v, SPREAD(blocks[i].jump), at);
	at += ROUND;
	for (; p < end; p += STREAM_STEP, at += ROUNDS * ROUND)
		step(v, &s, SPREAD(powers[3]), p, at, apart);
	join(v, &s, blocks[i].join);
	return at;
}

/* Load the first 1 to 4 vectors; leading zeros do not change the CRC. */
INLINE const uint8_t *begin(
	struct vectors *v, uint32_t crc, const uint8_t *p, uint32_t n)
{
	VEC first = WIDEN(_mm_cvtsi32_si128((int)crc)), zero = first ^ first;

	v->a = v->b = v->c = zero;
	if (n == 4) {
		v->a = first ^ take(p);
		p += VB;
		first = zero;
	}
	if (n >= 3) {
		v->b = first ^ take(p);
		p += VB;
		first = zero;
	}
	if (n >= 2) {
		v->c = first ^ take(p);
		p += VB;
		first = zero;
	}
	v->d = first ^ take(p);
	return p + VB;
}

/* Fold four vectors into one, and return its CRC. */
INLINE uint32_t finish(const struct vectors *v)
{
	uint64_t w[VB / 8], crc = 0;
	VEC all = FOLD(v->a, SPREAD(powers[2]), v->d);

	all = FOLD(v->b, SPREAD(powers[1]), all);
	all = FOLD(v->c, SPREAD(powers[0]), all);
	memcpy(w, &all, VB);
	__asm__("" : "+m"(w)); /* as in join */
	for (int i = 0; i < VB / 8; i++)
		crc = _mm_crc32_u64(crc, w[i]);
	return (uint32_t)crc;
}

INLINE uint32_t run(uint32_t crc, const uint8_t *p, size_t n, bool is_straight)
{
	/* Compute with integers: @p may be NULL, with @n 0. */
	const uint8_t *end = (const void *)((uintptr_t)p + n / VB * VB);
	struct vectors v;

	if (n < SHORT)
		return ~run_short(~crc, p, n);
	p = begin(&v, ~crc, p, (n / VB + 3) % 4 + 1);
	while (!is_straight && (size_t)(end - p) >= block_bytes(0))
		p = fold_block(&v, 0, p);
	while (!is_straight && (size_t)(end - p) >= block_bytes(1))
		p = fold_block(&v, 1, p);
	for (; p < end; p += ROUND)
		fold_round(&v, SPREAD(powers[3]), p);
	return ~run_short(finish(&v), p, n % VB);
}

static uint32_t crc_only(uint32_t crc, const void *p, size_t n)
{
	return run(crc, p, n, false);
}

static uint32_t crc_far(uint32_t crc, const void *p, size_t n)
{
	return run(crc, p, n, IS_FAR_STRAIGHT);
}

const struct sw_crc ROW = {.name = NAME, .crc = crc_only, .far = crc_far};
