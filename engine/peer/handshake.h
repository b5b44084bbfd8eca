/* handshake.h - MACs and keys in HELLO, COOKIE, JOIN and ACCEPT.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Both ends compute the same MACs and the same Noise state (PROTOCOL.md,
 * section 14).  Thread: the lcore of the engine. */
#ifndef SW_ENGINE_PEER_HANDSHAKE_H
#define SW_ENGINE_PEER_HANDSHAKE_H

#include "engine/base/env.h"
#include "engine/base/ip.h"
#include "engine/wire/wire.h"
#include "engine/keys/keyring.h"
#include "engine/keys/noise.h"
#include "engine/keys/seal.h"

/* The addresses of both ends. */
struct sw_hand_path {
	struct sw_ip worker, server;
};

/* sw_hand_random - fill 32 bytes from the environment. */
void sw_hand_random(const struct sw_env *env, uint8_t out[32]);

/* sw_hand_mac - set the MAC, the 16 bytes at @payload + @at, to the MAC of the
 * other bytes of the @n at @payload and of the path, under the key of @label.
 * Returns false if @n is too large, the MAC does not fit, or libcrypto fails.
 * sw_hand_is_good - return whether the payload has that MAC. */
enum { SW_MAC_BYTES = 16 };
bool sw_hand_mac(const struct sw_secret *secret, enum sw_label label,
	const struct sw_hand_path *path, uint8_t *payload, uint32_t n,
	uint32_t at);
bool sw_hand_is_good(const struct sw_secret *secret, enum sw_label label,
	const struct sw_hand_path *path, const uint8_t *payload, uint32_t n,
	uint32_t at);

/* sw_hand_begin - begin the handshake of the JOIN of @n bytes at @join.  The
 * clear fields must be set.  @e: 32 random bytes. */
bool sw_hand_begin(struct sw_noise *s, const struct sw_secret *secret,
	const struct sw_hand_path *path, const uint8_t *join, uint32_t n,
	const uint8_t e[32]);

/* Layout of a keyed JOIN and ACCEPT. */
enum {
	SW_JOIN_CLEAR = 24,   /* nonce, cookie, key id */
	SW_JOIN_SEALED = 344, /* the other bytes of struct sw_join */
	SW_JOIN_NOISE = SW_JOIN_SEALED + SW_NOISE_MORE_BYTES,
	SW_JOIN_KEYED = SW_JOIN_CLEAR + SW_JOIN_NOISE,
	SW_ACCEPT_CLEAR = 8, /* nonce */
	SW_ACCEPT_SEALED = 8 + 2 * SW_BLOCK_BYTES,
	SW_ACCEPT_NOISE = SW_ACCEPT_SEALED + SW_NOISE_MORE_BYTES,
	SW_ACCEPT_KEYED = SW_ACCEPT_CLEAR + SW_ACCEPT_NOISE,
	/* An ERROR that refuses a JOIN, with its MAC. */
	SW_REFUSAL_BYTES = sizeof(struct sw_fault) + SW_MAC_BYTES,
};

_Static_assert(SW_JOIN_CLEAR + SW_JOIN_SEALED == sizeof(struct sw_join) &&
		       (int)SW_JOIN_KEYED <= (int)SW_PAYLOAD_MIN,
	"all of a JOIN is sealed");

/* sw_hand_finish - derive the session's keys, and wipe @s; NULL: failure. */
struct sw_seal *sw_hand_finish(
	struct sw_noise *s, bool is_server, bool is_encrypted);

#endif
