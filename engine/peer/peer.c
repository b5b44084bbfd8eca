/* peer.c - ACKs, keepalives and control frames, the same at both ends.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/peer/peer.h"

#include <stddef.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/peer/peer_view.h"
#include "engine/wire/cipher.h"

/* Decrypt a payload in place: only the engine reads it. */
static __attribute__((noinline)) void decrypt(struct sw_seal *seal,
	const struct sw_rx_frame *f, const struct sw_header *h)
{
	uint8_t *payload = (uint8_t *)f->payload;
	uint32_t n = h->payload_len, era;

	if (h->type == SW_RESULT && sw_result_is_shared(h)) {
		era = sw_era_near(seal->era, h->flags / SW_FLAG_ERA);
		sw_seal_crypt_result(sw_era_key(&seal->results, era), &h->key,
			payload, n, payload);
	} else {
		sw_seal_crypt(&seal->rx_cipher, h->class, h->psn, payload, n,
			payload);
	}
}

/* Take the era from the true frames (false frames have type 0), and decrypt
 * their payloads. */
static void take(struct sw_seal *seal, const struct sw_rx_frame *f,
	const struct sw_header *h, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (!h[i].type)
			continue;
		if (h[i].class == SW_CLASS_CTL)
			sw_seal_hear(seal, h[i].ctl.era);
		if (seal->is_encrypted && h[i].payload_len)
			decrypt(seal, &f[i], &h[i]);
	}
}

/* Hash the payload of @f.  If a frame follows, prefetch its payload, which
 * another core may have written. */
static inline void hash_frame(const struct sw_polyval_key *key,
	const struct sw_rx_frame *f, uint32_t len, bool has_next, uint8_t *hash)
{
	if (has_next)
		sw_polyval_far(key, f->payload, len, f[1].payload, hash);
	else
		sw_polyval(key, f->payload, len, hash);
}

/* Check the tags of @n frames of one type and space, at most SW_RUN; @left
 * frames are left in the burst.  Return how many precede the first false frame.
 */
static uint32_t judge_tags(struct sw_seal *seal, const struct sw_rx_frame *f,
	struct sw_header *h, uint32_t n, uint32_t left, struct sw_stats *st)
{
	_Alignas(64) uint8_t blocks[SW_RUN][SW_PRF_BYTES];
	const struct sw_polyval_key *key =
		h->type == SW_RESULT ? &seal->result_hash : &seal->rx_hash;
	struct sw_taken *taken = &seal->taken[h->class];
	uint64_t tags[SW_RUN], *counter;
	uint32_t n_true = n;

	for (uint32_t i = 0; i < n; i++) {
		sw_seal_block(blocks[i], f[i].data, !seal->direction);
		hash_frame(key, &f[i], h[i].payload_len, i + 1 < left,
			blocks[i] + SW_SEAL_HASH_AT);
	}
	sw_prf_tags(&seal->rx, (const uint8_t(*)[SW_PRF_BYTES])blocks, n, tags);
	for (uint32_t i = 0; i < n; i++) {
		counter = &st->rx_tag;
		if (sw_seal_is_good(tags[i], f[i].data)) {
			counter = &st->rx_replay;
			if (sw_taken_add(taken, h[i].psn)) {
				h[i].magic = 0;
				continue;
			}
		}
		sw_count(counter, 1);
		h[i].type = 0;
		n_true = n_true < i ? n_true : i;
	}
	if (seal->is_encrypted || h->class == SW_CLASS_CTL)
		take(seal, f, h, n);
	return n_true;
}

bool sw_frame_is_true(struct sw_seal *seal, uint32_t seed,
	const struct sw_rx_frame *f, struct sw_header *h, struct sw_stats *st)
{
	if (seal)
		return judge_tags(seal, f, h, 1, 1, st) != 0;
	if (!sw_frame_judge(f, h))
		sw_count(&st->rx_payload_crc, 1);
	else if (h->head_crc != seed)
		sw_count(&st->rx_head_crc, 1);
	else
		h->magic = 0;
	if (h->magic)
		h->type = 0;
	return !h->magic;
}

uint32_t sw_peer_run_true(struct sw_peer *p, const struct sw_rx_frame *f,
	struct sw_header *h, uint32_t n, uint8_t type, struct sw_stats *st)
{
	uint32_t i = 0, left = n;

	if (h->magic) {
		n = sw_peer_run_of(f, h, n < SW_RUN ? n : SW_RUN, type, true);
		if (p->seal)
			return judge_tags(p->seal, f, h, n, left, st);
		for (; i < n; i++)
			sw_frame_is_true(NULL, p->seed, &f[i], &h[i], st);
	}
	for (i = 0; i < n && h[i].type && !h[i].magic; i++)
		;
	return i;
}

