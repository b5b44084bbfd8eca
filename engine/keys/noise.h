/* noise.h - the handshake Noise_NNpsk0_25519_AESGCM_SHA256 (noiseprotocol.org).
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Both ends hold the secret, so neither end needs a static key.  The worker
 * sends the first message in its JOIN; the server sends the second in ACCEPT.
 * The session's keys depend on an X25519 exchange (forward secrecy): an
 * attacker who learns the secret later cannot read earlier sessions. */
#ifndef SW_ENGINE_KEYS_NOISE_H
#define SW_ENGINE_KEYS_NOISE_H

#include "engine/keys/crypto.h"

enum {
	SW_NOISE_E_BYTES = 32,   /* an ephemeral public key, at the start */
	SW_NOISE_TAG_BYTES = 16, /* after the payload */
	SW_NOISE_MORE_BYTES = SW_NOISE_E_BYTES + SW_NOISE_TAG_BYTES,
};

/* The state of one end.  It is secret: wipe it after the handshake. */
struct sw_noise {
	uint8_t chain[SW_HASH_BYTES], hash[SW_HASH_BYTES];
	uint8_t key[32];
	uint64_t number; /* nonce of the next payload under this key */
	uint8_t e[32];   /* ephemeral private key of this end */
	uint8_t far_e[32];
};

/* sw_noise_init - begin a handshake; both ends must pass the same @prologue.
 * @e  32 random bytes */
bool sw_noise_init(struct sw_noise *s, const void *prologue, size_t n,
	const uint8_t secret[SW_SECRET_BYTES], const uint8_t e[32]);

/* sw_noise_ask - at the worker: write e and the sealed payload, n + 48 bytes,
 * to @out.
 * sw_noise_asked - at the server: read that message, @n bytes at @in.  False:
 * the secret or the prologue differs, or bytes have changed.
 * sw_noise_answer, sw_noise_answered - the same for the server's message. */
bool sw_noise_ask(
	struct sw_noise *s, const void *payload, size_t n, uint8_t *out);
bool sw_noise_asked(
	struct sw_noise *s, const uint8_t *in, size_t n, void *payload);
bool sw_noise_answer(
	struct sw_noise *s, const void *payload, size_t n, uint8_t *out);
bool sw_noise_answered(
	struct sw_noise *s, const uint8_t *in, size_t n, void *payload);

/* sw_noise_split - derive the session's two keys, one for each direction. */
bool sw_noise_split(
	const struct sw_noise *s, uint8_t to_server[32], uint8_t to_worker[32]);

#endif
