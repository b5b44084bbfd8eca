/* link_keys_rx.c - the handshake of a keyed link: COOKIE, ACCEPT, refusals.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * These frames have CRCs and prove themselves by a MAC or by Noise. One that
 * proves nothing is at most a hint: it opens, refuses and ends nothing. */
#include <stdio.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/worker/worker_int.h"

/* Without a MAC it is the COOKIE of a server that lacks our secret, or a forged
 * one: JOIN with it, until a proven one comes. */
static void on_cookie(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload)
{
	struct sw_hand_path path = sw_link_path(l);
	struct sw_cookie c;
	bool is_proven = h->payload_len > sizeof(c) &&
			 sw_hand_is_good(w->secret, SW_LABEL_COOKIE, &path,
				 payload, h->payload_len, sizeof(c));
	bool may = l->state == SW_LINK_HELLO ||
		   (l->state == SW_LINK_JOIN && is_proven && !l->is_proven);

	memcpy(&c, payload, sizeof(c));
	if (!may || c.nonce != l->nonce) {
		sw_count(&w->stats.rx_state, 1);
		return;
	}
	l->is_proven = is_proven;
	if (!is_proven) /* it must not choose a source port */
		c.is_misrouted = false;
	sw_hand_random(w->env, l->e);
	sw_link_take_cookie(w, l, &c);
}

static void on_accept(
	struct sw_worker *w, struct sw_link *l, const uint8_t *payload)
{
	struct sw_noise noise = l->noise;
	uint8_t sealed[SW_ACCEPT_SEALED];
	struct sw_seal *seal = NULL;
	struct sw_accept a;

	if (sw_noise_answered(&noise, payload + SW_ACCEPT_CLEAR,
		    SW_ACCEPT_NOISE, sealed)) {
		memcpy(&a, payload, SW_ACCEPT_CLEAR);
		memcpy((uint8_t *)&a + SW_ACCEPT_CLEAR, sealed,
			sizeof(a) - SW_ACCEPT_CLEAR);
		if (a.session && sw_payload_is_good(a.payload))
			seal = sw_hand_finish(&noise, false);
	} else {
		sw_count(&w->stats.rx_tag, 1);
	}
	if (seal) {
		sw_polyval_prepare(&seal->result_hash,
			sealed + sizeof(a) - SW_ACCEPT_CLEAR);
		sw_link_forget_keys(l);
		l->peer.seal = seal;
		sw_link_take_accept(w, l, &a);
	}
	sw_crypto_wipe(&noise, sizeof(noise));
	sw_crypto_wipe(sealed, sizeof(sealed));
}

/* Keep what a server says that cannot prove who it is, for the message when
 * time is up. */
static void note_hint(
	struct sw_worker *w, struct sw_link *l, const uint8_t *payload)
{
	struct sw_fault fault;

	if (!sw_fault_read(&fault, payload) || fault.nonce != l->nonce ||
		l->state != SW_LINK_JOIN)
		return;
	snprintf(w->refused, sizeof(w->refused),
		"it says, without a proof: %.100s", fault.text);
	w->refused_link = l;
	w->refused_ns = w->now_ns;
	w->is_refused = true;
}

static void on_refusal(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload)
{
	struct sw_hand_path path = sw_link_path(l);
	uint64_t nonce;

	memcpy(&nonce, payload, sizeof(nonce));
	if (h->payload_len != SW_REFUSAL_BYTES)
		note_hint(w, l, payload);
	else if (nonce && nonce == l->nonce &&
		 sw_hand_is_good(w->secret, SW_LABEL_REFUSE, &path, payload,
			 SW_REFUSAL_BYTES, sizeof(struct sw_fault)))
		sw_link_take_refusal(w, l, payload);
	else
		sw_count(&w->stats.rx_tag, 1);
}

/* An ACCEPT came again: our KEEPALIVE may have been lost.  A server that waits
 * for it still knows the session, so this one need not join anew.  A replay of
 * the ACCEPT gains nothing: the open timeout stays. */
static void on_repeated(struct sw_worker *w, struct sw_link *l)
{
	if (w->state == SW_WORKER_JOINING &&
		!l->peer.seal->taken[SW_CLASS_CTL].largest)
		l->peer.rx_ns = w->now_ns;
	if (w->now_ns - l->peer.sent_ns >= w->params.retry_min)
		sw_link_owe(w, l, SW_OWE_KEEPALIVE);
}

void sw_link_on_handshake(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload)
{
	uint64_t nonce;

	memcpy(&nonce, payload, sizeof(nonce));
	sw_peer_wake(&l->peer, 0);
	if (h->type == SW_COOKIE) {
		on_cookie(w, l, h, payload);
	} else if (h->type == SW_ERROR) {
		on_refusal(w, l, h, payload);
	} else if (nonce != l->nonce || h->payload_len < SW_ACCEPT_KEYED) {
		sw_count(&w->stats.rx_state, 1);
	} else if (l->state == SW_LINK_JOIN) {
		on_accept(w, l, payload);
	} else if (l->state == SW_LINK_OPEN) {
		on_repeated(w, l);
	}
}
