/* peer.c - ACKs, signs of life and control frames, the same at both ends.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/peer/peer.h"

#include <stddef.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/wire/cipher.h"

/* Decrypt a payload where it lies: only the engine reads it.  False: the
 * numbers of results have wrapped, and a nonce would come twice. */
static __attribute__((noinline)) bool decrypt(struct sw_seal *seal,
	const struct sw_rx_frame *f, const struct sw_header *h)
{
	uint8_t *payload = (uint8_t *)f->payload;

	if (sw_type_is_data(h->type) && sw_result_has_wrapped(h))
		return false;
	if (!h->payload_len)
		return true;
	if (h->type == SW_RESULT && sw_result_is_shared(h))
		sw_seal_crypt_result(&seal->result_cipher, &h->key, payload,
			h->payload_len, payload);
	else
		sw_seal_crypt(&seal->rx_cipher, h->class, h->psn, payload,
			h->payload_len, payload);
	return true;
}

/* Has the frame the session's tag and a new number, which it takes? */
static bool has_tag(struct sw_seal *seal, const struct sw_rx_frame *f,
	const struct sw_header *h, struct sw_stats *st)
{
	const struct sw_polyval_key *key = &seal->rx_hash;

	if (h->type == SW_RESULT)
		key = &seal->result_hash;
	if (!sw_seal_is_good(seal, f->data, key, f->payload, h->payload_len)) {
		sw_count(&st->rx_tag, 1);
		return false;
	}
	if (!sw_taken_is_new(&seal->taken[h->class], h->psn)) {
		sw_count(&st->rx_replay, 1);
		return false;
	}
	sw_taken_add(&seal->taken[h->class], h->psn);
	if (!seal->is_encrypted || decrypt(seal, f, h))
		return true;
	sw_count(&st->rx_round, 1);
	return false;
}

bool sw_frame_is_true(struct sw_seal *seal, uint32_t seed,
	const struct sw_rx_frame *f, struct sw_header *h, struct sw_stats *st)
{
	if (seal)
		return has_tag(seal, f, h, st);
	if (!sw_frame_judge(f, h))
		sw_count(&st->rx_payload_crc, 1);
	else if (h->head_crc != seed)
		sw_count(&st->rx_head_crc, 1);
	else
		return true;
	return false;
}

uint32_t sw_peer_run_true(struct sw_peer *p, const struct sw_rx_frame *f,
	struct sw_header *h, uint32_t n, uint8_t type, struct sw_stats *st)
{
	uint32_t i = 1;

	if (h->type != type)
		return 1;
	for (; i < n; i++) {
		if (h[i].type != type || h[i].session != h->session ||
			h[i].class != h->class ||
			h[i].psn - h[i - 1].psn - 1 >= SW_PSN_SKIP ||
			f[i].is_marked != f->is_marked ||
			!sw_path_is_same(&f[i].from, &f->from))
			return i;
		if (!sw_frame_is_true(p->seal, p->seed, &f[i], &h[i], st)) {
			h[i].type = 0;
			return i;
		}
	}
	return i;
}

void sw_peers_grant_some(struct sw_grants *g, struct sw_due *due)
{
	struct sw_flow *f;

	while ((f = sw_grants_next(g))) {
		struct sw_peer *p =
			(struct sw_peer *)((char *)f -
					   offsetof(struct sw_peer, flow));

		sw_peer_owe(p, due,
			sw_flow_owes_ack(f) ? SW_OWE_ACK : SW_OWE_KEEPALIVE);
	}
}

void sw_peer_on_ack(struct sw_peer *p, const struct sw_header *h,
	const uint8_t *payload, bool is_newer, uint64_t now_ns, sw_fate_fn fate,
	void *ctx, struct sw_stats *st)
{
	struct sw_sack sacks[SW_N_CLASSES];

	/* An overtaken ACK still counts; an ACK with an implausible number does
	 * not. */
	if (!is_newer && !sw_flow_is_old(&p->flow, h)) {
		sw_count(&st->rx_state, 1);
		return;
	}
	memcpy(sacks, payload, h->payload_len);
	if (!sw_flow_on_ack(&p->flow, h->psn, sacks,
		    h->payload_len / sizeof(*sacks), now_ns, fate, ctx))
		sw_count(&st->rx_state, 1);
}

uint32_t sw_peer_build_ack(struct sw_peer *p, uint64_t now_ns, uint64_t gap_ns,
	struct sw_header *h, uint8_t *payload, struct sw_stats *st)
{
	struct sw_sack sacks[SW_N_CLASSES];
	uint32_t n = sw_flow_build_ack(&p->flow, now_ns, gap_ns, sacks);

	h->type = SW_ACK;
	memcpy(payload, sacks, n * sizeof(*sacks));
	sw_count(&st->acks, 1);
	return n * (uint32_t)sizeof(*sacks);
}

