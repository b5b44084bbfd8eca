/* crypto.c - primitives from libcrypto; no other file calls it.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/keys/crypto.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <string.h>
#include <sys/mman.h>

bool sw_crypto_random(void *out, size_t n)
{
	return RAND_bytes(out, (int)n) == 1;
}

void sw_crypto_wipe(void *p, size_t n)
{
	OPENSSL_cleanse(p, n);
}

bool sw_crypto_is_same(const void *a, const void *b, size_t n)
{
	return CRYPTO_memcmp(a, b, n) == 0;
}

void *sw_crypto_get(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	/* Both are best effort: RLIMIT_MEMLOCK may be small. */
	mlock(p, bytes);
	madvise(p, bytes, MADV_DONTDUMP);
	return p;
}

void sw_crypto_put(void *p, size_t bytes)
{
	if (!p)
		return;
	OPENSSL_cleanse(p, bytes);
	munmap(p, bytes);
}

bool sw_sha256(const void *a, size_t n_a, const void *b, size_t n_b,
	uint8_t out[SW_HASH_BYTES])
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool is_good = ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) &&
		       EVP_DigestUpdate(ctx, a, n_a) &&
		       EVP_DigestUpdate(ctx, b, n_b) &&
		       EVP_DigestFinal_ex(ctx, out, NULL);

	EVP_MD_CTX_free(ctx);
	return is_good;
}

bool sw_hmac_sha256(const uint8_t key[SW_HASH_BYTES], const void *p, size_t n,
	uint8_t out[SW_HASH_BYTES])
{
	return HMAC(EVP_sha256(), key, SW_HASH_BYTES, p, n, out, NULL) != NULL;
}

bool sw_hkdf_expand(const uint8_t key[SW_HASH_BYTES], const char *label,
	uint8_t *out, size_t n)
{
	uint8_t info[64], okm[SW_HASH_BYTES];
	size_t len = strlen(label);
	bool is_good = len < sizeof(info) && n <= sizeof(okm);

	if (!is_good)
		return false;
	memcpy(info, label, len);
	info[len] = 1; /* the number of the block */
	is_good = sw_hmac_sha256(key, info, len + 1, okm);
	memcpy(out, okm, n);
	OPENSSL_cleanse(okm, sizeof(okm));
	return is_good;
}

bool sw_x25519_public(const uint8_t private[32], uint8_t public[32])
{
	EVP_PKEY *key = EVP_PKEY_new_raw_private_key(
		EVP_PKEY_X25519, NULL, private, 32);
	size_t n = 32;
	bool is_good = key && EVP_PKEY_get_raw_public_key(key, public, &n);

	EVP_PKEY_free(key);
	return is_good;
}

bool sw_x25519(
	const uint8_t private[32], const uint8_t public[32], uint8_t shared[32])
{
	EVP_PKEY *ours = EVP_PKEY_new_raw_private_key(
		EVP_PKEY_X25519, NULL, private, 32);
	EVP_PKEY *theirs =
		EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, NULL, public, 32);
	EVP_PKEY_CTX *ctx = ours ? EVP_PKEY_CTX_new(ours, NULL) : NULL;
	static const uint8_t zero[32];
	size_t n = 32;
	/* Refuse a shared secret of zero, as libcrypto does. */
	bool is_good = ctx && theirs && EVP_PKEY_derive_init(ctx) == 1 &&
		       EVP_PKEY_derive_set_peer(ctx, theirs) == 1 &&
		       EVP_PKEY_derive(ctx, shared, &n) == 1 &&
		       !sw_crypto_is_same(shared, zero, sizeof(zero));

	EVP_PKEY_CTX_free(ctx);
	EVP_PKEY_free(theirs);
	EVP_PKEY_free(ours);
	return is_good;
}

/* The nonce of Noise's AESGCM: 4 bytes of zero, the number in big-endian. */
static void make_iv(uint64_t number, uint8_t iv[12])
{
	memset(iv, 0, 4);
	for (int i = 0; i < 8; i++)
		iv[4 + i] = (uint8_t)(number >> (56 - 8 * i));
}

