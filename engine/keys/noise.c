/* noise.c - the symmetric state and the two messages of NNpsk0.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/keys/noise.h"

#include <string.h>

/* The protocol's name is as long as a hash, so it is the first hash itself. */
static const char name[] = "Noise_NNpsk0_25519_AESGCM_SHA256";

_Static_assert(sizeof(name) - 1 == SW_HASH_BYTES, "no hash of it is needed");

static bool mix_hash(struct sw_noise *s, const void *p, size_t n)
{
	return sw_sha256(s->hash, sizeof(s->hash), p, n, s->hash);
}

/* Noise's HKDF: derive up to three keys from the chain. */
static bool derive(const uint8_t chain[SW_HASH_BYTES], const void *p, size_t n,
	uint32_t n_out, uint8_t out[3][SW_HASH_BYTES])
{
	uint8_t temp[SW_HASH_BYTES], block[SW_HASH_BYTES + 1];
	bool is_good = sw_hmac_sha256(chain, p, n, temp);
	size_t from = 0;

	for (uint32_t i = 0; i < n_out && is_good; i++) {
		block[from] = (uint8_t)(i + 1);
		is_good = sw_hmac_sha256(temp, block, from + 1, out[i]);
		memcpy(block, out[i], SW_HASH_BYTES);
		from = SW_HASH_BYTES;
	}
	sw_crypto_wipe(temp, sizeof(temp));
	sw_crypto_wipe(block, sizeof(block));
	return is_good;
}

/* Mix in a key: derive the next chain and the key of the next payloads.  The
 * secret (psk) also changes the hash. */
static bool mix_key(struct sw_noise *s, const uint8_t from[32], bool is_secret)
{
	uint8_t out[3][SW_HASH_BYTES];
	bool is_good = derive(s->chain, from, 32, 2 + is_secret, out) &&
		       (!is_secret || mix_hash(s, out[1], SW_HASH_BYTES));

	memcpy(s->chain, out[0], sizeof(s->chain));
	memcpy(s->key, out[1 + is_secret], sizeof(s->key));
	s->number = 0;
	sw_crypto_wipe(out, sizeof(out));
	return is_good;
}

/* Mix in an ephemeral key: a pattern with a secret (psk) uses it twice. */
static bool mix_e(struct sw_noise *s, const uint8_t e[32])
{
	return mix_hash(s, e, 32) && mix_key(s, e, false);
}

static bool mix_ee(struct sw_noise *s)
{
	uint8_t shared[32];
	bool is_good =
		sw_x25519(s->e, s->far_e, shared) && mix_key(s, shared, false);

	sw_crypto_wipe(shared, sizeof(shared));
	return is_good;
}

bool sw_noise_init(struct sw_noise *s, const void *prologue, size_t n,
	const uint8_t secret[SW_SECRET_BYTES], const uint8_t e[32])
{
	*s = (struct sw_noise){0};
	memcpy(s->hash, name, sizeof(s->hash));
	memcpy(s->chain, name, sizeof(s->chain));
	memcpy(s->e, e, sizeof(s->e));
	return mix_hash(s, prologue, n) && mix_key(s, secret, true);
}

static bool seal(
	struct sw_noise *s, const void *payload, size_t n, uint8_t *out)
{
	return sw_gcm_seal(s->key, s->number++, s->hash, sizeof(s->hash),
		       payload, n, out) &&
	       mix_hash(s, out, n + SW_NOISE_TAG_BYTES);
}

static bool open(struct sw_noise *s, const uint8_t *in, size_t n, void *payload)
{
	return sw_gcm_open(s->key, s->number++, s->hash, sizeof(s->hash), in, n,
		       payload) &&
	       mix_hash(s, in, n);
}

bool sw_noise_ask(
	struct sw_noise *s, const void *payload, size_t n, uint8_t *out)
{
	return sw_x25519_public(s->e, out) && mix_e(s, out) &&
	       seal(s, payload, n, out + SW_NOISE_E_BYTES);
}

bool sw_noise_asked(
	struct sw_noise *s, const uint8_t *in, size_t n, void *payload)
{
	if (n < SW_NOISE_MORE_BYTES)
		return false;
	memcpy(s->far_e, in, sizeof(s->far_e));
	return mix_e(s, in) &&
	       open(s, in + SW_NOISE_E_BYTES, n - SW_NOISE_E_BYTES, payload);
}

bool sw_noise_answer(
	struct sw_noise *s, const void *payload, size_t n, uint8_t *out)
{
	return sw_x25519_public(s->e, out) && mix_e(s, out) && mix_ee(s) &&
	       seal(s, payload, n, out + SW_NOISE_E_BYTES);
}

bool sw_noise_answered(
	struct sw_noise *s, const uint8_t *in, size_t n, void *payload)
{
	if (n < SW_NOISE_MORE_BYTES)
		return false;
	memcpy(s->far_e, in, sizeof(s->far_e));
	return mix_e(s, in) && mix_ee(s) &&
	       open(s, in + SW_NOISE_E_BYTES, n - SW_NOISE_E_BYTES, payload);
}

bool sw_noise_split(
	const struct sw_noise *s, uint8_t to_server[32], uint8_t to_worker[32])
{
	uint8_t out[3][SW_HASH_BYTES];
	bool is_good = derive(s->chain, "", 0, 2, out);

	memcpy(to_server, out[0], 32);
	memcpy(to_worker, out[1], 32);
	sw_crypto_wipe(out, sizeof(out));
	return is_good;
}
