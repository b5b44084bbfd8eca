/* keyring.h - the secrets that a node holds.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A secret is 32 random bytes, shared by all agents and servers of a job.  An
 * agent's keyring has one entry.  A server's keyring has several entries: the
 * server accepts each secret that is valid for the job's name. */
#ifndef SW_ENGINE_KEYS_KEYRING_H
#define SW_ENGINE_KEYS_KEYRING_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/keys/crypto.h"

enum {
	SW_KEY_ID_BYTES = 8,
	SW_KEY_JOB_MAX = 128, /* a job's name, with its terminating zero */
};

/* MACs of the handshake. */
enum sw_label {
	SW_LABEL_HELLO,
	SW_LABEL_COOKIE,
	SW_LABEL_REFUSE,
	SW_N_LABELS,
};

struct sw_secret {
	uint8_t id[SW_KEY_ID_BYTES]; /* public; reveals no secret bit */
	uint8_t bytes[SW_SECRET_BYTES];
	/* Derived once, because strangers can make a server check many MACs. */
	uint8_t mac_keys[SW_N_LABELS][SW_BLOCK_BYTES];
};

struct sw_keyring_entry {
	char job[SW_KEY_JOB_MAX]; /* "": jobs without an entry of their own */
	struct sw_secret secret;
	uint64_t until_ns; /* on the loop's clock; 0: no end */
};

/* Which jobs a server admits. */
enum sw_encrypting { SW_MAY_ENCRYPT, SW_MUST_ENCRYPT, SW_MUST_NOT_ENCRYPT };

/* A node without keys has an empty keyring. */
struct sw_keyring {
	const struct sw_keyring_entry *entries;
	uint32_t n;
	bool is_required; /* a server admits no job without a key */
	enum sw_encrypting encrypting;
};

/* sw_secret_init - make a secret from 32 bytes.  Its id is the first 8 bytes of
 * HKDF-Expand(secret, "sumwire key id").  Returns false if the id would be
 * zero, or libcrypto failed. */
bool sw_secret_init(struct sw_secret *s, const uint8_t bytes[SW_SECRET_BYTES]);

/* sw_keyring_find - return the secret with @id, or NULL.
 * sw_keyring_has - return whether a worker of @job may use @s at @now_ns.
 * sw_keyring_has_job - return whether @job has a secret of its own; "": whether
 * the jobs without one have a common secret. */
const struct sw_secret *sw_keyring_find(
	const struct sw_keyring *k, const uint8_t id[SW_KEY_ID_BYTES]);
bool sw_keyring_has(const struct sw_keyring *k, const struct sw_secret *s,
	const char *job, uint64_t now_ns);
bool sw_keyring_has_job(const struct sw_keyring *k, const char *job);

#endif