static void grant_in_turn(struct sw_queue *turns)
{
	struct sw_flow *f;

	while ((f = sw_grants_next(turns)))
		sw_peer_owe(sw_peer_of(f),
			sw_flow_owes_ack(f) ? SW_OWE_ACK : SW_OWE_KEEPALIVE);
}

void sw_peers_grant_some(struct sw_grants *g)
{
	struct sw_crowd *c = sw_grants_crowds(g), *next;

	for (; c; c = next) {
		next = sw_crowd_next(c); /* the crowd may lose its ceiling */
		grant_in_turn(sw_crowd_turns(c));
		sw_crowd_grow(c);
	}
	grant_in_turn(sw_grants_turns(g));
}

void sw_peer_on_ack(struct sw_peer *p, const struct sw_header *h,
	const uint8_t *payload, bool is_newer)
{
	const struct sw_hub *hub = p->hub;
	struct sw_sack sacks[SW_N_CLASSES];

	/* An ACK that arrives late still counts; an ACK with an implausible
	 * number does not. */
	if (!is_newer && !sw_flow_is_old(&p->flow, h)) {
		sw_count(&hub->stats->rx_state, 1);
		return;
	}
	memcpy(sacks, payload, h->payload_len);
	if (!sw_flow_on_ack(&p->flow, h->psn, sacks,
		    h->payload_len / sizeof(*sacks), *hub->now_ns, hub->fate,
		    p))
		sw_count(&hub->stats->rx_state, 1);
}

void sw_peer_build(struct sw_peer *p, struct sw_tx_frame *out, void *payload,
	bool is_stable)
{
	struct sw_header *h = &out->header;
	struct sw_stats *st = p->hub->stats;
	uint8_t type = h->type;

	if (!p->seal || type == SW_HELLO || type == SW_JOIN) {
		sw_frame_build(out, p->path, payload, is_stable, st);
		return;
	}
	if (p->seal->is_encrypted && h->payload_len)
		sw_encrypt(p->seal, h, payload, payload);
	sw_frame_tag(out, p->path, payload, is_stable, p->seal);
	sw_frames_note(st, 1, SW_HEAD_BYTES + out->payload_len);
}

/* --- send control frames --- */

static uint32_t build_ack(
	struct sw_peer *p, struct sw_header *h, uint8_t *payload)
{
	const struct sw_hub *hub = p->hub;
	struct sw_sack sacks[SW_N_CLASSES];
	uint32_t n =
		sw_flow_build_ack(&p->flow, *hub->now_ns, *hub->gap_ns, sacks);

	h->type = SW_ACK;
	memcpy(payload, sacks, n * sizeof(*sacks));
	sw_count(&hub->stats->acks, 1);
	return n * (uint32_t)sizeof(*sacks);
}

/* Update whether messages must wait for room in the control window. */
static void hold(struct sw_peer *p)
{
	p->held = sw_control_is_full(&p->control) ? SW_OWED_ORDERED : 0;
}

static __attribute__((noinline)) void build(struct sw_peer *p,
	enum sw_owed what, struct sw_header *h, uint8_t *payload)
{
	const struct sw_hub *hub = p->hub;

	h->payload_len = (uint16_t)hub->build(p, what, h);
	if (!sw_type_is_ordered(h->type))
		return;
	sw_control_put(&p->control, h, payload, hub->params, *hub->now_ns);
	hold(p);
	sw_peer_wake(p, *hub->now_ns + hub->params->retry_min);
}

/* Retransmit the next message of the window.  The window keeps it unencrypted,
 * because each packet number needs its own encryption. */
static __attribute__((noinline)) void build_again(
	struct sw_peer *p, struct sw_header *h, uint8_t *payload)
{
	const struct sw_message *m = sw_control_again(&p->control);

	sw_count(&p->hub->stats->control_again, 1);
	*h = m->head;
	memcpy(payload, m->payload, m->head.payload_len);
	if (sw_control_has_again(&p->control))
		p->owed |= 1u << SW_OWE_AGAIN;
}

void sw_peer_tx(struct sw_peer *p, uint8_t *payload, struct sw_tx_frame *out)
{
	uint32_t what = (uint32_t)__builtin_ctz(sw_peer_may_send(p));
	struct sw_header *h = &out->header;

	p->owed &= ~(1u << what | 1u << SW_OWE_TAKEN);
	*h = (struct sw_header){.session = p->far_id, .head_crc = p->seed};
	if (what == SW_OWE_ACK)
		h->payload_len = (uint16_t)build_ack(p, h, payload);
	else if (what == SW_OWE_AGAIN)
		build_again(p, h, payload);
	else
		build(p, what, h, payload);
	sw_flow_send_ctl(&p->flow, h);
	h->ctl.taken = (uint16_t)p->control.n_taken;
	if (p->seal)
		h->ctl.era = (uint16_t)p->seal->era;
	p->sent_ns = *p->hub->now_ns;
	sw_peer_build(p, out, payload, false);
	out->way = p->way;
	sw_peer_put_due(p);
}

