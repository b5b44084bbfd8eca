/* keyring.c - find the secret that a peer names.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/keys/keyring.h"

#include <string.h>

static const uint8_t no_id[SW_KEY_ID_BYTES];

bool sw_secret_init(struct sw_secret *s, const uint8_t bytes[SW_SECRET_BYTES])
{
	static const char *const labels[SW_N_LABELS] = {
		"sumwire hello", "sumwire cookie", "sumwire refuse"};

	memcpy(s->bytes, bytes, sizeof(s->bytes));
	for (uint32_t i = 0; i < SW_N_LABELS; i++)
		if (!sw_hkdf_expand(bytes, labels[i], s->mac_keys[i],
			    sizeof(s->mac_keys[i])))
			return false;
	return sw_hkdf_expand(bytes, "sumwire key id", s->id, sizeof(s->id)) &&
	       memcmp(s->id, no_id, sizeof(no_id)) != 0;
}

const struct sw_secret *sw_keyring_find(
	const struct sw_keyring *k, const uint8_t id[SW_KEY_ID_BYTES])
{
	for (uint32_t i = 0; k && i < k->n; i++)
		if (!memcmp(k->entries[i].secret.id, id, SW_KEY_ID_BYTES))
			return &k->entries[i].secret;
	return NULL;
}

bool sw_keyring_has_job(const struct sw_keyring *k, const char *job)
{
	for (uint32_t i = 0; k && i < k->n; i++)
		if (!strncmp(k->entries[i].job, job, SW_KEY_JOB_MAX))
			return true;
	return false;
}

bool sw_keyring_has(const struct sw_keyring *k, const struct sw_secret *s,
	const char *job, uint64_t now_ns)
{
	const char *of = sw_keyring_has_job(k, job) ? job : "";

	for (uint32_t i = 0; k && i < k->n; i++) {
		const struct sw_keyring_entry *e = &k->entries[i];

		if (!memcmp(e->secret.id, s->id, SW_KEY_ID_BYTES) &&
			!strncmp(e->job, of, sizeof(e->job)) &&
			(!e->until_ns || now_ns < e->until_ns))
			return true;
	}
	return false;
}
