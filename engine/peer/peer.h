/* peer.h - what a server's session and a worker's link have in common.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A peer is the engine instance at the other end: its path, its flow, the
 * control frames that it is owed, and its liveness.  A session and a link embed
 * one.  Sets of the engine hold both by index (engine/sched/due.h); a server
 * keeps data in sets of its jobs.
 *
 * Thread: the lcore of the engine. */
#ifndef SW_ENGINE_PEER_PEER_H
#define SW_ENGINE_PEER_PEER_H

#include "engine/base/bitmap.h"
#include "engine/flow/flow.h"
#include "engine/flow/losses.h"
#include "engine/peer/control.h"
#include "engine/sched/due.h"

/* In place of a class, and a bit that no class has: a peer has data that it may
 * not send. */
enum { SW_CLASS_STALLED = 128 };

/* Control frames that a peer is owed; the lowest bit leaves first. */
enum sw_owed {
	SW_OWE_ERROR,
	SW_OWE_REQUEST, /* a worker's HELLO, JOIN or LEAVE */
	SW_OWE_AGAIN,   /* messages of the control stream to retransmit */
	SW_OWE_STATUS,
	SW_OWE_TUNE,
	SW_OWE_PATHS,
	SW_OWE_DECLARE,
	SW_OWE_DECLARED, /* the answer to DECLARE */
	SW_OWE_END,      /* END and CLOSE */
	SW_OWE_PROBE,
	SW_OWE_ANSWER,
	SW_OWE_QUERY,
	SW_OWE_ACK,
	SW_OWE_KEEPALIVE,
	SW_OWE_TAKEN, /* an acknowledgement; every control frame carries it */
	SW_N_OWED,
	/* Messages of the control stream, which wait while its window is full.
	 */
	SW_OWED_ORDERED = 1 << SW_OWE_STATUS | 1 << SW_OWE_TUNE |
			  1 << SW_OWE_PATHS | 1 << SW_OWE_DECLARE |
			  1 << SW_OWE_DECLARED | 1 << SW_OWE_END,
	SW_OWED_STREAM = SW_OWED_ORDERED | 1 << SW_OWE_AGAIN,
};

struct sw_peer;

/* An engine, as its peers see it.  Everything is borrowed. */
struct sw_hub {
	struct sw_due *due; /* peers that are owed control frames, by port */
	const struct sw_params *params;
	struct sw_stats *stats;
	const uint64_t *now_ns, *gap_ns;
	sw_fate_fn fate; /* takes the fate of data frames; ctx: the peer */
	/* Build control frame @what for a peer: write its payload where
	 * sw_peer_tx was told, and return its length; set the type.  @h has
	 * the session's id and seed. */
	uint32_t (*build)(
		struct sw_peer *p, enum sw_owed what, struct sw_header *h);
};

struct sw_peer {
	const struct sw_hub *hub;
	struct sw_path path;
	uint32_t index;       /* its index in its engine */
	uint32_t id;          /* session id in frames to us */
	uint32_t far_id;      /* session id in frames to the peer */
	uint32_t seed;        /* sw_session_seed, for headers both ways */
	struct sw_seal *seal; /* keys of the session; NULL: frames have CRCs */
	uint32_t owed;        /* bits of enum sw_owed */
	uint32_t held;        /* bits that wait for room in the window */
	/* The set of peers with data that it is in; SW_N_CLASSES: it has none;
	 * SW_CLASS_STALLED: it may not send it. */
	uint8_t due_class;
	bool has_crc;  /* data payloads in both directions have a CRC */
	uint8_t stall; /* why it may not (enum sw_stall), */
	uint64_t stalled_at_ns;           /* since then */
	uint64_t stalled_ns[SW_N_STALLS]; /* time in ended stalls, by cause */
	uint16_t way;        /* the UDP port of our endpoint that it uses */
	uint32_t turn_order; /* where the next turn among tensors begins */
	uint64_t rx_ns;
	/* When a control frame last left: lost data proves no life. */
	uint64_t sent_ns;
	uint64_t tick_at_ns; /* no timer except the flow's is due earlier */
	struct sw_flow flow;
	struct sw_control control;
	struct sw_losses losses;
};

