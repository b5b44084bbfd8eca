/* aes.inc.h - counter mode and MACs by AES rounds on vectors.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A round depends on the one before, so WIDE vectors go through the rounds in
 * parallel.
 *
 * The including file defines VEC, VB (its bytes), SPREAD (128 bits repeated in
 * a vector), GATHER(p) (one block of each of LANES messages), ROUND(v, key),
 * LAST(v, key), ADD (of 32-bit elements), SHUFFLE (bytes within each 128 bits),
 * ROW and NAME.
 */
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum {
	BLOCK = SW_AES_BLOCK,
	MESSAGE = SW_AES_MESSAGE,
	WIDE = 8,
	LANES = VB / BLOCK,
};

INLINE VEC load(const void *p)
{
	VEC v;

	memcpy(&v, p, VB);
	return v;
}

/* Swap the bytes of the last element of each block. */
INLINE VEC swapped(VEC v)
{
	static const uint8_t order[BLOCK] = {
		0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 15, 14, 13, 12};

	return SHUFFLE(v, SPREAD(order));
}

/* Return the lanes' counters: @first, then up in steps of @by; 0 in the other
 * elements. */
INLINE VEC counters(uint32_t first, uint32_t by)
{
	uint32_t e[4 * LANES] = {0};

	for (uint32_t i = 0; i < LANES; i++)
		e[4 * i + 3] = first + i * by;
	return load(e);
}

/* Encrypt @n vectors; their counters continue from *count. */
INLINE void some(const VEC keys[SW_AES_KEYS], VEC *count, uint32_t n,
	const uint8_t *p, uint8_t *out)
{
	const VEC step = counters(LANES, 0);
	VEC v[WIDE];

	for (uint32_t i = 0; i < n; i++) {
		v[i] = swapped(*count) ^ keys[0];
		*count = ADD(*count, step);
	}
	for (uint32_t k = 1; k < SW_AES_KEYS - 1; k++)
		for (uint32_t i = 0; i < n; i++)
			v[i] = ROUND(v[i], keys[k]);
	for (uint32_t i = 0; i < n; i++) {
		VEC sum = LAST(v[i], keys[SW_AES_KEYS - 1]) ^ load(p + i * VB);

		memcpy(out + i * VB, &sum, VB);
	}
}

static void ctr(const struct sw_aes_key *key, const uint8_t *block,
	const void *from, size_t n, void *to)
{
	VEC keys[SW_AES_KEYS], count;
	const uint8_t *p = from;
	uint8_t *out = to, rest[VB] = {0};

	for (uint32_t k = 0; k < SW_AES_KEYS; k++)
		keys[k] = SPREAD(key->rounds[k]);
	count = ADD(swapped(SPREAD(block)), counters(0, 1));
	for (; n >= WIDE * VB; n -= WIDE * VB, p += WIDE * VB, out += WIDE * VB)
		some(keys, &count, WIDE, p, out);
	if (n >= WIDE / 2 * VB) {
		some(keys, &count, WIDE / 2, p, out);
		n -= WIDE / 2 * VB, p += WIDE / 2 * VB, out += WIDE / 2 * VB;
	}
	for (; n >= VB; n -= VB, p += VB, out += VB)
		some(keys, &count, 1, p, out);
	if (!n)
		return;
	memcpy(rest, p, n);
	some(keys, &count, 1, rest, rest);
	memcpy(out, rest, n);
}

/* Compute the MACs of @n vectors of messages. */
INLINE void some_macs(const struct sw_aes_key *key, const uint8_t *last,
	const uint8_t *p, uint32_t n, uint64_t *out)
{
	VEC v[WIDE] = {0};

	for (uint32_t at = 0; at < MESSAGE; at += BLOCK) {
		VEC first = SPREAD(key->rounds[0]);

		if (at == MESSAGE - BLOCK)
			first ^= SPREAD(last);
		for (uint32_t i = 0; i < n; i++)
			v[i] ^= GATHER(p + i * LANES * MESSAGE + at) ^ first;
		for (uint32_t k = 1; k < SW_AES_KEYS - 1; k++)
			for (uint32_t i = 0; i < n; i++)
				v[i] = ROUND(v[i], SPREAD(key->rounds[k]));
		for (uint32_t i = 0; i < n; i++)
			v[i] = LAST(v[i], SPREAD(key->rounds[SW_AES_KEYS - 1]));
	}
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t lane = 0; lane < LANES; lane++)
			out[i * LANES + lane] = (uint64_t)v[i][2 * lane];
}

static void macs(const struct sw_aes_key *key, const uint8_t *last,
	const uint8_t *p, uint32_t n, uint64_t *out)
{
	for (; n >= WIDE; n -= WIDE, p += WIDE * MESSAGE, out += WIDE)
		some_macs(key, last, p, WIDE / LANES, out);
	if (n >= WIDE / 2) {
		some_macs(key, last, p, WIDE / 2 / LANES, out);
		n -= WIDE / 2, p += WIDE / 2 * MESSAGE, out += WIDE / 2;
	}
	if (n && LANES > 1)
		sw_aes_macs_aesni(key, last, p, n, out);
	for (; n && LANES == 1; n--, p += MESSAGE, out++)
		some_macs(key, last, p, 1, out);
}

const struct sw_aes ROW = {
	.name = NAME, .ctr = ctr, .chain = sw_aes_chain_aesni, .macs = macs};
