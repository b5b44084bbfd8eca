/* peer.h - the common part of a server's session and a worker's link.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A peer is the engine instance at the other end: its path, its flow, the
 * control frames owed to it, and its liveness.  Each session and each link
 * embeds a peer.  The engine keeps peers in sets by index (engine/sched/due.h);
 * a server's peers with data are in the sets of their jobs.
 *
 * Thread: the lcore of the engine. */
#ifndef SW_ENGINE_PEER_PEER_H
#define SW_ENGINE_PEER_PEER_H

#include "engine/base/bitmap.h"
#include "engine/flow/flow.h"
#include "engine/flow/losses.h"
#include "engine/peer/control.h"
#include "engine/sched/due.h"

/* In place of a class, with a bit that no class has: data for the peer waits,
 * but may not be sent. */
enum { SW_CLASS_STALLED = 128 };

/* Control frames owed to a peer; the lowest bit is sent first. */
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
	SW_OWE_TAKEN, /* an acknowledgement alone; any other control frame
			 clears it */
	SW_N_OWED,
	/* Messages of the control stream, which wait while its window is full.
	 */
	SW_OWED_ORDERED = 1 << SW_OWE_STATUS | 1 << SW_OWE_TUNE |
			  1 << SW_OWE_PATHS | 1 << SW_OWE_DECLARE |
			  1 << SW_OWE_DECLARED | 1 << SW_OWE_END,
};

struct sw_peer;

/* The engine, as its peers see it.  All pointers are borrowed. */
struct sw_hub {
	struct sw_due *due; /* peers with control frames to send, by port */
	const struct sw_params *params;
	struct sw_stats *stats;
	const uint64_t *now_ns, *gap_ns;
	sw_fate_fn fate; /* called with data frames' fate; ctx: the peer */
	/* Build control frame @what for a peer: set the type in @h, write the
	 * payload where the caller of sw_peer_tx wants it, and return its
	 * length.  @h has the session's id and seed. */
	uint32_t (*build)(
		struct sw_peer *p, enum sw_owed what, struct sw_header *h);
};

struct sw_peer {
	const struct sw_hub *hub;
	struct sw_path path;
	uint32_t index;  /* its index in its engine */
	uint32_t id;     /* session id in frames from the peer */
	uint32_t far_id; /* session id in frames to the peer */
	uint32_t seed;   /* sw_session_seed, for headers in both directions */
	struct sw_seal *seal; /* keys of the session; NULL: frames have CRCs */
	uint32_t owed;        /* bits of enum sw_owed */
	uint32_t held; /* bits that wait for room in the control window */
	/* The class of the set of peers with data that holds the peer;
	 * SW_N_CLASSES: no data; SW_CLASS_STALLED: data that may not be sent.
	 */
	uint8_t due_class;
	bool has_crc;  /* data payloads in both directions have a CRC */
	uint8_t stall; /* why data may not be sent (enum sw_stall) */
	uint64_t stalled_at_ns;           /* start of that stall */
	uint64_t stalled_ns[SW_N_STALLS]; /* time in ended stalls, by cause */
	uint16_t way; /* the UDP port of the local endpoint that it uses */
	uint32_t turn_order; /* where the next turn among tensors starts */
	uint64_t rx_ns;
	/* When the last control frame was sent.  Data does not count: a lost
	 * data frame proves no liveness. */
	uint64_t sent_ns;
	uint64_t tick_at_ns; /* a lower bound of all timers except the flow's */
	struct sw_flow flow;
	struct sw_control control;
	struct sw_losses losses;
};

/* sw_peer_run - return how many of the first frames form a run, at least 1:
 * data of one @type, session, seed, class, mark and source, each number at most
 * SW_PSN_SKIP above the previous.  One lookup serves the whole run.  The last
 * frame has the newest credit.
 * sw_peer_run_of - do so; @is_raw: the headers may have tags in place of seeds.
 */
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

/* sw_frame_is_true - at an engine with keys, return whether the frame is from
 * the peer: by its tag if the session has @seal, else by its CRC and @seed.  A
 * frame with a tag must also be new; marks its packet number as taken.  Counts
 * a false frame.
 * sw_peer_run_true - return how many of the first frames form a run and are
 * true; 0: the first frame is false.  Checks up to SW_RUN frames at once.  Sets
 * the magic of a true frame to 0, so that no later call checks it again, and
 * the type of a false frame to 0. */
bool sw_frame_is_true(struct sw_seal *seal, uint32_t seed,
	const struct sw_rx_frame *f, struct sw_header *h, struct sw_stats *st);
