/* polyval.inc.h - POLYVAL by carry-less products of vectors.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A product of 128 bits takes three of 64 bits (Karatsuba): of the low halves,
 * of the high halves, and of the sums of both.  Products are added before they
 * are reduced.
 *
 * A round takes 32 blocks into a vector of hashes.  Each of its lanes is the
 * hash of every second or fourth block: in a round, all blocks of a vector are
 * multiplied by the same power, and the lanes are reduced side by side.  The
 * first vector after the rounds, whose blocks have powers of their own, takes
 * the lanes in; at least one is left for it.  In a round the hashes enter with
 * the first vector, which is multiplied last, so that the other products do not
 * wait for the round before.
 *
 * The file that includes this one defines VEC, VB (bytes of it), CLMUL(a, b,
 * halves), SWAP (the halves of each 128 bits), CROSS(x, p) (in the high halves
 * the sum of both; @x was loaded from @p), SPREAD (128 bits in all of a
 * vector), WIDEN (128 bits and zeros), NARROW (the sum of all 128 bits), ROW
 * and NAME. */
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum {
	BLOCK = SW_POLYVAL_BLOCK,
	POWERS = SW_POLYVAL_POWERS,
	ROUND = 32 * BLOCK,
	/* The rest after all rounds, with the lengths, needs no reduction. */
	FITS = 1 / (ROUND / BLOCK + VB / BLOCK <= POWERS),
};

struct products {
	VEC low, middle, high;
};

INLINE VEC take(const void *p, uint8_t *to)
{
	VEC v;

	memcpy(&v, p, VB);
	if (to)
		memcpy(to, &v, VB);
	return v;
}

/* The high halves of @cross are the sums of the halves of @x. */
INLINE void add(struct products *s, VEC x, VEC cross, VEC power, VEC middle)
{
	s->low ^= CLMUL(x, power, 0x00);
	s->high ^= CLMUL(x, power, 0x11);
	s->middle ^= CLMUL(cross, middle, 0x01);
}

/* Multiply all blocks of @x by the same power, whose number is @i. */
INLINE void add_spread(struct products *s, const struct sw_polyval_key *k,
	uint32_t i, VEC x, VEC cross)
{
	add(s, x, cross, SPREAD(k->powers[POWERS - i]),
		SPREAD(k->middles[POWERS - i]));
}

/* Multiply the blocks of @x by the powers from @i downwards. */
INLINE void add_row(struct products *s, const struct sw_polyval_key *k,
	uint32_t i, VEC x, VEC cross)
{
	add(s, x, cross, take(k->powers[POWERS - i], NULL),
		take(k->middles[POWERS - i], NULL));
}

INLINE void add_block(struct products *s, const struct sw_polyval_key *k,
	uint32_t i, __m128i x)
{
	VEC v = WIDEN(x);

	add(s, v, v ^ SWAP(v),
		WIDEN(_mm_load_si128((const void *)k->powers[POWERS - i])),
		WIDEN(_mm_load_si128((const void *)k->middles[POWERS - i])));
}

/* Twice take away the multiple of the modulus that makes the lowest 64 bits
 * zero, and drop these: the products in the middle then have their place. */
INLINE VEC reduce(const struct products *s)
{
	static const uint64_t modulus[2] = {0, 0xc200000000000000};
	VEC m = SPREAD(modulus), sum = s->low;

	sum = SWAP(sum) ^ CLMUL(sum, m, 0x10) ^ s->middle ^ s->low ^ s->high;
	return SWAP(sum) ^ CLMUL(sum, m, 0x10) ^ s->high;
}

INLINE VEC hash_round(
	const struct sw_polyval_key *k, VEC hash, const uint8_t *p, uint8_t *to)
{
	VEC zero = hash ^ hash;
	struct products s = {zero, zero, zero};

	for (uint32_t i = VB; i < ROUND; i += VB) {
		VEC x = take(p + i, to ? to + i : NULL);

		add_spread(&s, k, (ROUND - i) / BLOCK, x, CROSS(x, p + i));
	}
	hash ^= take(p, to);
	add_spread(&s, k, ROUND / BLOCK, hash, hash ^ SWAP(hash));
	return reduce(&s);
}

/* Add the last @n bytes, whose first block has power @i.  @hash enters with the
 * first vector. */
INLINE void add_rest(struct products *s, const struct sw_polyval_key *k,
	uint32_t i, VEC hash, const uint8_t *p, uint8_t *to, size_t n)
{
	VEC cross = hash ^ SWAP(hash);

	for (; n >= VB; n -= VB, i -= VB / BLOCK, p += VB) {
		VEC x = take(p, to);

		add_row(s, k, i, x ^ hash, CROSS(x, p) ^ cross);
		hash ^= hash;
		cross ^= cross;
		to = to ? to + VB : NULL;
	}
	for (; n >= BLOCK; n -= BLOCK, i--, p += BLOCK) {
		__m128i x = _mm_loadu_si128((const void *)p);

		if (to)
			_mm_storeu_si128((void *)to, x);
		add_block(s, k, i, x);
		to = to ? to + BLOCK : NULL;
	}
	if (n) {
		__m128i x = _mm_setzero_si128();

		memcpy(&x, p, n);
		if (to)
			memcpy(to, &x, n);
		add_block(s, k, i, x);
	}
}

INLINE void run(const struct sw_polyval_key *k, uint8_t *to, const uint8_t *p,
	size_t n, uint8_t *out)
{
	__m128i bits = _mm_set_epi64x((long long)(8 * n), 0), hash;
	VEC lanes = WIDEN(_mm_setzero_si128());
	struct products s = {lanes, lanes, lanes};

	for (; n >= ROUND + VB; n -= ROUND, p += ROUND) {
		lanes = hash_round(k, lanes, p, to);
		to = to ? to + ROUND : NULL;
	}
	add_rest(&s, k, (uint32_t)((n + BLOCK - 1) / BLOCK) + 1, lanes, p, to,
		n);
	add_block(&s, k, 1, bits);
	lanes = reduce(&s);
	hash = NARROW(lanes);
	memcpy(out, &hash, BLOCK);
}

static void hash_only(
	const struct sw_polyval_key *key, const void *p, size_t n, uint8_t *out)
{
	run(key, NULL, p, n, out);
}

static void hash_copy(const struct sw_polyval_key *key, void *dst,
	const void *src, size_t n, uint8_t *out)
{
	if (n) /* else @dst may be NULL */
		run(key, dst, src, n, out);
	else
		run(key, NULL, src, n, out);
}

const struct sw_polyval ROW = {
	.name = NAME, .hash = hash_only, .copy = hash_copy};
