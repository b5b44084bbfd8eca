/* polyval.inc.h - POLYVAL by carry-less products of vectors.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A 128-bit product takes three 64-bit products (Karatsuba): of the low halves,
 * of the high halves, and of the sums of both.  Products are added before the
 * sum is reduced.
 *
 * A round multiplies up to 32 vectors into a vector of hashes.  Each lane of
 * that vector is the hash of every second or fourth block: in a round, all
 * blocks of an input vector are multiplied by the same power, and the lanes are
 * reduced side by side.  After the rounds, the lanes are added to the next
 * input vector, whose blocks have different powers.  A round adds the hashes to
 * its first vector and multiplies that vector last, so that the other products
 * do not wait for the previous round.
 *
 * The file that includes this one defines VEC, VB (bytes of a VEC), CLMUL(a, b,
 * halves), SWAP (swap the halves of each 128 bits), CROSS(x, p) (the sum of
 * both halves, in the high halves; @x was loaded from @p), SUM (of three),
 * SPREAD (repeat 128 bits in all lanes), WIDEN (128 bits, then zeros), NARROW
 * (the sum of all lanes), ROW and NAME. */
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum {
	BLOCK = SW_POLYVAL_BLOCK,
	POWERS = SW_POLYVAL_POWERS,
	STRIDES = SW_POLYVAL_STRIDES,
	/* Shorter inputs, with the block of lengths, need one reduction and no
	 * round. */
	LONG = (POWERS - 1) * BLOCK + 1,
	REST = 256, /* bytes left after the rounds, at least */
};

struct products {
	VEC low, middle, high;
};

/* Whether the bytes are outside the caches, and the distance (modulo 2^64) from
 * them to the bytes to prefetch. */
struct aim {
	bool is_far;
	uintptr_t ahead;
};

/* Load the bytes at @p, once: GCC considers loads free, and would repeat them.
 */
INLINE VEC take(const uint8_t *p, struct aim aim)
{
	VEC v;

	if (aim.is_far)
		__builtin_prefetch((const void *)((uintptr_t)p + aim.ahead));
	memcpy(&v, p, VB);
	__asm__("" : "+v"(v));
	return v;
}

INLINE VEC row(const uint64_t (*powers)[2])
{
	VEC v;

	memcpy(&v, powers, VB);
	return v;
}

/* Multiply; the high halves of @cross must be the sums of the halves of @x. */
INLINE struct products multiply(VEC x, VEC cross, VEC power, VEC middle)
{
	return (struct products){.low = CLMUL(x, power, 0x00),
		.middle = CLMUL(cross, middle, 0x01),
		.high = CLMUL(x, power, 0x11)};
}

INLINE void add(struct products *s, struct products a)
{
	s->low ^= a.low;
	s->middle ^= a.middle;
	s->high ^= a.high;
}

INLINE void add_two(struct products *s, struct products a, struct products b)
{
	s->low = SUM(s->low, a.low, b.low);
	s->middle = SUM(s->middle, a.middle, b.middle);
	s->high = SUM(s->high, a.high, b.high);
}

/* Multiply all blocks of @x by the power of stride @i. */
INLINE struct products by_stride(
	const struct sw_polyval_key *k, uint32_t i, VEC x, VEC cross)
{
	return multiply(
		x, cross, SPREAD(k->strides[i]), SPREAD(k->stride_middles[i]));
}

/* Do so with the bytes at @p; if they are outside the caches, also prefetch. */
INLINE struct products next(const struct sw_polyval_key *k, uint32_t i,
	const uint8_t *p, struct aim aim)
{
	VEC x = take(p, aim);

	return by_stride(k, i, x, CROSS(x, p));
}

/* Multiply the blocks of @x by the powers from @i downwards. */
INLINE void add_row(struct products *s, const struct sw_polyval_key *k,
	uint32_t i, VEC x, VEC cross)
{
	add(s, multiply(x, cross, row(&k->powers[POWERS - i]),
		       row(&k->middles[POWERS - i])));
}

INLINE void add_block(struct products *s, const struct sw_polyval_key *k,
	uint32_t i, __m128i x)
{
	VEC v = WIDEN(x);

	add(s, multiply(v, v ^ SWAP(v),
		       WIDEN(_mm_load_si128(
			       (const void *)k->powers[POWERS - i])),
		       WIDEN(_mm_load_si128(
			       (const void *)k->middles[POWERS - i]))));
}