/* sw_peer_run - return how many of the first frames form a run, at least 1:
 * data of one @type, session, seed, class, mark and source, each number at most
 * SW_PSN_SKIP above the last.  One lookup serves all.  The last one has the
 * newest credit.
 * sw_peer_run_of - do so; @is_raw: tags stand where the seeds would. */
static inline uint32_t sw_peer_run_of(const struct sw_rx_frame *f,
	const struct sw_header *h, uint32_t n, uint8_t type, bool is_raw)
{
	const struct sw_header *first = h, *end = h + n;
	const struct sw_path *from = &f->from;
	uint64_t last = h->psn;
	bool is_marked = f->is_marked;

	if (h->type != type)
		return 1;
	while (++f, ++h != end && h->type == type &&
			    h->session == first->session &&
			    h->class == first->class &&
			    (is_raw || h->head_crc == first->head_crc) &&
			    h->psn - last - 1 < SW_PSN_SKIP &&
			    f->is_marked == is_marked &&
			    sw_path_is_same(&f->from, from))
		last = h->psn;
	return (uint32_t)(h - first);
}

static inline uint32_t sw_peer_run(const struct sw_rx_frame *f,
	const struct sw_header *h, uint32_t n, uint8_t type)
{
	return sw_peer_run_of(f, h, n, type, false);
}

/* sw_frame_is_true - at an engine with keys: is the frame of the session with
 * @seal, or else with @seed, the peer's?  One with a tag must also be new; its
 * packet number is taken.  Counts what is not.
 * sw_peer_run_true - return how many of the first frames form a run and are
 * true; 0: the first is not.  It judges up to SW_RUN frames at once.  The magic
 * of a true frame becomes 0, so that nobody judges it again; the type of a
 * false one becomes 0. */
bool sw_frame_is_true(struct sw_seal *seal, uint32_t seed,
	const struct sw_rx_frame *f, struct sw_header *h, struct sw_stats *st);
uint32_t sw_peer_run_true(struct sw_peer *p, const struct sw_rx_frame *f,
	struct sw_header *h, uint32_t n, uint8_t type, struct sw_stats *st);

/* sw_peer_may_send - return the control frames that may leave to it now, as
 * bits of enum sw_owed. */
static inline uint32_t sw_peer_may_send(const struct sw_peer *p)
{
	return p->owed & ~p->held;
}

/* sw_peer_put_due - add the peer to the set of peers to which control frames
 * may leave, or remove it. */
static inline void sw_peer_put_due(const struct sw_peer *p)
{
	sw_due_put(&p->hub->due[p->path.port_i], SW_CLASS_CTL, p->index,
		sw_peer_may_send(p) != 0);
}

static inline void sw_peer_owe(struct sw_peer *p, enum sw_owed what)
{
	p->owed |= 1u << what;
	sw_peer_put_due(p);
}

/* sw_peer_note_stall - note that a stall begins or ends, and count it. */
__attribute__((cold)) void sw_peer_note_stall(struct sw_peer *p, bool begins);

/* sw_peer_offer - put the peer into the set in @data of its most urgent @class,
 * if it has credit for it, and take it out of its former set.  SW_N_CLASSES: it
 * has no data.  Returns whether the set changed. */
static inline bool sw_peer_offer(
	struct sw_peer *p, struct sw_due *data, uint32_t class)
{
	if (class < SW_N_CLASSES && !sw_flow_can_send(&p->flow, class))
		class = SW_CLASS_STALLED;
	if (class == p->due_class)
		return false;
	if (p->due_class < SW_N_CLASSES)
		sw_due_put(data, p->due_class, p->index, false);
	if (class < SW_N_CLASSES)
		sw_due_put(data, class, p->index, true);
	if ((class | p->due_class) & SW_CLASS_STALLED)
		sw_peer_note_stall(p, class == SW_CLASS_STALLED);
	p->due_class = (uint8_t) class;
	return true;
}

