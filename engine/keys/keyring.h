/* keyring.h - the secrets that a node may speak with.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A secret is 32 random bytes that all agents and servers of a job hold.  An
 * agent has one entry, which it speaks with.  A server has several and accepts
 * each that is valid for a job's name. */
#ifndef SW_ENGINE_KEYS_KEYRING_H
#define SW_ENGINE_KEYS_KEYRING_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/keys/crypto.h"

enum {
	SW_KEY_ID_BYTES = 8,
	SW_KEY_JOB_MAX = 128, /* a job's name, with its end */
};

/* MACs of the handshake. */
enum sw_label {
	SW_LABEL_HELLO,
	SW_LABEL_COOKIE,
	SW_LABEL_REFUSE,
	SW_N_LABELS,
};

struct sw_secret {
	uint8_t id[SW_KEY_ID_BYTES]; /* names the secret and reveals nothing of
					it */
	uint8_t bytes[SW_SECRET_BYTES];
	/* Derived once: a stranger may make a server check many MACs. */
	uint8_t mac_keys[SW_N_LABELS][SW_BLOCK_BYTES];
};

struct sw_keyring_entry {
	char job[SW_KEY_JOB_MAX]; /* "": jobs without an entry of their own */
	struct sw_secret secret;
	uint64_t until_ns; /* by the clock of the loop; 0: without end */
};

/* Which jobs a server takes. */
enum sw_encrypting { SW_MAY_ENCRYPT, SW_MUST_ENCRYPT, SW_MUST_NOT_ENCRYPT };

/* An empty keyring is that of a node without keys. */
struct sw_keyring {
	const struct sw_keyring_entry *entries;
	uint32_t n;
	bool is_required; /* a server admits no job without a key */
	enum sw_encrypting encrypting;
};

/* sw_secret_init - make the secret of these 32 bytes.  Its id, the first 8
 * bytes of HKDF-Expand(secret, "sumwire key id"), is never zero. False: that
 * of these bytes would be, or libcrypto failed. */
bool sw_secret_init(struct sw_secret *s, const uint8_t bytes[SW_SECRET_BYTES]);

/* sw_keyring_find - return the secret with @id, or NULL.
 * sw_keyring_has - may a worker of @job use it at @now_ns?
 * sw_keyring_has_job - is there a secret for @job alone?  "": is there one for
 * the others? */
const struct sw_secret *sw_keyring_find(
	const struct sw_keyring *k, const uint8_t id[SW_KEY_ID_BYTES]);
bool sw_keyring_has(const struct sw_keyring *k, const struct sw_secret *s,
	const char *job, uint64_t now_ns);
bool sw_keyring_has_job(const struct sw_keyring *k, const char *job);

#endif
