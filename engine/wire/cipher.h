/* cipher.h - how the payloads of an encrypted session are numbered.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A payload is encrypted under a nonce that both ends know from its header, and
 * that its key never meets twice (PROTOCOL.md, section 14). */
#ifndef SW_ENGINE_WIRE_CIPHER_H
#define SW_ENGINE_WIRE_CIPHER_H

#include "engine/wire/coll.h"
#include "engine/wire/wire.h"

/* sw_result_is_shared - are these the bytes that all members get?  Key, round
 * and chunk are then the nonce.  A RESULT of an asynchronous tensor or of a
 * broadcast round is not: it has a nonce by its packet number, as all other
 * frames have.
 * sw_result_has_wrapped - has the round of a tensor, or the number of a
 * collective, begun again at 0?  The next nonces would be those of before. */
static inline bool sw_result_is_shared(const struct sw_header *h)
{
	return h->op != SW_ROUND_COPY;
}

static inline bool sw_result_has_wrapped(const struct sw_header *h)
{
	return !(sw_coll_kind_of(h->op) ? h->stream.collective : h->round);
}

/* sw_encrypt - encrypt the payload of a frame from @p to @out, which may be @p.
 * The header has its packet number, which no other frame gets.
 * sw_encrypt_result - do so with a RESULT that is shared. */
static inline void sw_encrypt(
	struct sw_seal *seal, struct sw_header *h, const void *p, void *out)
{
	h->flags |= SW_FLAG_CIPHER;
	sw_seal_crypt(
		&seal->tx_cipher, h->class, h->psn, p, h->payload_len, out);
}

static inline void sw_encrypt_result(
	struct sw_ctr *cipher, struct sw_header *h, const void *p, void *out)
{
	h->flags |= SW_FLAG_CIPHER;
	sw_seal_crypt_result(cipher, &h->key, p, h->payload_len, out);
}

#endif
