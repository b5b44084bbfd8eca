/* crypto.h - cryptographic primitives, from libcrypto and sum/'s AES.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * crypto.c is the only file that calls libcrypto.  A function returns false if
 * it failed: no memory, or damaged input. */
#ifndef SW_ENGINE_KEYS_CRYPTO_H
#define SW_ENGINE_KEYS_CRYPTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sum/aes.h"

enum {
	SW_HASH_BYTES = 32,   /* SHA-256 */
	SW_SECRET_BYTES = 32, /* a job's secret, keys of AES-256 and X25519 */
	SW_BLOCK_BYTES = 16,  /* AES: a block, a 128-bit key, a MAC */
	SW_PRF_BYTES = SW_AES_MESSAGE, /* input size of a sw_prf */
};

/* sw_crypto_random - fill @out with @n unpredictable bytes. */
bool sw_crypto_random(void *out, size_t n);

/* sw_crypto_wipe - overwrite a secret; the compiler cannot optimize the call
 * away. */
void sw_crypto_wipe(void *p, size_t n);

/* sw_crypto_is_same - compare @n bytes in constant time. */
bool sw_crypto_is_same(const void *a, const void *b, size_t n);

/* sw_crypto_get - return @bytes of zeroed memory for secrets, left out of core
 * dumps, and locked against swapping as far as limits allow; NULL: no memory.
 * sw_crypto_put - wipe and free that memory. */
void *sw_crypto_get(size_t bytes);
void sw_crypto_put(void *p, size_t bytes);

/* sw_sha256 - hash the concatenation of two parts. */
bool sw_sha256(const void *a, size_t n_a, const void *b, size_t n_b,
	uint8_t out[SW_HASH_BYTES]);

/* sw_hmac_sha256 - compute the MAC of @p under a key of 32 bytes. */
bool sw_hmac_sha256(const uint8_t key[SW_HASH_BYTES], const void *p, size_t n,
	uint8_t out[SW_HASH_BYTES]);

/* sw_hkdf_expand - derive @n bytes, at most 32, for the purpose named by
 * @label: HKDF-Expand of RFC 5869 with SHA-256, with the label as info. */
bool sw_hkdf_expand(const uint8_t key[SW_HASH_BYTES], const char *label,
	uint8_t *out, size_t n);

/* sw_x25519_public - compute the public key of @private.
 * sw_x25519 - compute the shared secret.  False: it is zero, because @public is
 * of small order. */
bool sw_x25519_public(const uint8_t private[32], uint8_t public[32]);
bool sw_x25519(const uint8_t private[32], const uint8_t public[32],
	uint8_t shared[32]);

/* sw_gcm_seal - encrypt @n bytes under AES-256-GCM into @out, and append the
 * tag of 16 bytes.
 * sw_gcm_open - decrypt @n bytes, the last 16 of which are the tag.  False: the
 * tag is wrong. */
bool sw_gcm_seal(const uint8_t key[32], uint64_t number, const void *aad,
	size_t n_aad, const void *p, size_t n, uint8_t *out);
bool sw_gcm_open(const uint8_t key[32], uint64_t number, const void *aad,
	size_t n_aad, const uint8_t *p, size_t n, void *out);

/* sw_cmac - compute the AES-128-CMAC (RFC 4493) of @n bytes. */
bool sw_cmac(const uint8_t key[SW_BLOCK_BYTES], const void *p, size_t n,
	uint8_t out[SW_BLOCK_BYTES]);

/* AES-128-CMAC of exactly SW_PRF_BYTES, for each frame, by a kernel of sum/.
 * On a CPU without AES instructions, a context of libcrypto, made once,
 * computes it.  Thread: one lcore. */
struct sw_prf {
	struct sw_aes_key key;
	const struct sw_aes *kernel; /* NULL: by ctx */
	void *ctx;
	uint8_t mac[SW_BLOCK_BYTES]; /* the chain; without a kernel that of ctx
				      */
	uint8_t subkey[SW_BLOCK_BYTES];
};

/* sw_prf_open - prepare @prf for a key; false: no memory.  sw_prf_close also
 * takes a zeroed @prf. */
bool sw_prf_open(struct sw_prf *prf, const uint8_t key[SW_BLOCK_BYTES]);
void sw_prf_close(struct sw_prf *prf);

/* sw_prf_tags - set @tags to the first 64 bits of the MACs of @n inputs:
 * several inputs take hardly longer than one. */
void sw_prf_tags_by_ctx(struct sw_prf *prf, const uint8_t (*in)[SW_PRF_BYTES],
	uint32_t n, uint64_t *tags);

static inline void sw_prf_tags(struct sw_prf *prf,
	const uint8_t (*in)[SW_PRF_BYTES], uint32_t n, uint64_t *tags)
{
	if (prf->kernel)
		prf->kernel->macs(&prf->key, prf->subkey, in[0], n, tags);
	else
		sw_prf_tags_by_ctx(prf, in, n, tags);
}

/* AES-128-CTR (NIST SP 800-38A) for each frame of an encrypted session, by a
 * kernel of sum/.  With VAES it takes 0.5 of libcrypto's time for 8 KiB, and
 * 0.3 for 64 bytes.  On a CPU without AES instructions, a context of libcrypto,
 * made once, encrypts.  Thread: one lcore. */
struct sw_ctr {
	struct sw_aes_key key;
	const struct sw_aes *kernel; /* NULL: by ctx */
	void *ctx;
};

/* sw_ctr_open - prepare @ctr for a key; false: no memory.  sw_ctr_close also
 * takes a zeroed @ctr.
 * sw_ctr_rekey - prepare an open @ctr for another key. */
bool sw_ctr_open(struct sw_ctr *ctr, const uint8_t key[SW_BLOCK_BYTES]);
void sw_ctr_rekey(struct sw_ctr *ctr, const uint8_t key[SW_BLOCK_BYTES]);
void sw_ctr_close(struct sw_ctr *ctr);

/* sw_ctr - encrypt or decrypt @n bytes from @p to @out, which may be @p.
 * @block is the first counter block: its last four bytes are a big-endian
 * counter, which must not wrap.  Never use a block twice under one key. */
void sw_ctr(struct sw_ctr *ctr, const uint8_t block[SW_BLOCK_BYTES],
	const void *p, size_t n, void *out);

#endif
