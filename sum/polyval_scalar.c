/* polyval_scalar.c - POLYVAL by integer products, for any CPU.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A carry-less product, by integer multiplications of operands that keep one
 * bit in four, so that carries stay out of the result's bits.  There is no
 * table, so cache timing does not reveal the key (Pornin, "Constant-time
 * crypto", BearSSL). */
#include <string.h>

#include "sum/polyval.h"

enum { BLOCK = SW_POLYVAL_BLOCK };

/* Return the low 64 bits of the carry-less product. */
static uint64_t product_low(uint64_t a, uint64_t b)
{
	static const uint64_t every = 0x1111111111111111;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < 4; i++) {
		uint64_t part = 0;

		for (uint32_t j = 0; j < 4; j++)
			part ^= (a & every << j) * (b & every << ((i - j) & 3));
		sum |= part & every << i;
	}
	return sum;
}

static uint64_t reverse(uint64_t x)
{
	static const struct {
		uint64_t mask;
		uint32_t by;
	} of[] = {{0x5555555555555555, 1}, {0x3333333333333333, 2},
		{0x0f0f0f0f0f0f0f0f, 4}};

	for (uint32_t i = 0; i < 3; i++)
		x = (x & of[i].mask) << of[i].by | (x >> of[i].by & of[i].mask);
	return __builtin_bswap64(x);
}

/* Return the high 64 bits: the reverse of the low bits of the reversed numbers'
 * product, shifted because the product has only 127 bits. */
static uint64_t product_high(uint64_t a, uint64_t b)
{
	return reverse(product_low(reverse(a), reverse(b))) >> 1;
}

static void add_product(uint64_t sum[4], uint32_t at, uint64_t a, uint64_t b)
{
	sum[at] ^= product_low(a, b);
	sum[at + 1] ^= product_high(a, b);
}

/* Add the multiple of the modulus that makes word @i zero. */
static void reduce_word(uint64_t sum[4], uint32_t i)
{
	uint64_t w = sum[i];

	sum[i + 1] ^= w << 63 ^ w << 62 ^ w << 57;
	sum[i + 2] ^= w ^ w >> 1 ^ w >> 2 ^ w >> 7;
}

void sw_polyval_dot(uint64_t a[2], const uint64_t b[2])
{
	uint64_t sum[4] = {0};

	add_product(sum, 0, a[0], b[0]);
	add_product(sum, 1, a[0], b[1]);
	add_product(sum, 1, a[1], b[0]);
	add_product(sum, 2, a[1], b[1]);
	reduce_word(sum, 0);
	reduce_word(sum, 1);
	a[0] = sum[2];
	a[1] = sum[3];
}

static void scalar_hash(const struct sw_polyval_key *key, const void *data,
	size_t n, uint8_t *out)
{
	const uint64_t *h = key->powers[SW_POLYVAL_POWERS - 1];
	const uint8_t *p = data;
	uint64_t hash[2] = {0}, bits = 8 * (uint64_t)n;

	while (n) {
		size_t some = n < BLOCK ? n : BLOCK;
		uint64_t x[2] = {0};

		memcpy(x, p, some);
		hash[0] ^= x[0];
		hash[1] ^= x[1];
		sw_polyval_dot(hash, h);
		n -= some;
		p += some;
	}
	hash[1] ^= bits;
	sw_polyval_dot(hash, h);
	memcpy(out, hash, BLOCK);
}

/* The products take longer than the memory accesses, so do not prefetch. */
static void scalar_far(const struct sw_polyval_key *key, const void *data,
	size_t n, const void *next, uint8_t *out)
{
	scalar_hash(key, data, n, out);
}

const struct sw_polyval sw_polyval_scalar = {
	.name = "scalar", .lanes = 1, .hash = scalar_hash, .far = scalar_far};