/* Reduce: twice add the multiple of the modulus that makes the lowest 64 bits
 * zero, and drop these bits, so that the middle products are aligned. */
INLINE VEC reduce(const struct products *s)
{
	static const uint64_t modulus[2] = {0, 0xc200000000000000};
	VEC m = SPREAD(modulus), sum = s->low;

	sum = SWAP(sum) ^ CLMUL(sum, m, 0x10) ^ s->middle ^ s->low ^ s->high;
	return SWAP(sum) ^ CLMUL(sum, m, 0x10) ^ s->high;
}

/* Hash @n vectors, 1 to STRIDES. */
INLINE VEC hash_round(const struct sw_polyval_key *k, VEC hash,
	const uint8_t *p, uint32_t n, struct aim aim)
{
	VEC zero = hash ^ hash;
	struct products s = {zero, zero, zero};
	const uint8_t *at = p + VB;
	uint32_t first = STRIDES - n, i = first + 1;

	if (n % 2 == 0) {
		add(&s, next(k, i++, at, aim));
		at += VB;
	}
	for (; i < STRIDES; i += 2, at += 2 * VB)
		add_two(&s, next(k, i, at, aim), next(k, i + 1, at + VB, aim));
	hash ^= take(p, aim);
	add(&s, by_stride(k, first, hash, hash ^ SWAP(hash)));
	return reduce(&s);
}

/* Add the last @n bytes, whose first block has power @i.  Add @hash to the
 * first vector. */
INLINE void add_rest(struct products *s, const struct sw_polyval_key *k,
	uint32_t i, VEC hash, const uint8_t *p, size_t n, struct aim aim)
{
	VEC cross = hash ^ SWAP(hash);

	for (; n >= VB; n -= VB, i -= VB / BLOCK, p += VB) {
		VEC x = take(p, aim);

		add_row(s, k, i, x ^ hash, CROSS(x, p) ^ cross);
		hash ^= hash;
		cross ^= cross;
	}
	for (; n >= BLOCK; n -= BLOCK, i--, p += BLOCK)
		add_block(s, k, i, _mm_loadu_si128((const void *)p));
	if (n) {
		__m128i x = _mm_setzero_si128();

		memcpy(&x, p, n);
		add_block(s, k, i, x);
	}
}

/* End the hash of @total bytes with the last @n bytes, at @p. */
INLINE void end(const struct sw_polyval_key *k, VEC hash, const uint8_t *p,
	size_t n, size_t total, struct aim aim, uint8_t *out)
{
	__m128i lengths = _mm_set_epi64x((long long)(8 * total), 0), sum;
	VEC zero = hash ^ hash;
	struct products s = {zero, zero, zero};

	add_rest(&s, k, (uint32_t)((n + BLOCK - 1) / BLOCK) + 1, hash, p, n,
		aim);
	add_block(&s, k, 1, lengths);
	hash = reduce(&s);
	sum = NARROW(hash);
	memcpy(out, &sum, BLOCK);
}

INLINE void run(const struct sw_polyval_key *k, const uint8_t *p, size_t total,
	struct aim aim, uint8_t *out)
{
	VEC hash = WIDEN(_mm_setzero_si128());
	size_t n = total, vectors = (n - REST) / VB;
	uint32_t some = (vectors - 1) % STRIDES + 1;

	for (; vectors; vectors -= some, some = STRIDES) {
		hash = hash_round(k, hash, p, some, aim);
		n -= VB * some;
		p += VB * some;
	}
	end(k, hash, p, n, total, aim, out);
}

static __attribute__((noinline)) void polyval_long(
	const struct sw_polyval_key *key, const void *p, size_t n, uint8_t *out)
{
	run(key, p, n, (struct aim){0}, out);
}

static void polyval_near(
	const struct sw_polyval_key *key, const void *p, size_t n, uint8_t *out)
{
	if (n < LONG)
		end(key, WIDEN(_mm_setzero_si128()), p, n, n, (struct aim){0},
			out);
	else
		polyval_long(key, p, n, out);
}

static void polyval_far(const struct sw_polyval_key *key, const void *p,
	size_t n, const void *next, uint8_t *out)
{
	struct aim aim = {
		.is_far = true, .ahead = (uintptr_t)next - (uintptr_t)p};

	if (n < LONG)
		polyval_near(key, p, n, out);
	else
		run(key, p, n, aim, out);
}

const struct sw_polyval ROW = {.name = NAME,
	.lanes = VB / BLOCK,
	.hash = polyval_near,
	.far = polyval_far};
