/* siphash.h - SipHash-2-4 of up to eight words, for cookies.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012.
 */
#ifndef SW_ENGINE_BASE_SIPHASH_H
#define SW_ENGINE_BASE_SIPHASH_H

#include <stdint.h>

static inline void sw_sip_round(uint64_t v[4])
{
#define ROTL(x, n) ((x) << (n) | (x) >> (64 - (n)))
	v[0] += v[1];
	v[1] = ROTL(v[1], 13) ^ v[0];
	v[0] = ROTL(v[0], 32);
	v[2] += v[3];
	v[3] = ROTL(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = ROTL(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = ROTL(v[1], 17) ^ v[2];
	v[2] = ROTL(v[2], 32);
#undef ROTL
}

/* sw_siphash - return the 64-bit tag of @n words under @key. */
static inline uint64_t sw_siphash(
	const uint64_t key[2], const uint64_t *words, uint32_t n)
{
	uint64_t v[4] = {key[0] ^ 0x736f6d6570736575ULL,
		key[1] ^ 0x646f72616e646f6dULL, key[0] ^ 0x6c7967656e657261ULL,
		key[1] ^ 0x7465646279746573ULL};

	for (uint32_t i = 0; i <= n; i++) {
		/* the last word holds the length in bytes, as the paper says */
		uint64_t m = i < n ? words[i] : (uint64_t)n * 8 << 56;

		v[3] ^= m;
		sw_sip_round(v);
		sw_sip_round(v);
		v[0] ^= m;
	}
	v[2] ^= 0xff;
	for (uint32_t i = 0; i < 4; i++)
		sw_sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif
