/* link_keys.c - what a secret changes at a link (PROTOCOL.md, section 14).
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "engine/worker/worker_int.h"

struct sw_hand_path sw_link_path(const struct sw_link *l)
{
	return (struct sw_hand_path){
		.worker = l->here, .server = l->peer.path.ip};
}

void sw_link_prove(struct sw_worker *w, struct sw_link *l)
{
	struct sw_hand_path path = sw_link_path(l);

	memcpy(w->payload + offsetof(struct sw_hello, key_id), w->secret->id,
		sizeof(w->secret->id));
	sw_hand_mac(w->secret, SW_LABEL_HELLO, &path, w->payload,
		sizeof(struct sw_hello), offsetof(struct sw_hello, mac));
}

void sw_link_seal(struct sw_worker *w, struct sw_link *l)
{
	struct sw_hand_path path = sw_link_path(l);
	uint8_t plain[SW_JOIN_SEALED];

	memcpy(w->payload + offsetof(struct sw_join, key_id), w->secret->id,
		sizeof(w->secret->id));
	memcpy(plain, w->payload + SW_JOIN_CLEAR, sizeof(plain));
	/* If libcrypto fails, the server drops the JOIN. */
	if (sw_hand_begin(&l->noise, w->secret, &path, w->payload,
		    SW_PAYLOAD_MIN, l->e))
		sw_noise_ask(&l->noise, plain, sizeof(plain),
			w->payload + SW_JOIN_CLEAR);
}

void sw_link_forget_keys(struct sw_link *l)
{
	sw_seal_free(l->peer.seal);
	l->peer.seal = NULL;
	sw_crypto_wipe(&l->noise, sizeof(l->noise));
	sw_crypto_wipe(l->e, sizeof(l->e));
}

/* A server that has confirmed the session gives a sign of life several times
 * within this time. */
bool sw_link_is_deaf(const struct sw_worker *w, const struct sw_link *l)
{
	return l->state == SW_LINK_OPEN && w->state == SW_WORKER_JOINING &&
	       (l->server_i || !w->size) &&
	       !l->peer.seal->taken[SW_CLASS_CTL].largest &&
	       w->now_ns - l->peer.rx_ns >= w->params.dead_after / 2;
}

/* --- received frames --- */

bool sw_link_is_handshake(const struct sw_link *l, const struct sw_header *h)
{
	return h->type == SW_COOKIE || h->type == SW_ACCEPT ||
	       (h->type == SW_ERROR &&
		       (!l->peer.seal || h->payload_len == SW_REFUSAL_BYTES));
}

bool sw_link_is_true(struct sw_worker *w, struct sw_link *l,
	const struct sw_rx_frame *f, struct sw_header *h)
{
	uint32_t seed = h->type == SW_COOKIE ? 0 : l->peer.seed;

	if (!l->is_keyed || sw_link_is_handshake(l, h))
		return sw_frame_is_true(NULL, seed, f, h, &w->stats);
	if (l->peer.seal)
		return sw_frame_is_true(l->peer.seal, seed, f, h, &w->stats);
	sw_count(&w->stats.rx_tag, 1);
	return false;
}