void sw_peer_tag(struct sw_peer *p, struct sw_tx_frame *out,
	const void *payload, bool is_stable,
	const uint8_t hash[SW_POLYVAL_BLOCK], struct sw_stats *st)
{
	sw_frame_tag(out, p->path, payload, is_stable, p->seal, hash);
	sw_frames_note(st, 1, SW_HEAD_BYTES + out->payload_len);
}

void sw_peer_build(struct sw_peer *p, struct sw_tx_frame *out, void *payload,
	bool is_stable, struct sw_stats *st)
{
	struct sw_header *h = &out->header;
	uint8_t type = h->type, hash[SW_POLYVAL_BLOCK];

	if (!p->seal || type == SW_HELLO || type == SW_JOIN) {
		sw_frame_build(out, p->path, payload, is_stable, st);
		return;
	}
	if (p->seal->is_encrypted && h->payload_len)
		sw_encrypt(p->seal, h, payload, payload);
	sw_polyval(&p->seal->tx_hash, payload, h->payload_len, hash);
	sw_peer_tag(p, out, payload, is_stable, hash, st);
}

void sw_peer_send(struct sw_peer *p, uint8_t *payload, uint64_t now_ns,
	struct sw_tx_frame *out, struct sw_stats *st)
{
	sw_flow_send_ctl(&p->flow, &out->header);
	out->header.ctl.taken = (uint16_t)p->control.n_taken;
	p->sent_ns = now_ns;
	sw_peer_build(p, out, payload, false, st);
	out->way = p->way;
}

static void hold(struct sw_peer *p)
{
	p->held = sw_control_is_full(&p->control) ? SW_OWED_ORDERED : 0;
}

void sw_peer_send_message(struct sw_peer *p, uint8_t *payload,
	const struct sw_params *params, uint64_t now_ns,
	struct sw_tx_frame *out, struct sw_stats *st)
{
	sw_control_put(&p->control, &out->header, payload, params, now_ns);
	hold(p);
	sw_peer_wake(p, now_ns + params->retry_min);
	sw_peer_send(p, payload, now_ns, out, st);
}

void sw_peer_send_again(struct sw_peer *p, struct sw_due *due, uint8_t *room,
	uint64_t now_ns, struct sw_tx_frame *out, struct sw_stats *st)
{
	const struct sw_message *m = sw_control_again(&p->control);

	sw_count(&st->control_again, 1);
	out->header = m->head;
	/* The window keeps the message as it is: under its next number it is
	 * encrypted anew. */
	memcpy(room, m->payload, m->head.payload_len);
	sw_peer_send(p, room, now_ns, out, st);
	if (sw_control_has_again(&p->control))
		sw_peer_owe(p, due, SW_OWE_AGAIN);
}

bool sw_peer_on_message(struct sw_peer *p, struct sw_due *due,
	const struct sw_header *h, const struct sw_params *params,
	uint64_t now_ns, struct sw_stats *st)
{
	struct sw_control *c = &p->control;

	if (sw_control_on_ack(c, h, params, now_ns, st)) {
		if (!sw_control_has_again(c))
			p->owed &= ~(1u << SW_OWE_AGAIN);
		hold(p);
		sw_peer_put_due(p, due);
	}
	if (!sw_type_is_ordered(h->type))
		return true;
	sw_peer_owe(p, due, SW_OWE_TAKEN);
	return sw_control_take(c, h, st);
}

void sw_peer_tick_flow(struct sw_peer *p, struct sw_due *due, uint64_t now_ns,
	sw_fate_fn fate, void *ctx, struct sw_stats *st)
{
	uint64_t n_timeouts = sw_flow_n_timeouts(&p->flow);

	if (sw_flow_tick(&p->flow, now_ns, fate, ctx))
		sw_peer_owe(p, due, SW_OWE_ACK);
	sw_count(&st->timeouts, sw_flow_n_timeouts(&p->flow) - n_timeouts);
}

enum sw_silence sw_peer_tick_window(struct sw_peer *p, struct sw_due *due,
	const struct sw_params *params, uint64_t now_ns)
{
	sw_peer_wake(p, sw_control_tick(&p->control, params, now_ns));
	if (sw_control_has_again(&p->control))
		sw_peer_owe(p, due, SW_OWE_AGAIN);
	return sw_control_is_stuck(&p->control, params, now_ns)
		       ? SW_ACKS_NOTHING
		       : SW_IS_HEARD;
}

void sw_peer_tick_alive(struct sw_peer *p, struct sw_due *due,
	const struct sw_params *params, uint64_t now_ns)
{
	uint64_t alive_at = p->sent_ns + params->dead_after / 10;

	if (alive_at <= now_ns) {
		sw_peer_owe(p, due, SW_OWE_KEEPALIVE);
		alive_at = now_ns + params->dead_after / 10;
	}
	sw_peer_wake(p, sw_min64(alive_at, p->rx_ns + params->dead_after));
}