uint32_t sw_peer_run_true(struct sw_peer *p, const struct sw_rx_frame *f,
	struct sw_header *h, uint32_t n, uint8_t type, struct sw_stats *st);

/* sw_peer_may_send - return the control frames that may be sent to the peer
 * now, as bits of enum sw_owed. */
static inline uint32_t sw_peer_may_send(const struct sw_peer *p)
{
	return p->owed & ~p->held;
}

/* sw_peer_put_due - add the peer to the set of peers with control frames to
 * send, or remove it. */
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

/* sw_peer_offer - move the peer into the set of its most urgent @class in
 * @data, if it has credit for that class, and out of its former set.
 * SW_N_CLASSES: no data.  Returns whether the set changed. */
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

/* sw_peer_of - return the peer that embeds flow @f. */
static inline struct sw_peer *sw_peer_of(struct sw_flow *f)
{
	return (struct sw_peer *)((char *)f - offsetof(struct sw_peer, flow));
}

/* sw_peers_grant - give grants to waiting peers in turn, as long as there is
 * room, and owe each a frame that carries its grant.  Call after a burst. */
void sw_peers_grant_some(struct sw_grants *g);

static inline void sw_peers_grant(struct sw_grants *g)
{
	if (sw_grants_are_awaited(g))
		sw_peers_grant_some(g);
}

/* sw_peer_on_ack - handle the payload of an ACK: report the fate (hub->fate) of
 * the frames that it acknowledges or shows lost.
 * @is_newer  the ACK is newer than all earlier control frames
 *            (sw_flow_is_newer) */
void sw_peer_on_ack(struct sw_peer *p, const struct sw_header *h,
	const uint8_t *payload, bool is_newer);

/* sw_peer_build - complete a frame with CRCs or a tag, depending on its type
 * and the session.  May encrypt the payload in place. */
void sw_peer_build(struct sw_peer *p, struct sw_tx_frame *out, void *payload,
	bool is_stable);

/* sw_peer_tx - build the most urgent control frame that may be sent; there must
 * be one.  Every such frame carries an acknowledgement.
 * @payload  where hub->build writes; must have SW_PAYLOAD_MAX bytes */
void sw_peer_tx(struct sw_peer *p, uint8_t *payload, struct sw_tx_frame *out);

/* sw_peer_begin - begin a new session, with an empty control stream. */
static inline void sw_peer_begin(struct sw_peer *p)
{
	sw_control_reset(&p->control);
	p->owed &= ~(1u << SW_OWE_AGAIN | 1u << SW_OWE_TAKEN);
	p->held = 0;
}

/* sw_peer_is_past - return whether to drop @h, a control frame older than the
 * newest (sw_flow_is_newer).  A recent message counts nevertheless: its message
 * number gives its order. */
static inline bool sw_peer_is_past(
	const struct sw_peer *p, const struct sw_header *h)
{
	return !sw_type_is_ordered(h->type) || !sw_flow_is_recent(&p->flow, h);
}

/* sw_peer_says_more - return whether @h, a control frame that is not past,
 * carries a message or a new acknowledgement.
 * sw_peer_on_message - handle such a frame's acknowledgement.  Returns false if
 * the caller must drop @h: a message, but not the next one.
 * sw_peer_on_control - check, then handle; returns false if the caller must
 * drop @h. */
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

/* Timers are lazy: an event only moves the next tick forward (wake).  A tick
 * computes the time of the next tick, starting from never (sleep). */

static inline void sw_peer_sleep(struct sw_peer *p)
{
	p->tick_at_ns = UINT64_MAX;
}

static inline void sw_peer_wake(struct sw_peer *p, uint64_t at_ns)
{
	if (at_ns < p->tick_at_ns)
		p->tick_at_ns = at_ns;
}

/* sw_peer_tick_at - return when to run the peer's timers. */
static inline uint64_t sw_peer_tick_at(const struct sw_peer *p)
{
	uint64_t flow_at = sw_flow_tick_at(&p->flow);

	return flow_at < p->tick_at_ns ? flow_at : p->tick_at_ns;
}

/* sw_peer_tick_flow - run the flow's timers: losses, a due ACK.
 * sw_peer_tick_alive - owe a KEEPALIVE if one is due.
 * sw_peer_tick_control - run the timer of the control stream.
 * sw_peer_silence - return whether nothing has arrived for dead_after, or
 * nothing was acknowledged. */
void sw_peer_tick_flow(struct sw_peer *p);
void sw_peer_tick_alive(struct sw_peer *p);
void sw_peer_tick_control(struct sw_peer *p);
enum sw_silence sw_peer_silence(const struct sw_peer *p);

#endif
