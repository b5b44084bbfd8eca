/* peer.c - ACKs, signs of life and control frames, the same at both ends.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/peer/peer.h"

#include <stddef.h>
#include <string.h>

#include "engine/base/bytes.h"

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

void sw_peer_send(struct sw_peer *p, const uint8_t *payload, uint64_t now_ns,
	struct sw_tx_frame *out, struct sw_stats *st)
{
	sw_flow_send_ctl(&p->flow, &out->header);
	out->header.ctl.taken = (uint16_t)p->control.n_taken;
	p->sent_ns = now_ns;
	sw_frame_build(out, p->path, payload, false, st);
	out->way = p->way;
}

static void hold(struct sw_peer *p)
{
	p->held = sw_control_is_full(&p->control) ? SW_OWED_ORDERED : 0;
}

void sw_peer_send_message(struct sw_peer *p, const uint8_t *payload,
	const struct sw_params *params, uint64_t now_ns,
	struct sw_tx_frame *out, struct sw_stats *st)
{
	sw_control_put(&p->control, &out->header, payload, params, now_ns);
	hold(p);
	sw_peer_wake(p, now_ns + params->retry_min);
	sw_peer_send(p, payload, now_ns, out, st);
}

void sw_peer_send_again(struct sw_peer *p, struct sw_due *due, uint64_t now_ns,
	struct sw_tx_frame *out, struct sw_stats *st)
{
	const struct sw_message *m = sw_control_again(&p->control);

	sw_count(&st->control_again, 1);
	out->header = m->head;
	sw_peer_send(p, m->payload, now_ns, out, st);
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
