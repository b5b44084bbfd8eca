/* polyval.h - POLYVAL, the universal hash of RFC 8452, section 3.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A block of 16 bytes is a polynomial over GF(2) whose bit 0 of byte 0 is the
 * constant term.  dot(a, b) = a * b * x^-128 modulo x^128 + x^127 + x^126 +
 * x^121 + 1.  The hash of blocks X1 … Xs under the key H is
 *
 *   dot(X1, H^s) + dot(X2, H^(s - 1)) + … + dot(Xs, H),   H^i = dot(H^(i-1), H)
 *
 * so up to SW_POLYVAL_POWERS blocks need one reduction.
 *
 * Time does not depend on the key or the data, in any kernel. */
#ifndef SW_SUM_POLYVAL_H
#define SW_SUM_POLYVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SW_POLYVAL_BLOCK = 16,  /* bytes of a block, a key and a hash */
	SW_POLYVAL_POWERS = 40, /* of a key */
};

struct sw_polyval_key;

/* One kernel; its functions are those below. */
struct sw_polyval {
	const char *name; /* "scalar", "clmul128", …; the files' */
	void (*hash)(const struct sw_polyval_key *key, const void *p, size_t n,
		uint8_t *hash);
	void (*copy)(const struct sw_polyval_key *key, void *dst,
		const void *src, size_t n, uint8_t *hash);
};

/* A prepared key: secret, as the 16 bytes that it comes from. 1,344 bytes,
 * on cache lines. */
struct sw_polyval_key {
	/* H^40 … H^1, low half first */
	_Alignas(64) uint64_t powers[SW_POLYVAL_POWERS][2];
	uint64_t middles[SW_POLYVAL_POWERS][2]; /* sum of both halves, and 0 */
	const struct sw_polyval *kernel;        /* the widest that runs here */
};

/* sw_polyval_prepare - prepare the key of SW_POLYVAL_BLOCK bytes at @bytes.
 * Cost: some 5 us. */
void sw_polyval_prepare(struct sw_polyval_key *key, const uint8_t *bytes);

/* sw_polyval - hash @n bytes at @p under @key.
 * @hash  set to the POLYVAL of the bytes, padded with zeros to whole blocks,
 *        and a last block with the lengths 0 and 8 n (RFC 8452, section 4)
 * Thread: any. */
static inline void sw_polyval(const struct sw_polyval_key *key, const void *p,
	size_t n, uint8_t hash[SW_POLYVAL_BLOCK])
{
	key->kernel->hash(key, p, n, hash);
}

/* sw_polyval_copy - copy @n bytes from @src to @dst, which must not overlap,
 * and hash them as sw_polyval does, in one pass. If @src changes meanwhile, the
 * hash may belong to other bytes than those stored. */
static inline void sw_polyval_copy(const struct sw_polyval_key *key, void *dst,
	const void *src, size_t n, uint8_t hash[SW_POLYVAL_BLOCK])
{
	key->kernel->copy(key, dst, src, n, hash);
}

/* sw_polyval_row - return row @i of the table of kernels, NULL past its end;
 * the widest last.  @runs (or NULL) tells whether this CPU has what the kernel
 * needs. */
const struct sw_polyval *sw_polyval_row(uint32_t i, bool *runs);

/* Inside sum/ only: the rows. */
extern const struct sw_polyval sw_polyval_scalar;
extern const struct sw_polyval sw_polyval_clmul128;
extern const struct sw_polyval sw_polyval_clmul256;
extern const struct sw_polyval sw_polyval_clmul512;

/* sw_polyval_dot - set @a to dot(@a, @b); the scalar kernel's. */
void sw_polyval_dot(uint64_t a[2], const uint64_t b[2]);

#endif
