/* peer.h - what a server's session and a worker's link have in common.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The engine instance at the other end: its path, its flow, the control frames
 * that it is owed, and whether it is alive.  A session and a link embed one.
 * Both stand, by index, in the sets of their engine (engine/sched/due.h): @due
 * is the engine's, by port; data of a server stands in sets of their jobs.
 *
 * Thread: the lcore of the engine.
 */
#ifndef SW_ENGINE_PEER_PEER_H
#define SW_ENGINE_PEER_PEER_H

#include "engine/base/bitmap.h"
#include "engine/flow/flow.h"
#include "engine/peer/control.h"
#include "engine/sched/due.h"

/* Data frames that one peer gets before the next one has its turn: what is
 * decided and looked up once for all of them. */
enum { SW_RUN = 4 };

/* Control frames that a peer is owed; the lowest bit leaves first. */
enum sw_owed {
	SW_OWE_ERROR,
	SW_OWE_REQUEST, /* a worker's HELLO, JOIN or LEAVE */
	SW_OWE_AGAIN,   /* messages of the control stream */
	SW_OWE_STATUS,
	SW_OWE_TUNE,
	SW_OWE_DECLARE,
	SW_OWE_DECLARED, /* keys, then what is said of them */
	SW_OWE_END,      /* END and CLOSE */
	SW_OWE_ANSWER,
	SW_OWE_QUERY,
	SW_OWE_ACK,
	SW_OWE_KEEPALIVE,
	SW_OWE_TAKEN, /* an acknowledgement; every control frame carries it */
	SW_N_OWED,
	/* Messages of the control stream, which wait while its window is full.
	 */
	SW_OWED_ORDERED = 1 << SW_OWE_STATUS | 1 << SW_OWE_TUNE |
			  1 << SW_OWE_DECLARE | 1 << SW_OWE_DECLARED |
			  1 << SW_OWE_END,
	SW_OWED_STREAM = SW_OWED_ORDERED | 1 << SW_OWE_AGAIN,
};

struct sw_peer {
	struct sw_path path;
	uint32_t index;    /* among those of its engine */
	uint32_t id;       /* of the session, as frames to us have it */
	uint32_t far_id;   /* as frames to the peer have it */
	uint32_t seed;     /* sw_session_seed, for headers both ways */
	uint32_t owed;     /* bits of enum sw_owed */
	uint32_t held;     /* bits that wait for room in the window */
	uint8_t due_class; /* set in which it stands with data, or 8: in none */
	bool has_crc;      /* data payloads to it and from it */
	uint16_t way;      /* which of our endpoint's UDP ports */
	uint32_t turn_order; /* where the next data frame in turn goes on */
	uint64_t rx_ns;
	uint64_t sent_ns;    /* control: data that is lost proves no life */
	uint64_t tick_at_ns; /* no timer is due before, but its flow's */
	struct sw_flow flow;
	struct sw_control control;
};

/* sw_peer_run - of @n frames how many, from the first on, are data of @type, of
 * one session, seed and class, from one place, each of a higher number than the
 * one before, by SW_PSN_SKIP at most: what is looked up for the first holds for
 * all, and what the last one says of credit is the newest.  1: the first is
 * none of these. */
static inline uint32_t sw_peer_run(const struct sw_rx_frame *f,
	const struct sw_header *h, uint32_t n, uint8_t type)
{
	uint32_t i = 1;

	if (h->type != type)
		return 1;
	while (i < n && h[i].type == type && h[i].session == h->session &&
		h[i].class == h->class && h[i].head_crc == h->head_crc &&
		h[i].psn - h[i - 1].psn - 1 < SW_PSN_SKIP &&
		!memcmp(&f[i].from, &f->from, sizeof(f->from)))
		i++;
	return i;
}

/* sw_peer_may_send - return the control frames that may leave to it now, as
 * bits of enum sw_owed. */
static inline uint32_t sw_peer_may_send(const struct sw_peer *p)
{
	return p->owed & ~p->held;
}

/* sw_peer_put_due - add it to the set of peers to which control frames may
 * leave, or remove it. */