bool sw_gcm_seal(const uint8_t key[32], uint64_t number, const void *aad,
	size_t n_aad, const void *p, size_t n, uint8_t *out)
{
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	uint8_t iv[12], none;
	bool is_good;
	int len = 0;

	make_iv(number, iv);
	is_good = ctx &&
		  EVP_EncryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, key, iv) &&
		  EVP_EncryptUpdate(ctx, NULL, &len, aad, (int)n_aad) &&
		  (!n || EVP_EncryptUpdate(ctx, out, &len, p, (int)n)) &&
		  EVP_EncryptFinal_ex(ctx, &none, &len) &&
		  EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, 16, out + n);
	EVP_CIPHER_CTX_free(ctx);
	return is_good;
}

bool sw_gcm_open(const uint8_t key[32], uint64_t number, const void *aad,
	size_t n_aad, const uint8_t *p, size_t n, void *out)
{
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	uint8_t iv[12], tag[16], none;
	bool is_good = ctx && n >= sizeof(tag);
	int len = 0;

	if (is_good) {
		make_iv(number, iv);
		n -= sizeof(tag);
		memcpy(tag, p + n, sizeof(tag));
		is_good =
			EVP_DecryptInit_ex(
				ctx, EVP_aes_256_gcm(), NULL, key, iv) &&
			EVP_DecryptUpdate(ctx, NULL, &len, aad, (int)n_aad) &&
			(!n || EVP_DecryptUpdate(ctx, out, &len, p, (int)n)) &&
			EVP_CIPHER_CTX_ctrl(
				ctx, EVP_CTRL_AEAD_SET_TAG, 16, tag) &&
			EVP_DecryptFinal_ex(ctx, &none, &len) > 0;
	}
	EVP_CIPHER_CTX_free(ctx);
	return is_good;
}

/* --- AES-128-CMAC --- */

/* Open CBC without padding and with a zero IV. */
static EVP_CIPHER_CTX *open_cbc(const uint8_t key[SW_BLOCK_BYTES])
{
	static const uint8_t zero[SW_BLOCK_BYTES];
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();

	if (ctx &&
		EVP_EncryptInit_ex(ctx, EVP_aes_128_cbc(), NULL, key, zero) &&
		EVP_CIPHER_CTX_set_padding(ctx, 0))
		return ctx;
	EVP_CIPHER_CTX_free(ctx);
	return NULL;
}

/* Encrypt whole blocks. */
static bool encrypt(EVP_CIPHER_CTX *ctx, uint8_t *out, const void *p, size_t n)
{
	int len = 0;

	return EVP_EncryptUpdate(ctx, out, &len, p, (int)n) && len == (int)n;
}

/* Double @b in GF(2^128), most significant byte first (RFC 4493, section 2.3).
 */
static void twice(uint8_t b[SW_BLOCK_BYTES])
{
	uint8_t carry = (uint8_t)(-(b[0] >> 7) & 0x87);

	for (int i = 0; i < SW_BLOCK_BYTES - 1; i++)
		b[i] = (uint8_t)(b[i] << 1 | b[i + 1] >> 7);
	b[SW_BLOCK_BYTES - 1] = (uint8_t)(b[SW_BLOCK_BYTES - 1] << 1 ^ carry);
}

static void add(uint8_t *to, const uint8_t *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] ^= from[i];
}

/* Continue a MAC without a kernel.  The context's CBC chain continues from the
 * previous MAC, so the first block of a new MAC cancels it. */
static __attribute__((noinline)) bool go_on_by_ctx(
	struct sw_prf *prf, const uint8_t *p, size_t n, bool is_first)
{
	uint8_t blocks[SW_PRF_BYTES];

	memcpy(blocks, p, n);
	if (is_first)
		add(blocks, prf->mac, SW_BLOCK_BYTES);
	if (!encrypt(prf->ctx, blocks, blocks, n))
		return false;
	memcpy(prf->mac, blocks + n - SW_BLOCK_BYTES, SW_BLOCK_BYTES);
	return true;
}

/* Continue a MAC with whole blocks, at most SW_PRF_BYTES. */
static inline bool go_on(
	struct sw_prf *prf, const uint8_t *p, size_t n, bool is_first)
{
	if (!prf->kernel)
		return go_on_by_ctx(prf, p, n, is_first);
	if (is_first)
		memset(prf->mac, 0, sizeof(prf->mac));
	prf->kernel->chain(&prf->key, prf->mac, p, n / SW_BLOCK_BYTES);
	return true;
}

