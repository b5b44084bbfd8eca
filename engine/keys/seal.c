/* seal.c - derive the keys of a session, and give them back.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/keys/seal.h"

void sw_taken_skip(struct sw_taken *t, uint64_t psn)
{
	/* Forget the numbers whose places the new ones take. */
	if (psn - t->largest >= SW_TAKEN_BITS)
		memset(t->bits, 0, sizeof(t->bits));
	else
		for (uint64_t p = t->largest + 1; p <= psn; p++)
			t->bits[p / 64 % SW_TAKEN_WORDS] &= ~(1ULL << p % 64);
	t->largest = psn;
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
	const uint8_t to_worker[32], bool is_server)
{
	struct sw_seal *s = sw_crypto_get(sizeof(*s));

	if (!s)
		return NULL;
	s->direction = is_server;
	if (derive(is_server ? to_worker : to_server, &s->tx, &s->tx_hash) &&
		derive(is_server ? to_server : to_worker, &s->rx, &s->rx_hash))
		return s;
	sw_seal_free(s);
	return NULL;
}

void sw_seal_free(struct sw_seal *s)
{
	if (!s)
		return;
	sw_prf_close(&s->tx);
	sw_prf_close(&s->rx);
	sw_crypto_put(s, sizeof(*s));
}

struct sw_result_keys *sw_result_keys_new(
	const uint8_t secret[2 * SW_BLOCK_BYTES])
{
	struct sw_result_keys *r = sw_crypto_get(sizeof(*r));

	if (!r)
		return NULL;
	memcpy(r->secret, secret, sizeof(r->secret));
	sw_polyval_prepare(&r->hash, r->secret[0]);
	return r;
}

void sw_result_keys_free(struct sw_result_keys *r)
{
	sw_crypto_put(r, sizeof(*r));
}
