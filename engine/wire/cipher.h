/* cipher.h - nonces for the payloads of an encrypted session.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Both ends know a payload's nonce from its header, and no key uses a nonce
 * twice (PROTOCOL.md, section 14). */
#ifndef SW_ENGINE_WIRE_CIPHER_H
#define SW_ENGINE_WIRE_CIPHER_H

#include "engine/wire/coll.h"
#include "engine/wire/wire.h"

/* sw_result_is_shared - return whether all members get the same bytes.  Key,
 * round and chunk are then the nonce.  A RESULT of an asynchronous tensor or of
 * a broadcast round is not shared: its nonce is its packet number, as in all
 * other frames. */
static inline bool sw_result_is_shared(const struct sw_header *h)
{
	return h->op != SW_ROUND_COPY;
}

/* sw_encrypt - encrypt the payload of a frame from @p to @out, which may be @p.
 * The header must have its packet number, which no other frame may get.
 * sw_encrypt_result - do so for a shared RESULT, under the key of @era. */
static inline void sw_encrypt(
	struct sw_seal *seal, struct sw_header *h, const void *p, void *out)
{
	h->flags |= SW_FLAG_CIPHER;
	sw_seal_crypt(
		&seal->tx_cipher, h->class, h->psn, p, h->payload_len, out);
}

static inline void sw_encrypt_result(struct sw_era_keys *keys, uint32_t era,
	struct sw_header *h, const void *p, void *out)
{
	sw_seal_crypt_result(
		sw_era_key(keys, era), &h->key, p, h->payload_len, out);
}

/* sw_era_is_old - return whether @era, at era @now, is too old for the 4 bits
 * in a frame.  The worker knows @now or the era before.
 * sw_result_era - return the era of the key for a result: @era, if its key @was
 * used before and is not too old; else @now. */
static inline bool sw_era_is_old(uint32_t era, uint32_t now)
{
	return now - era > 8;
}

static inline uint32_t sw_result_era(bool was, uint32_t era, uint32_t now)
{
	return was && !sw_era_is_old(era, now) ? era : now;
}

/* sw_result_set_era - store in a header the era of the key that encrypted the
 * payload. */
static inline void sw_result_set_era(struct sw_header *h, uint32_t era)
{
	h->flags |= (uint8_t)(SW_FLAG_CIPHER | (era & 15) * SW_FLAG_ERA);
}

#endif