static inline void sw_peer_put_due(const struct sw_peer *p, struct sw_due *due)
{
	sw_due_put(&due[p->path.port_i], SW_CLASS_CTL, p->index,
		sw_peer_may_send(p) != 0);
}

static inline void sw_peer_owe(
	struct sw_peer *p, struct sw_due *due, enum sw_owed what)
{
	p->owed |= 1u << what;
	sw_peer_put_due(p, due);
}

/* sw_peer_take_owed - clear and return the most urgent bit of what may leave:
 * there is one.  Every frame acknowledges, so SW_OWE_TAKEN goes with it.  Call
 * sw_peer_put_due when the frame has left. */
static inline enum sw_owed sw_peer_take_owed(struct sw_peer *p)
{
	uint32_t what = (uint32_t)__builtin_ctz(sw_peer_may_send(p));

	p->owed &= ~(1u << what | 1u << SW_OWE_TAKEN);
	return what;
}

/* sw_peer_offer - the most urgent data for it is of @class (SW_N_CLASSES: there
 * is none): it stands in that set of @data, if it has credit for it.  Returns
 * whether that is a change. */
static inline bool sw_peer_offer(
	struct sw_peer *p, struct sw_due *data, uint32_t class)
{
	if (class < SW_N_CLASSES && !sw_flow_can_send(&p->flow, class))
		class = SW_N_CLASSES;
	if (class == p->due_class)
		return false;
	if (p->due_class < SW_N_CLASSES)
		sw_due_put(data, p->due_class, p->index, false);
	if (class < SW_N_CLASSES)
		sw_due_put(data, class, p->index, true);
	p->due_class = (uint8_t) class;
	return true;
}

/* sw_peer_turn - the tensor of which a peer in its turn gets a frame: the next
 * one behind its last turn, of @ready, which is not empty. */
static inline uint32_t sw_peer_turn(
	struct sw_peer *p, const struct sw_bitmap *ready)
{
	uint32_t order = sw_bitmap_next(ready, p->turn_order);

	if (order == SW_BITMAP_NONE)
		order = sw_bitmap_first(ready);
	p->turn_order = order + 1;
	return order;
}

/* sw_peer_overdrew - a data frame was sent beyond what was granted
 * (sw_flow_within): it is counted, and the peer told what it is granted. */
static inline void sw_peer_overdrew(
	struct sw_peer *p, struct sw_due *due, struct sw_stats *st)
{
	sw_count(&st->rx_credit, 1);
	sw_peer_owe(p, due, SW_OWE_KEEPALIVE); /* with a grant */
}

/* sw_peers_grant - peers that wait for a grant get one in turn, as long as
 * there are some: each is owed a frame that says so.  After a burst. */
void sw_peers_grant_some(struct sw_grants *g, struct sw_due *due);

static inline void sw_peers_grant(struct sw_grants *g, struct sw_due *due)
{
	if (sw_grants_are_awaited(g))
		sw_peers_grant_some(g, due);
}

/* sw_peer_on_ack - @payload of an ACK: @fate is called for each frame.
 * @is_newer: than all control frames before it (sw_flow_is_newer). */
void sw_peer_on_ack(struct sw_peer *p, const struct sw_header *h,
	const uint8_t *payload, bool is_newer, uint64_t now_ns, sw_fate_fn fate,
	void *ctx, struct sw_stats *st);

/* sw_peer_build_ack, sw_peer_build_keepalive - fill @h and @payload; return
 * its bytes. */
uint32_t sw_peer_build_ack(struct sw_peer *p, uint64_t now_ns, uint64_t gap_ns,
	struct sw_header *h, uint8_t *payload, struct sw_stats *st);

/* sw_peer_send - send the control frame whose header @out has.
 * sw_peer_send_message - send it as the next message of the control stream.
 * sw_peer_send_again - send the next message of the window once more. */
void sw_peer_send(struct sw_peer *p, const uint8_t *payload, uint64_t now_ns,
	struct sw_tx_frame *out, struct sw_stats *st);
void sw_peer_send_message(struct sw_peer *p, const uint8_t *payload,
	const struct sw_params *params, uint64_t now_ns,
	struct sw_tx_frame *out, struct sw_stats *st);