/* sw_peer_overdrew - count a data frame beyond the grant (sw_flow_within), and
 * tell the peer its grant. */
static inline void sw_peer_overdrew(struct sw_peer *p)
{
	sw_count(&p->hub->stats->rx_credit, 1);
	sw_peer_owe(p, SW_OWE_KEEPALIVE); /* with a grant */
}

/* sw_peer_of - return the peer whose flow @f is. */
static inline struct sw_peer *sw_peer_of(struct sw_flow *f)
{
	return (struct sw_peer *)((char *)f - offsetof(struct sw_peer, flow));
}

/* sw_peers_grant - give grants to waiting peers in turn, as long as there is
 * room, and owe each a frame that says so.  Call after a burst. */
void sw_peers_grant_some(struct sw_grants *g);

static inline void sw_peers_grant(struct sw_grants *g)
{
	if (sw_grants_are_awaited(g))
		sw_peers_grant_some(g);
}

/* sw_peer_on_ack - handle the payload of an ACK: say the fate of the frames
 * that it decides.
 * @is_newer  newer than all earlier control frames (sw_flow_is_newer) */
void sw_peer_on_ack(struct sw_peer *p, const struct sw_header *h,
	const uint8_t *payload, bool is_newer);

/* sw_peer_build - complete a frame, with CRCs or with a tag, as its type and
 * the session have it; a payload may be encrypted where it lies. */
void sw_peer_build(struct sw_peer *p, struct sw_tx_frame *out, void *payload,
	bool is_stable);

/* sw_peer_tx - send the most urgent control frame that may leave; there must be
 * one.  Every frame acknowledges.
 * @payload  where hub->build writes: room for SW_PAYLOAD_MAX bytes */
void sw_peer_tx(struct sw_peer *p, uint8_t *payload, struct sw_tx_frame *out);

/* sw_peer_begin - begin a new session, with an empty control stream. */
static inline void sw_peer_begin(struct sw_peer *p)
{
	sw_control_reset(&p->control);
	p->owed &= ~(1u << SW_OWE_AGAIN | 1u << SW_OWE_TAKEN);
	p->held = 0;
}

/* sw_peer_is_past - must @h, a control frame older than the newest one
 * (sw_flow_is_newer), be dropped?  A recent message is taken in spite of that:
 * its own number has its order. */
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

bool sw_peer_on_message(struct sw_peer *p, const struct sw_header *h);

static inline bool sw_peer_on_control(
	struct sw_peer *p, const struct sw_header *h)
{
	return !sw_peer_says_more(p, h) || sw_peer_on_message(p, h);
}

/* Timers are lazy: an event only brings the next look forward (wake), and a
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

/* sw_peer_tick_at - return when to look at its timers. */
static inline uint64_t sw_peer_tick_at(const struct sw_peer *p)
{
	uint64_t flow_at = sw_flow_tick_at(&p->flow);

	return flow_at < p->tick_at_ns ? flow_at : p->tick_at_ns;
}

/* sw_peer_tick_flow - run the timers of its flow: losses, an ACK that is due.
 * sw_peer_tick_alive - owe a sign of life if it is time.
 * sw_peer_tick_control - run the timer of the control stream.
 * sw_peer_silence - has nothing arrived for dead_after, or was nothing
 * acknowledged? */
void sw_peer_tick_flow(struct sw_peer *p);
void sw_peer_tick_alive(struct sw_peer *p);
void sw_peer_tick_control(struct sw_peer *p);
enum sw_silence sw_peer_silence(const struct sw_peer *p);

#endif
