/* polyval.h - POLYVAL, the universal hash of RFC 8452, section 3.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A block of 16 bytes is a polynomial over GF(2) whose bit 0 of byte 0 is the
 * constant term.  dot(a, b) = a * b * x^-128 modulo x^128 + x^127 + x^126 +
 * x^121 + 1.  The hash of blocks X1 … Xs under the key H is
 *
 *   dot(X1, H^s) + dot(X2, H^(s - 1)) + … + dot(Xs, H),   H^i = dot(H^(i-1), H)
 *
 * so several blocks need one reduction.
 *
 * Time does not depend on the key or the data, in any kernel. */
#ifndef SW_SUM_POLYVAL_H
#define SW_SUM_POLYVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SW_POLYVAL_BLOCK = 16,   /* bytes of a block, a key and a hash */
	SW_POLYVAL_POWERS = 40,  /* of a key */
	SW_POLYVAL_STRIDES = 32, /* of a key */
};

struct sw_polyval_key;

/* A kernel.  hash: sw_polyval; far: sw_polyval_far. */
struct sw_polyval {
	const char *name; /* "scalar", "clmul128", …, as in file names */
	uint32_t lanes;   /* blocks of a vector */
	void (*hash)(const struct sw_polyval_key *key, const void *p, size_t n,
		uint8_t *hash);
	void (*far)(const struct sw_polyval_key *key, const void *p, size_t n,
		const void *next, uint8_t *hash);
};

/* A prepared key; as secret as the 16 bytes that it is made from.  It has 2,368
 * bytes, aligned to cache lines; the hash of a long payload reads mostly the
 * strides. */
struct sw_polyval_key {
	/* H^40 … H^1, low half first */
	_Alignas(64) uint64_t powers[SW_POLYVAL_POWERS][2];
	uint64_t middles[SW_POLYVAL_POWERS][2]; /* sum of both halves, and 0 */
	/* H^(32 l), H^(31 l) … H^l, for l lanes of the kernel */
	uint64_t strides[SW_POLYVAL_STRIDES][2];
	uint64_t stride_middles[SW_POLYVAL_STRIDES][2];
	const struct sw_polyval *kernel;
};

/* sw_polyval_prepare - prepare the key of SW_POLYVAL_BLOCK bytes at @bytes, for
 * the widest kernel that runs on this CPU; sw_polyval_prepare_for, for @kernel.
 * Cost: about 7 us. */
void sw_polyval_prepare(struct sw_polyval_key *key, const uint8_t *bytes);
void sw_polyval_prepare_for(struct sw_polyval_key *key, const uint8_t *bytes,
	const struct sw_polyval *kernel);

/* sw_polyval - hash @n bytes at @p under @key.
 * @hash  set to the POLYVAL of the bytes, padded with zeros to whole blocks,
 *        and a last block with the lengths 0 and 8 n (RFC 8452, section 4)
 * Thread: any. */
static inline void sw_polyval(const struct sw_polyval_key *key, const void *p,
	size_t n, uint8_t hash[SW_POLYVAL_BLOCK])
{
	key->kernel->hash(key, p, n, hash);
}

/* sw_polyval_far - the same for bytes outside this core's caches.  If @n is
 * large, also prefetches @n bytes at @next, the bytes to hash next; @next may
 * be any address. */
static inline void sw_polyval_far(const struct sw_polyval_key *key,
	const void *p, size_t n, const void *next,
	uint8_t hash[SW_POLYVAL_BLOCK])
{
	key->kernel->far(key, p, n, next, hash);
}

/* sw_polyval_row - return row @i of the table of kernels, NULL past its end;
 * the widest last.  Sets *@runs, unless NULL, to whether this CPU has the
 * instructions that the kernel needs. */
const struct sw_polyval *sw_polyval_row(uint32_t i, bool *runs);

/* The rows; only for files in sum/. */
extern const struct sw_polyval sw_polyval_scalar;
extern const struct sw_polyval sw_polyval_clmul128;
extern const struct sw_polyval sw_polyval_clmul256;
extern const struct sw_polyval sw_polyval_clmul512;

/* sw_polyval_dot - set @a to dot(@a, @b), by the scalar kernel. */
void sw_polyval_dot(uint64_t a[2], const uint64_t b[2]);

#endif