void sw_peer_send_again(struct sw_peer *p, struct sw_due *due, uint64_t now_ns,
	struct sw_tx_frame *out, struct sw_stats *st);

/* sw_peer_begin - a new session: its control stream is empty. */
static inline void sw_peer_begin(struct sw_peer *p)
{
	sw_control_reset(&p->control);
	p->owed &= ~(1u << SW_OWE_AGAIN | 1u << SW_OWE_TAKEN);
	p->held = 0;
}

/* sw_peer_is_past - must @h, a control frame that newer ones have overtaken
 * (sw_flow_is_newer), be dropped?  A recent message is taken all the same: its
 * own number has its order. */
static inline bool sw_peer_is_past(
	const struct sw_peer *p, const struct sw_header *h)
{
	return !sw_type_is_ordered(h->type) || !sw_flow_is_recent(&p->flow, h);
}

/* sw_peer_says_more - does @h, a control frame of a session that is not past,
 * carry a message or a new acknowledgement?
 * sw_peer_on_message - if so, take the acknowledgement.  Returns false if @h is
 * a message, but not the next one: drop it.
 * sw_peer_on_control - do both. */
static inline bool sw_peer_says_more(
	const struct sw_peer *p, const struct sw_header *h)
{
	return h->ctl.taken != (uint16_t)p->control.n_acked ||
	       sw_type_is_ordered(h->type);
}

bool sw_peer_on_message(struct sw_peer *p, struct sw_due *due,
	const struct sw_header *h, const struct sw_params *params,
	uint64_t now_ns, struct sw_stats *st);

static inline bool sw_peer_on_control(struct sw_peer *p, struct sw_due *due,
	const struct sw_header *h, const struct sw_params *params,
	uint64_t now_ns, struct sw_stats *st)
{
	return !sw_peer_says_more(p, h) ||
	       sw_peer_on_message(p, due, h, params, now_ns, st);
}

/* sw_peer_why_dead - return "silent" if nothing has arrived for
 * @params->dead_after, else NULL; sw_peer_tick_control may know another reason.
 */
static inline const char *sw_peer_why_dead(const struct sw_peer *p,
	const struct sw_params *params, uint64_t now_ns)
{
	return now_ns - p->rx_ns >= params->dead_after ? "silent" : NULL;
}

/* Timers are lazy: what happens only brings the next look forward (wake), and a
 * look finds out when the next one is, beginning with never (sleep). */

static inline void sw_peer_sleep(struct sw_peer *p)
{
	p->tick_at_ns = UINT64_MAX;
}

static inline void sw_peer_wake(struct sw_peer *p, uint64_t at_ns)
{
	if (at_ns < p->tick_at_ns)
		p->tick_at_ns = at_ns;
}

/* sw_peer_tick_at - when its timers are to be looked at. */
static inline uint64_t sw_peer_tick_at(const struct sw_peer *p)
{
	uint64_t flow_at = sw_flow_tick_at(&p->flow);

	return flow_at < p->tick_at_ns ? flow_at : p->tick_at_ns;
}

/* sw_peer_tick_flow - timers of its flow: losses, an ACK that is due.
 * sw_peer_tick_control - run the timer of the control stream.  Returns why the
 * peer is dead (it acknowledged nothing for dead_after), or NULL.
 * sw_peer_tick_window - the same, if the window is not empty.
 * sw_peer_tick_alive - a sign of life. */
void sw_peer_tick_flow(struct sw_peer *p, struct sw_due *due, uint64_t now_ns,
	sw_fate_fn fate, void *ctx, struct sw_stats *st);
const char *sw_peer_tick_window(struct sw_peer *p, struct sw_due *due,
	const struct sw_params *params, uint64_t now_ns);
void sw_peer_tick_alive(struct sw_peer *p, struct sw_due *due,
	const struct sw_params *params, uint64_t now_ns);

static inline const char *sw_peer_tick_control(struct sw_peer *p,
	struct sw_due *due, const struct sw_params *params, uint64_t now_ns)
{
	return sw_control_is_idle(&p->control)
		       ? NULL
		       : sw_peer_tick_window(p, due, params, now_ns);
}

#endif
