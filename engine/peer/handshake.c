/* handshake.c - MACs over a path, and Noise's prologue.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/peer/handshake.h"

#include <string.h>

enum {
	PATH_BYTES = 32,
	MAC_MAX = 512, /* longest payload that has a MAC */
};

void sw_hand_random(const struct sw_env *env, uint8_t out[32])
{
	for (int i = 0; i < 32; i += 8) {
		uint64_t some = env->random(env->ctx);

		memcpy(out + i, &some, sizeof(some));
	}
}

static void store_path(uint8_t *at, const struct sw_hand_path *path)
{
	sw_ip_store(at, path->worker);
	sw_ip_store(at + 16, path->server);
}

static bool mac_of(const struct sw_secret *secret, enum sw_label label,
	const struct sw_hand_path *path, const uint8_t *payload, uint32_t n,
	uint32_t at, uint8_t mac[SW_MAC_BYTES])
{
	uint8_t text[MAC_MAX + PATH_BYTES];

	if (n > MAC_MAX || at + SW_MAC_BYTES > n)
		return false;
	memcpy(text, payload, n);
	memset(text + at, 0, SW_MAC_BYTES);
	store_path(text + n, path);
	return sw_cmac(secret->mac_keys[label], text, n + PATH_BYTES, mac);
}

bool sw_hand_mac(const struct sw_secret *secret, enum sw_label label,
	const struct sw_hand_path *path, uint8_t *payload, uint32_t n,
	uint32_t at)
{
	return mac_of(secret, label, path, payload, n, at, payload + at);
}

bool sw_hand_is_good(const struct sw_secret *secret, enum sw_label label,
	const struct sw_hand_path *path, const uint8_t *payload, uint32_t n,
	uint32_t at)
{
	uint8_t mac[SW_MAC_BYTES];

	return mac_of(secret, label, path, payload, n, at, mac) &&
	       sw_crypto_is_same(mac, payload + at, sizeof(mac));
}

bool sw_hand_begin(struct sw_noise *s, const struct sw_secret *secret,
	const struct sw_hand_path *path, const uint8_t *join, uint32_t n,
	const uint8_t e[32])
{
	static const char name[] = "sumwire 1";
	uint8_t prologue[sizeof(name) - 1 + SW_JOIN_CLEAR + PATH_BYTES + 2];
	uint8_t *at = prologue;

	memcpy(at, name, sizeof(name) - 1);
	at += sizeof(name) - 1;
	memcpy(at, join, SW_JOIN_CLEAR);
	at += SW_JOIN_CLEAR;
	store_path(at, path);
	at += PATH_BYTES;
	at[0] = (uint8_t)n;
	at[1] = (uint8_t)(n >> 8);
	return sw_noise_init(s, prologue, sizeof(prologue), secret->bytes, e);
}

struct sw_seal *sw_hand_finish(
	struct sw_noise *s, bool is_server, bool is_encrypted)
{
	uint8_t keys[2][32];
	struct sw_seal *seal = NULL;

	if (sw_noise_split(s, keys[0], keys[1]))
		seal = sw_seal_new(keys[0], keys[1], is_server, is_encrypted);
	sw_crypto_wipe(keys, sizeof(keys));
	sw_crypto_wipe(s, sizeof(*s));
	return seal;
}