bool sw_peer_on_message(struct sw_peer *p, const struct sw_header *h)
{
	const struct sw_hub *hub = p->hub;
	struct sw_control *c = &p->control;

	if (sw_control_on_ack(c, h, hub->params, *hub->now_ns, hub->stats)) {
		if (!sw_control_has_again(c))
			p->owed &= ~(1u << SW_OWE_AGAIN);
		hold(p);
		sw_peer_put_due(p);
	}
	if (!sw_type_is_ordered(h->type))
		return true;
	sw_peer_owe(p, SW_OWE_TAKEN);
	return sw_control_take(c, h, hub->stats);
}

/* --- timers --- */

void sw_peer_tick_flow(struct sw_peer *p)
{
	const struct sw_hub *hub = p->hub;
	uint64_t n_timeouts = sw_flow_n_timeouts(&p->flow);

	if (sw_flow_tick(&p->flow, *hub->now_ns, hub->fate, p))
		sw_peer_owe(p, SW_OWE_ACK);
	sw_count(&hub->stats->timeouts,
		sw_flow_n_timeouts(&p->flow) - n_timeouts);
}

void sw_peer_tick_alive(struct sw_peer *p)
{
	uint64_t now_ns = *p->hub->now_ns;
	uint64_t dead_after = p->hub->params->dead_after;
	uint64_t alive_at = p->sent_ns + dead_after / 10;

	if (alive_at <= now_ns) {
		sw_peer_owe(p, SW_OWE_KEEPALIVE);
		alive_at = now_ns + dead_after / 10;
	}
	sw_peer_wake(p, sw_min64(alive_at, p->rx_ns + dead_after));
}

void sw_peer_tick_control(struct sw_peer *p)
{
	if (sw_control_is_idle(&p->control))
		return;
	sw_peer_wake(p,
		sw_control_tick(&p->control, p->hub->params, *p->hub->now_ns));
	if (sw_control_has_again(&p->control))
		sw_peer_owe(p, SW_OWE_AGAIN);
}

enum sw_silence sw_peer_silence(const struct sw_peer *p)
{
	const struct sw_hub *hub = p->hub;

	if (*hub->now_ns - p->rx_ns >= hub->params->dead_after)
		return SW_SAYS_NOTHING;
	return sw_control_is_stuck(&p->control, hub->params, *hub->now_ns)
		       ? SW_ACKS_NOTHING
		       : SW_IS_HEARD;
}

/* --- the view for status and metrics --- */

/* Return the time in stalls of one cause, including a current stall. */
static uint64_t stalled_ns(const struct sw_peer *p, enum sw_stall stall)
{
	uint64_t now_ns = *p->hub->now_ns, ns = p->stalled_ns[stall];

	if (p->due_class == SW_CLASS_STALLED && p->stall == stall)
		ns += now_ns - sw_min64(now_ns, p->stalled_at_ns);
	return ns;
}

struct sw_peer_view sw_peer_look(const struct sw_peer *p)
{
	struct sw_flow_losses losses = sw_flow_losses(&p->flow);
	struct sw_flow_view v = sw_flow_view(&p->flow);

	return (struct sw_peer_view){.srtt_ns = v.srtt_ns,
		.least_ns = v.least_ns,
		.window_bytes = v.window,
		.granted_bytes = v.granted,
		.sent = losses.sent,
		.lost = losses.lost,
		.queued = losses.queued,
		.timeouts = sw_flow_n_timeouts(&p->flow),
		.numbered = losses.numbered,
		.missed = losses.missed,
		.lost_part = sw_losses_part(&p->losses, SW_LOSSES_SENT),
		.missed_part = sw_losses_part(&p->losses, SW_LOSSES_CAME),
		.marked_part = v.marked_part,
		.stalled_ns = {stalled_ns(p, SW_STALL_GRANT),
			stalled_ns(p, SW_STALL_WINDOW),
			stalled_ns(p, SW_STALL_FLIGHT)}};
}

void sw_peer_note_stall(struct sw_peer *p, bool begins)
{
	struct sw_stats *st = p->hub->stats;
	uint64_t now_ns = *p->hub->now_ns;
	struct {
		uint64_t *n, *ns;
	} counters[] = {
		[SW_STALL_GRANT] = {&st->stalls_grant, &st->stalled_grant_ns},
		[SW_STALL_WINDOW] = {&st->stalls_window,
			&st->stalled_window_ns},
		[SW_STALL_FLIGHT] = {
			&st->stalls_flight, &st->stalled_flight_ns}};

	if (begins) {
		p->stall = (uint8_t)sw_flow_stall(&p->flow);
		p->stalled_at_ns = now_ns;
		sw_count(counters[p->stall].n, 1);
		return;
	}
	sw_count(counters[p->stall].ns, now_ns - p->stalled_at_ns);
	p->stalled_ns[p->stall] += now_ns - p->stalled_at_ns;
}
