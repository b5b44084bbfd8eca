/* seal.c - derive and free the keys of a session.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/keys/seal.h"

void sw_taken_skip(struct sw_taken *t, uint64_t psn)
{
	/* Clear the bits whose places the new numbers take. */
	if (psn - t->largest >= SW_TAKEN_BITS)
		memset(t->bits, 0, sizeof(t->bits));
	else
		for (uint64_t p = t->largest + 1; p <= psn; p++)
			t->bits[p / 64 % SW_TAKEN_WORDS] &= ~(1ULL << p % 64);
	t->largest = psn;
}

bool sw_era_keys_open(struct sw_era_keys *k, const uint8_t key[SW_BLOCK_BYTES])
{
	return sw_ctr_open(&k->first, key) && sw_ctr_open(&k->of[0], key) &&
	       sw_ctr_open(&k->of[1], key);
}

void sw_era_keys_close(struct sw_era_keys *k)
{
	sw_ctr_close(&k->first);
	sw_ctr_close(&k->of[0]);
	sw_ctr_close(&k->of[1]);
}

/* Encrypt a nonce that no RESULT has: no tensor has the key UINT32_MAX. */
void sw_era_keys_turn(struct sw_era_keys *k, uint32_t era)
{
	const uint32_t place[3] = {UINT32_MAX, era, 0};
	uint8_t key[SW_BLOCK_BYTES] = {0};

	sw_seal_crypt_result(&k->first, place, key, sizeof(key), key);
	sw_ctr_rekey(&k->of[era & 1], key);
	k->era[era & 1] = era;
	sw_crypto_wipe(key, sizeof(key));
}

static bool derive_cipher(const uint8_t from[32], struct sw_ctr *ctr)
{
	uint8_t key[SW_BLOCK_BYTES];
	bool is_good =
		sw_hkdf_expand(from, "sumwire encrypt", key, sizeof(key)) &&
		sw_ctr_open(ctr, key);

	sw_crypto_wipe(key, sizeof(key));
	return is_good;
}

static bool derive(
	const uint8_t from[32], struct sw_prf *prf, struct sw_polyval_key *hash)
{
	uint8_t key[SW_BLOCK_BYTES];
	bool is_good = sw_hkdf_expand(from, "sumwire hash", key, sizeof(key));

	if (is_good) {
		sw_polyval_prepare(hash, key);
		is_good =
			sw_hkdf_expand(from, "sumwire tag", key, sizeof(key)) &&
			sw_prf_open(prf, key);
	}
	sw_crypto_wipe(key, sizeof(key));
	return is_good;
}

struct sw_seal *sw_seal_new(const uint8_t to_server[32],
	const uint8_t to_worker[32], bool is_server, bool is_encrypted)
{
	const uint8_t *tx = is_server ? to_worker : to_server;
	const uint8_t *rx = is_server ? to_server : to_worker;
	struct sw_seal *s = sw_crypto_get(sizeof(*s));

	if (!s)
		return NULL;
	s->direction = is_server;
	s->is_encrypted = is_encrypted;
	if (!derive(tx, &s->tx, &s->tx_hash) ||
		!derive(rx, &s->rx, &s->rx_hash) ||
		(is_encrypted && (!derive_cipher(tx, &s->tx_cipher) ||
					 !derive_cipher(rx, &s->rx_cipher)))) {
		sw_seal_free(s);
		return NULL;
	}
	/* A stranger may send a RESULT to a server, or to a worker before it
	 * knows the key of results.  Check such frames with a key that no peer
	 * hashes with. */
	s->result_hash = s->tx_hash;
	return s;
}

bool sw_seal_set_results(
	struct sw_seal *s, const uint8_t secret[2 * SW_BLOCK_BYTES])
{
	sw_polyval_prepare(&s->result_hash, secret);
	return !s->is_encrypted ||
	       sw_era_keys_open(&s->results, secret + SW_BLOCK_BYTES);
}

void sw_seal_free(struct sw_seal *s)
{
	if (!s)
		return;
	sw_ctr_close(&s->tx_cipher);
	sw_ctr_close(&s->rx_cipher);
	sw_era_keys_close(&s->results);
	sw_prf_close(&s->tx);
	sw_prf_close(&s->rx);
	sw_crypto_put(s, sizeof(*s));
}

struct sw_result_keys *sw_result_keys_new(
	const uint8_t secret[2 * SW_BLOCK_BYTES], bool is_encrypted)
{
	struct sw_result_keys *r = sw_crypto_get(sizeof(*r));

	if (!r)
		return NULL;
	memcpy(r->secret, secret, sizeof(r->secret));
	sw_polyval_prepare(&r->hash, r->secret[0]);
	if (!is_encrypted || sw_era_keys_open(&r->ciphers, r->secret[1]))
		return r;
	sw_result_keys_free(r);
	return NULL;
}

void sw_result_keys_free(struct sw_result_keys *r)
{
	if (r)
		sw_era_keys_close(&r->ciphers);
	sw_crypto_put(r, sizeof(*r));
}
