/* aes_aesni.c - AES-128 with AES-NI, and the functions that all rows share.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <immintrin.h>

#include "sum/aes.h"

#define ROW           sw_aes_aesni
#define NAME          "aesni"
#define VEC           __m128i
#define VB            16
#define SPREAD(p)     _mm_loadu_si128((const void *)(p))
#define GATHER(p)     SPREAD(p)
#define ROUND(v, k)   _mm_aesenc_si128(v, k)
#define LAST(v, k)    _mm_aesenclast_si128(v, k)
#define ADD(a, b)     _mm_add_epi32(a, b)
#define SHUFFLE(v, m) _mm_shuffle_epi8(v, m)

#include "sum/aes.inc.h"

/* Return the next round key: from the last one, and from @made, which the CPU
 * computes from its last word (FIPS 197, section 5.2). */
static __m128i next(__m128i key, __m128i made)
{
	key ^= _mm_slli_si128(key, 4);
	key ^= _mm_slli_si128(key, 8);
	return key ^ _mm_shuffle_epi32(made, 0xff);
}

void sw_aes_prepare_aesni(struct sw_aes_key *key, const uint8_t *bytes)
{
	__m128i *rounds = (__m128i *)key->rounds, k = SPREAD(bytes);

	rounds[0] = k;
#define NEXT(i, constant) \
	rounds[i] = k = next(k, _mm_aeskeygenassist_si128(k, constant))
	NEXT(1, 0x01);
	NEXT(2, 0x02);
	NEXT(3, 0x04);
	NEXT(4, 0x08);
	NEXT(5, 0x10);
	NEXT(6, 0x20);
	NEXT(7, 0x40);
	NEXT(8, 0x80);
	NEXT(9, 0x1b);
	NEXT(10, 0x36);
}

void sw_aes_chain_aesni(
	const struct sw_aes_key *key, uint8_t *mac, const void *p, size_t n)
{
	const __m128i *keys = (const void *)key->rounds;
	__m128i sum = SPREAD(mac);

	for (size_t i = 0; i < n; i++) {
		sum ^= SPREAD((const uint8_t *)p + i * BLOCK) ^ keys[0];
		for (uint32_t k = 1; k < SW_AES_KEYS - 1; k++)
			sum = ROUND(sum, keys[k]);
		sum = LAST(sum, keys[SW_AES_KEYS - 1]);
	}
	memcpy(mac, &sum, BLOCK);
}

void sw_aes_macs_aesni(const struct sw_aes_key *key, const uint8_t *last,
	const uint8_t *p, uint32_t n, uint64_t *out)
{
	macs(key, last, p, n, out);
}