void sw_prf_close(struct sw_prf *prf)
{
	EVP_CIPHER_CTX_free(prf->ctx);
	OPENSSL_cleanse(prf, sizeof(*prf));
}

bool sw_prf_open(struct sw_prf *prf, const uint8_t key[SW_BLOCK_BYTES])
{
	static const uint8_t zero[SW_BLOCK_BYTES];

	*prf = (struct sw_prf){.kernel = sw_aes_best()};
	if (prf->kernel)
		sw_aes_prepare(&prf->key, key);
	else if (!(prf->ctx = open_cbc(key)))
		return false;
	if (!go_on(prf, zero, sizeof(zero), true)) {
		sw_prf_close(prf);
		return false;
	}
	memcpy(prf->subkey, prf->mac, sizeof(prf->subkey));
	twice(prf->subkey);
	return true;
}

/* End a MAC; the last block is whole, or padded. */
static bool end(
	struct sw_prf *prf, const uint8_t last[SW_BLOCK_BYTES], bool is_first)
{
	uint8_t block[SW_BLOCK_BYTES];

	memcpy(block, last, sizeof(block));
	add(block, prf->subkey, sizeof(block));
	return go_on(prf, block, sizeof(block), is_first);
}

void sw_prf_tags_by_ctx(struct sw_prf *prf, const uint8_t (*in)[SW_PRF_BYTES],
	uint32_t n, uint64_t *tags)
{
	enum { REST = SW_PRF_BYTES - SW_BLOCK_BYTES };

	for (uint32_t i = 0; i < n; i++) {
		go_on(prf, in[i], REST, true);
		end(prf, in[i] + REST, false);
		memcpy(&tags[i], prf->mac, sizeof(*tags));
	}
}

bool sw_cmac(const uint8_t key[SW_BLOCK_BYTES], const void *p, size_t n,
	uint8_t out[SW_BLOCK_BYTES])
{
	uint8_t last[SW_BLOCK_BYTES] = {0};
	const uint8_t *bytes = p;
	struct sw_prf prf;
	bool is_first = true, is_good = sw_prf_open(&prf, key);

	if (!is_good)
		return false;
	for (; n > SW_BLOCK_BYTES && is_good;
		n -= SW_BLOCK_BYTES, bytes += SW_BLOCK_BYTES) {
		is_good = go_on(&prf, bytes, SW_BLOCK_BYTES, is_first);
		is_first = false;
	}
	memcpy(last, bytes, n);
	if (n < SW_BLOCK_BYTES) {
		last[n] = 0x80;
		twice(prf.subkey);
	}
	is_good = is_good && end(&prf, last, is_first);
	memcpy(out, prf.mac, SW_BLOCK_BYTES);
	sw_prf_close(&prf);
	return is_good;
}

/* --- AES-128-CTR --- */

bool sw_ctr_open(struct sw_ctr *ctr, const uint8_t key[SW_BLOCK_BYTES])
{
	*ctr = (struct sw_ctr){.kernel = sw_aes_best()};
	if (ctr->kernel) {
		sw_aes_prepare(&ctr->key, key);
		return true;
	}
	ctr->ctx = EVP_CIPHER_CTX_new();
	if (ctr->ctx && EVP_EncryptInit_ex(
				ctr->ctx, EVP_aes_128_ctr(), NULL, key, NULL))
		return true;
	sw_ctr_close(ctr);
	return false;
}

void sw_ctr_rekey(struct sw_ctr *ctr, const uint8_t key[SW_BLOCK_BYTES])
{
	if (ctr->kernel)
		sw_aes_prepare(&ctr->key, key);
	else
		EVP_EncryptInit_ex(ctr->ctx, NULL, NULL, key, NULL);
}

void sw_ctr_close(struct sw_ctr *ctr)
{
	EVP_CIPHER_CTX_free(ctr->ctx);
	OPENSSL_cleanse(ctr, sizeof(*ctr));
}

void sw_ctr(struct sw_ctr *ctr, const uint8_t block[SW_BLOCK_BYTES],
	const void *p, size_t n, void *out)
{
	if (ctr->kernel) {
		ctr->kernel->ctr(&ctr->key, block, p, n, out);
		return;
	}
	EVP_EncryptInit_ex(ctr->ctx, NULL, NULL, NULL, block);
	encrypt(ctr->ctx, out, p, n);
}
