/* flow.h - packet numbers, SACK, RTT, loss and credit between two lcores.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A flow joins one worker lcore and one server lcore, and is the same at both
 * ends. It delivers frames at least once, in any order. The cell interprets the
 * frames and does not rely on a correct flow.
 *
 * Numbers. Each class has a space of packet numbers: 48 bits, from 1, never
 * reused; a retransmission gets a new number. Each space has its own SACK, RTT
 * and loss detection, because a switch that honours DSCP reorders between
 * classes. Control frames have a ninth space, which is not acknowledged. A flow
 * believes a number far ahead only when a second one follows it. A single
 * forged frame therefore cannot invalidate the peer's true frames.
 *
 * Credit. Every frame carries two cumulative counts in quanta (wire.h):
 * consumed, which includes lost frames so that losses do not leak credit, and
 * grant. grant = highest consumed seen + window. The receiver holds nothing
 * back, because it folds each contribution on arrival. If grants were lost, a
 * sender with nothing in flight may send one frame without credit to ask for
 * new ones. A sender whose peer knows its backlog waits longer before it asks.
 * The receiver polices a sender that exceeds its grant.
 *
 * Incast. The flows of a receiver share one budget of grants, so that their
 * bursts fit the queue in front of the receiver. A flow receives its share of
 * the budget for its peer's backlog, in whole frames; when the budget is used
 * up, flows wait in turn. Each PUSH tells the server the backlog behind it, and
 * an idle flow may begin with SW_FLOW_START quanta. A worker knows which
 * results to expect and grants only these. It sets aside one frame of budget
 * for each server that holds none, because other members may delay the expected
 * results.
 *
 * Crowds. The queue may be shorter than the budget, or lie elsewhere on the
 * path of one job. When many flows of a job lose frames, a ceiling (ceiling.h)
 * limits the sum of their grants. These flows then wait in the crowd's queue,
 * and a flow with a backlog begins with no grant.
 */
#ifndef SW_ENGINE_FLOW_FLOW_H
#define SW_ENGINE_FLOW_FLOW_H

#include "engine/base/histogram.h"
#include "engine/base/params.h"
#include "engine/flow/congestion.h"
#include "engine/flow/crowd.h"
#include "engine/wire/wire.h"

enum {
	SW_SENT_RING = 256, /* frames in flight per space */
	SW_SENT_FEW = 16,   /* entries with which a ring begins */
	SW_CAME_WORDS = 2 * SW_SACK_WORDS, /* ring of received numbers */
	/* Largest gap that one frame may open. It leaves half of a SACK for
	 * numbers that were sent, should that frame be forged. */
	SW_PSN_SKIP = SW_SACK_BITS / 2,
	SW_CREDIT_MAX = 1 << 20, /* quanta; ignore a larger grant */
	SW_CREDIT_SLACK = 1024,  /* quanta accepted beyond the grant */
	SW_FLOW_START = 256,     /* quanta that an idle sender may begin with */
	SW_FLOW_HASTE = 1024,    /* flows with this share get grants at once */
};

/* The budget of grants of one receiver, which its flows share. */
struct sw_grants {
	uint32_t start;  /* quanta that each flow may hold outside the budget */
	uint32_t whole;  /* quanta that fit the queue */
	uint32_t total;  /* quanta that may be granted and not consumed */
	uint32_t used;   /* quanta granted and not consumed */
	uint32_t n_idle; /* flows that hold nothing */
	uint64_t windows; /* sum of the windows of flows with a backlog */
	struct sw_queue turns;
	struct sw_crowd *crowds; /* crowds with a ceiling */
};

/* sw_grants_init - set the budget to @bytes, in whole frames of the largest
 * payload, but at least one. */
static inline void sw_grants_init(struct sw_grants *g, uint64_t bytes)
{
	uint64_t total = bytes / SW_QUANTUM_WIRE;
	uint64_t frame = sw_quanta(SW_PAYLOAD_MAX);

	g->whole = (uint32_t)(total > frame ? total - total % frame : frame);
	g->total = g->whole;
}

/* sw_grants_divide - set the quanta that each of @n flows may begin with. If
 * SW_FLOW_START for each exceeds the budget, the flows divide half of the
 * budget to begin with and share the other half. */
static inline void sw_grants_divide(struct sw_grants *g, uint32_t n)
{
	uint32_t start = g->whole / 2 / n;

	g->start = SW_FLOW_START;
	g->total = g->whole;
	if (n * SW_FLOW_START <= g->whole)
		return;
	g->start = start > 0 ? start : 1;
	g->total = n < g->whole ? g->whole - n * g->start : 1;
}

struct sw_space {
	/* sending */
	uint64_t next_psn;
	uint64_t oldest;   /* no lower entry is open */
	uint64_t lost_psn; /* the number declared lost last; 0: none */
	uint64_t largest_acked;
	uint64_t ack_psn; /* number of the newest ACK with a block for this
			     space */
	uint64_t srtt_ns, rttvar_ns; /* 0: no sample yet */
	uint64_t longest_ns;         /* longest recent sample */
	uint64_t fall_psn; /* longest_ns falls when this is acknowledged */
	uint32_t backoff;  /* doublings of the RTO */
	uint32_t n_open;
	/* receiving */
	uint64_t largest;
	uint64_t far;                 /* a number not yet believed */
	uint64_t came[SW_CAME_WORDS]; /* received numbers up to largest */
	uint64_t t_largest_ns;
	uint64_t t_unacked_ns;  /* arrival of the first frame not yet ACKed */
	uint64_t t_answered_ns; /* time of the last answer that acknowledged
				   frames */
	uint32_t n_unacked;
	bool is_ack_urgent;
	uint16_t n_marked; /* frames received with a mark */
	uint16_t n_told;   /* our marked frames, as the peer last said */
	/* Ring of the frames sent last, by number: SW_SENT_FEW to SW_SENT_RING
	 * entries, a power of two. It grows when more than @most frames, half
	 * of its size, are in flight, so it knows lost frames for a while.
	 * Until the first frame, the ring has one empty entry. */
	uint32_t mask, most; /* mask: one less than its entries */
	struct sw_sent *sent;
};

/* sw_space_sent - return the entry for number @psn. It may hold a number that
 * differs from @psn by a multiple of the ring's size. */
static inline struct sw_sent *sw_space_sent(
	const struct sw_space *s, uint64_t psn)
{
	return &s->sent[psn & s->mask];
}

/* Received numbers are bits of a ring, newest first, so that the next number in
 * order moves no other bit. */
static inline uint64_t *sw_space_word(struct sw_space *s, uint64_t psn)
{
	return &s->came[~psn / 64 % SW_CAME_WORDS];
}

static inline uint64_t sw_space_bit(uint64_t psn)
{
	return 1ULL << (~psn % 64);
}

struct sw_flow {
	const struct sw_params *params;
	uint64_t consumed, granted; /* quanta that we send */
	uint64_t returned;          /* part of consumed that was never sent */
	uint64_t rested;            /* consumed, at the last sw_flow_rest */
	uint64_t peer_consumed;     /* quanta that we receive */
	uint64_t given;             /* quanta; our last grant */
	uint64_t n_since_given;     /* quanta received since then */
	uint32_t window;            /* quanta; our largest grant */
	struct sw_grants *grants;   /* budget that it shares; NULL: none */
	struct sw_crowd *crowd;     /* the flows of its job; NULL: none */
	struct sw_flow *next;       /* next flow of the crowd */
	struct sw_queued turn;      /* its wait for a grant */
	uint32_t frame_bytes;       /* payload of a full frame */
	uint32_t frame;             /* its quanta */
	uint32_t backlog;           /* quanta that the peer still has to send */
	uint32_t held;              /* our part of grants->used */
	uint32_t lossy_period;      /* last period in which frames were lost */
	uint32_t ack_every;
	uint64_t rx_psn[SW_N_SPACES]; /* highest number believed, also of
					 rejected frames */
	uint64_t ctl_next;
	uint64_t peer_gap_ns;
	uint64_t srtt_ns; /* smoothed over the samples of all spaces */
	uint64_t n_timeouts;
	uint64_t n_missed;    /* the peer's frames that have not arrived */
	uint64_t blocked_ns;  /* when the flow became blocked; 0: it is not */
	uint64_t tick_at_ns;  /* time of the first timer */
	uint8_t open_mask;    /* spaces with open entries */
	uint8_t unacked_mask; /* spaces with frames to acknowledge */
	bool is_patient;      /* the peer knows our backlog */
	bool may_ask;         /* may send a frame without credit */
	bool is_asked;        /* the peer wants an ACK at once */
	bool is_far;          /* frames leave the machine */
	bool is_crowded;      /* a ceiling holds for its grants */
	struct sw_congestion congestion;
	struct sw_fan fan;
	struct sw_space space[SW_N_CLASSES];
	uint64_t far_psn[SW_N_SPACES]; /* not yet believed, if above rx_psn */
	/* Round-trip times of all flows of an engine; NULL: not counted. */
	struct sw_histogram *rtts;
	/* Each ring begins in few and moves to many when it grows, so a flow
	 * touches only the memory that it needs. */
	struct sw_sent none; /* the ring of a space before its first frame */
	struct sw_sent few[SW_N_CLASSES][SW_SENT_FEW];
	struct sw_sent many[SW_N_CLASSES][SW_SENT_RING];
};

enum sw_fate { SW_ACKED, SW_LOST };

/* Callback: take the fate of @n frames, in the order in which they were sent.
 */
typedef void (*sw_fate_fn)(void *ctx, const struct sw_sent *const *sent,
	uint32_t n, enum sw_fate fate);

/* sw_flow_init - initialize a flow.
 * @params  borrowed
 * @grants  shared budget, borrowed until sw_flow_fini, which returns the part
 *          that the flow holds; NULL: none
 * @is_far  frames leave the machine, so a window limits the frames in flight
 * @n_ctl   control frames already numbered elsewhere */
void sw_flow_init(struct sw_flow *f, const struct sw_params *params,
	struct sw_grants *grants, bool is_far, uint64_t n_ctl);

/* sw_flow_restart - reset the flow for a peer that starts anew. Our control
 * frames keep counting, so that late frames are recognized. */
void sw_flow_restart(struct sw_flow *f);

/* sw_flow_note_rtts - count round-trip times in the borrowed @h: one sample per
 * round trip, and each sample above the longest recent one. */
static inline void sw_flow_note_rtts(struct sw_flow *f, struct sw_histogram *h)
{
	f->rtts = h;
}

void sw_flow_fini(struct sw_flow *f);

/* sw_flow_set_window - grant at most @bytes from now on; earlier grants remain
 * valid. @bytes must not exceed the params' window. */
void sw_flow_set_window(struct sw_flow *f, uint32_t bytes);

/* sw_flow_refit - adapt the flow when the payload of the params has changed. */
void sw_flow_refit(struct sw_flow *f);

/* sw_flow_can_send - return whether @class has credit and a free packet number.
 * Without credit, one frame may leave when none is in flight and grants seem
 * lost: it carries consumed, and the peer answers with new grants. */
static inline bool sw_flow_can_send(const struct sw_flow *f, uint32_t class)
{
	const struct sw_space *s = &f->space[class];

	return ((f->consumed < f->granted &&
			f->consumed < f->congestion.limit) ||
		       (f->may_ask && !f->open_mask &&
			       f->consumed >= f->granted &&
			       (f->granted || f->is_patient))) &&
	       s->next_psn - s->oldest < SW_SENT_RING;
}

/* Causes of a stall: a sender has data that it may not send. */
enum sw_stall {
	SW_STALL_GRANT,  /* the grant is used up */
	SW_STALL_WINDOW, /* the congestion window is full */
	SW_STALL_FLIGHT, /* the ring of frames in flight is full */
	SW_N_STALLS,
};

/* sw_flow_stall - return why sw_flow_can_send has returned false. */
static inline enum sw_stall sw_flow_stall(const struct sw_flow *f)
{
	if (f->consumed >= f->granted)
		return SW_STALL_GRANT;
	return f->consumed >= f->congestion.limit ? SW_STALL_WINDOW
						  : SW_STALL_FLIGHT;
}

/* sw_flow_grow - grow the ring of @class until it has room for @max more frames
 * in flight, or has its full size. Returns how many more frames fit, at most
 * @max. */
uint32_t sw_flow_grow(struct sw_flow *f, uint32_t class, uint32_t max);

/* sw_flow_room - return how many of @max full frames of @class may be sent, and
 * make room for them in the ring. Call it only if sw_flow_can_send. */
static inline uint32_t sw_flow_room(
	struct sw_flow *f, uint32_t class, uint32_t max)
{
	const struct sw_space *s = &f->space[class];
	uint64_t ring = s->oldest + s->most - s->next_psn, n = 1;
	uint64_t limit = f->granted < f->congestion.limit ? f->granted
							  : f->congestion.limit;
	uint64_t at = f->consumed + f->frame;

	if (ring < max)
		max = sw_flow_grow(f, class, max);
	if (f->consumed + (max - 1) * (uint64_t)f->frame < limit)
		return max;
	for (; n < max && at < limit; at += f->frame)
		n++;
	return (uint32_t)n;
}

/* sw_flow_block - note that data waits. If the flow has no credit and no frame
 * in flight that could bring some, sw_flow_tick lets a frame ask for credit
 * after rto_min. Returns whether this call began that wait. */
bool sw_flow_block(struct sw_flow *f, uint64_t now_ns);

/* sw_flow_takes_turns - return whether the flow sends in turn with other flows
 * of its crowd (fanout.h). */
static inline bool sw_flow_takes_turns(const struct sw_flow *f)
{
	return f->congestion.turn != UINT64_MAX;
}

/* sw_flow_may_ask - return whether a frame may leave without credit. */
static inline bool sw_flow_may_ask(const struct sw_flow *f)
{
	return f->may_ask;
}

/* sw_flow_is_paced - return whether sw_flow_tick may release frames. */
static inline bool sw_flow_is_paced(const struct sw_flow *f)
{
	return f->congestion.rate != 0;
}

/* sw_flow_wait - let the flow wait before it asks for credit, because the peer
 * knows its backlog and grants credit in turn. */
static inline void sw_flow_wait(struct sw_flow *f)
{
	f->is_patient = true;
	f->may_ask = false;
}

/* sw_flow_may_rest - return whether frames were sent since sw_flow_rest and
 * none is in flight. */
static inline bool sw_flow_may_rest(const struct sw_flow *f)
{
	return !f->open_mask && f->consumed != f->rested;
}

/* sw_flow_rest - return the unused grant to the peer with the next control
 * frame, as if it were consumed; called when nothing is left to send. */
void sw_flow_rest(struct sw_flow *f);

/* sw_flow_is_spent - return whether the peer has used or returned its whole
 * grant. */
static inline bool sw_flow_is_spent(const struct sw_flow *f)
{
	return f->given && f->given <= f->peer_consumed;
}

/* sw_flow_give - update the peer's grant; called before data frames are sent,
 * once per burst. */
void sw_flow_give(struct sw_flow *f);

/* sw_flow_frame - return the quanta of a full frame. */
static inline uint32_t sw_flow_frame(const struct sw_flow *f)
{
	return f->frame;
}

/* sw_flow_quanta - return the quanta of a frame with @bytes of payload. */
static inline uint32_t sw_flow_quanta(const struct sw_flow *f, uint32_t bytes)
{
	return bytes == f->frame_bytes ? f->frame : sw_quanta(bytes);
}

/* sw_flow_open - note that the first frame of @class is in flight. */
static inline void sw_flow_open(
	struct sw_flow *f, uint32_t class, uint64_t now_ns)
{
	uint64_t at_ns = sw_congestion_start(&f->congestion, now_ns);

	if (now_ns + f->params->rto_min < at_ns)
		at_ns = now_ns + f->params->rto_min;

	f->may_ask = !f->is_patient;
	f->blocked_ns = 0;
	f->open_mask |= (uint8_t)(1u << class);
	f->tick_at_ns = at_ns < f->tick_at_ns ? at_ns : f->tick_at_ns;
}

/* sw_flow_send - number a data frame and charge its credit. Fills psn, consumed
 * and grant of @h, whose class, key, round and payload_len are set. @cell is
 * returned with the frame's fate.
 * sw_flow_send_in - like sw_flow_send, for the frames of a run: the caller
 * finds the class's sw_flow_space once, and sw_flow_room has made room. */
static inline struct sw_space *sw_flow_space(struct sw_flow *f, uint32_t class)
{
	return &f->space[class];
}

static inline void sw_flow_send_in(struct sw_flow *f, struct sw_space *s,
	struct sw_header *h, uint32_t cell, uint64_t now_ns)
{
	struct sw_sent *e = sw_space_sent(s, s->next_psn);
	uint32_t quanta = sw_flow_quanta(f, h->payload_len);

	h->psn = s->next_psn++;
	e->t_ns = now_ns;
	e->psn = h->psn;
	e->key = h->key;
	e->cell = cell;
	e->round = h->round;
	e->is_open = true;
	e->is_lost = false;
	e->quanta = (uint16_t)quanta;
	if (!s->n_open++)
		sw_flow_open(f, h->class, now_ns);
	f->consumed += quanta;
	if (f->consumed >= f->congestion.ask_at &&
		sw_congestion_ask(&f->congestion, f->consumed, f->granted))
		h->flags |= SW_FLAG_ACK;
	h->consumed = (uint32_t)f->consumed;
	h->grant = (uint32_t)f->given;
}

static inline void sw_flow_send(
	struct sw_flow *f, struct sw_header *h, uint32_t cell, uint64_t now_ns)
{
	struct sw_space *s = sw_flow_space(f, h->class);

	if (s->next_psn - s->oldest == s->most)
		sw_flow_grow(f, h->class, 1);
	sw_flow_send_in(f, s, h, cell, now_ns);
}

/* sw_flow_is_shared - return whether the flow shares a budget of grants. */
static inline bool sw_flow_is_shared(const struct sw_flow *f)
{
	return f->grants != NULL;
}

/* sw_flow_expect - add @quanta, which may be negative, to the peer's backlog.
 */
void sw_flow_expect(struct sw_flow *f, int32_t quanta);

/* sw_flow_missed - note that a frame of the peer was lost. */
void sw_flow_missed(struct sw_flow *f, uint64_t now_ns);

/* sw_grants_next - grant the longest waiting flow in @q its share and return
 * it; NULL if no flow waits or the budget is used up. The caller sends it a
 * frame. */
struct sw_flow *sw_grants_next(struct sw_queue *q);

/* sw_grants_are_awaited - return whether a flow waits, or a ceiling holds. */
static inline bool sw_grants_are_awaited(const struct sw_grants *g)
{
	return g->turns.first || g->crowds;
}

/* sw_grants_crowds - return the first crowd with a ceiling; NULL: none.
 * sw_grants_turns - return the queue of flows whose crowds have no ceiling. */
static inline struct sw_crowd *sw_grants_crowds(const struct sw_grants *g)
{
	return g->crowds;
}

static inline struct sw_queue *sw_grants_turns(struct sw_grants *g)
{
	return &g->turns;
}

/* sw_crowd_grow - let the ceiling of a crowd's grants grow, if it is time and
 * flows use them. */
void sw_crowd_grow(struct sw_crowd *c);

/* sw_flow_is_starved - return whether the peer is about to use up its grant and
 * could get more. If many flows share, so that each has little, other flows
 * fill the link meanwhile, and the next RESULT or due ACK brings the grant
 * early enough. Without grants to begin with, the flow also counts as starved
 * while less than half of the budget is used. */
bool sw_flow_is_starved(const struct sw_flow *f);

/* sw_flow_send_ctl - number a control frame. */
void sw_flow_send_ctl(struct sw_flow *f, struct sw_header *h);

/* sw_psn_follows - return whether @psn follows @far, a number not yet believed,
 * so that both are now believed. */
static inline bool sw_psn_follows(uint64_t psn, uint64_t far)
{
	return far && psn > far && psn - far <= SW_PSN_SKIP;
}

/* Return whether the number of @h follows the previous one of its space so
 * closely that it needs no further check. */
static inline bool sw_flow_is_next(
	const struct sw_flow *f, const struct sw_header *h)
{
	uint64_t skip = h->class == SW_CLASS_CTL ? 1 : SW_PSN_SKIP;

	return h->psn - f->rx_psn[h->class] - 1 < skip;
}

/* sw_flow_is_far_newer - like sw_flow_is_newer, for a number that is not next.
 */
bool sw_flow_is_far_newer(const struct sw_flow *f, const struct sw_header *h);

/* sw_flow_is_newer - return whether the number of @h is newer than all before
 * it in its space and plausible. Control frames of a session begin with any
 * number, and each stands alone: a frame that skips numbers is accepted, but
 * the skipped numbers do not count as old until a second frame follows. */
static inline bool sw_flow_is_newer(
	const struct sw_flow *f, const struct sw_header *h)
{
	return sw_flow_is_next(f, h) || sw_flow_is_far_newer(f, h);
}

/* sw_flow_is_old - return whether the number of @h is at most the highest one
 * believed. */
static inline bool sw_flow_is_old(
	const struct sw_flow *f, const struct sw_header *h)
{
	return h->psn <= f->rx_psn[h->class];
}

/* sw_flow_is_recent - return whether the number of @h is less than SW_PSN_SKIP
 * behind the highest one believed in its space. */
static inline bool sw_flow_is_recent(
	const struct sw_flow *f, const struct sw_header *h)
{
	return f->rx_psn[h->class] - h->psn < SW_PSN_SKIP;
}

/* sw_flow_rx - take consumed, grant and backlog from a valid header, if
 * sw_flow_is_newer. Returns whether the grant grew. */
bool sw_flow_rx(struct sw_flow *f, const struct sw_header *h);

/* Return how many quanta may arrive after one grant, before the next one is
 * sent. */
static inline uint64_t sw_flow_most_since(const struct sw_flow *f)
{
	return f->params->window_bytes / SW_QUANTUM + SW_CREDIT_SLACK;
}

/* sw_flow_within - police @n received data frames: return how many, from the
 * first on, stay within the grant plus SW_CREDIT_SLACK, by the sender's own
 * count and by what arrived since our last grant. Call it once per frame,
 * before reading its payload. An honest sender overdraws by one frame, plus one
 * for each frame lost since the last grant. A count beyond SW_CREDIT_MAX is
 * from the past, as in sw_flow_rx. */
static inline uint32_t sw_flow_within(
	struct sw_flow *f, const struct sw_header *h, uint32_t n)
{
	uint32_t from = (uint32_t)f->given + SW_CREDIT_SLACK + 1, i = 0;
	uint64_t since = f->n_since_given, most = sw_flow_most_since(f);
	uint8_t flags = 0;

	for (; i < n; i++) {
		uint64_t more = since + sw_flow_quanta(f, h[i].payload_len);

		if (h[i].consumed - from < SW_CREDIT_MAX - SW_CREDIT_SLACK ||
			more > most)
			break;
		since = more;
		flags |= h[i].flags;
	}
	f->n_since_given = since;
	f->is_asked |= (flags & SW_FLAG_ACK) != 0;
	return i;
}

/* sw_flow_accept - note that a data frame was folded or written, so that an ACK
 * reports it. If its number is far from the received numbers, no ACK does, and
 * its sender retransmits it with a number that follows.
 * sw_flow_accept_again - like sw_flow_accept, for a duplicate: it skips no
 * number.
 * sw_flow_accept_any - do either, for any number. */
void sw_flow_accept_any(struct sw_flow *f, uint32_t class, uint64_t psn,
	bool is_new, uint64_t now_ns);

static inline void sw_flow_accept_again(
	struct sw_flow *f, uint32_t class, uint64_t psn, uint64_t now_ns)
{
	sw_flow_accept_any(f, class, psn, false, now_ns);
}

static inline void sw_flow_accept(
	struct sw_flow *f, uint32_t class, uint64_t psn, uint64_t now_ns)
{
	struct sw_space *s = &f->space[class];

	if (psn != s->largest + 1 || !s->n_unacked) {
		sw_flow_accept_any(f, class, psn, true, now_ns);
		return;
	}
	/* The next in order, behind frames that wait for the same ACK. */
	s->largest = psn;
	s->t_largest_ns = now_ns;
	s->n_unacked++;
	*sw_space_word(s, psn) |= sw_space_bit(psn);
}

/* sw_flow_accept_run - like sw_flow_accept, for @n frames of one class with
 * ascending numbers. */
static inline void sw_flow_accept_run(struct sw_flow *f,
	const struct sw_header *h, uint32_t n, uint64_t now_ns)
{
	struct sw_space *s = &f->space[h->class];
	uint64_t last = h[n - 1].psn;
	uint32_t i = 0;

	do /* until all others follow in order and an ACK is pending */
		sw_flow_accept(f, h->class, h[i++].psn, now_ns);
	while (i < n &&
		(h[i].psn != s->largest + 1 || last - s->largest != n - i));
	if (i == n)
		return;
	s->largest = last;
	s->t_largest_ns = now_ns;
	s->n_unacked += n - i;
	for (uint64_t at = ~last, m; i < n; at += m, i += (uint32_t)m) {
		m = 64 - at % 64 < n - i ? 64 - at % 64 : n - i;
		s->came[at / 64 % SW_CAME_WORDS] |= ~0ULL >> (64 - m)
								     << at % 64;
	}
}

/* sw_flow_mark - note that @n frames arrived with an ECN mark: the next ACK
 * reports them, if they are data frames. */
static inline void sw_flow_mark(struct sw_flow *f, uint32_t class, uint32_t n)
{
	if (class < SW_N_CLASSES)
		f->space[class].n_marked += (uint16_t)n;
}

/* sw_flow_answered - note that a frame that we send implicitly acknowledges @n
 * frames of @class, so that they need no ACK. The last frame still gets an ACK,
 * but a late one. */
static inline void sw_flow_answered(
	struct sw_flow *f, uint32_t class, uint32_t n, uint64_t now_ns)
{
	struct sw_space *s = &f->space[class];

	s->t_answered_ns = n ? now_ns : s->t_answered_ns;
	if (s->n_unacked > 1 && !s->is_ack_urgent)
		s->n_unacked -= n < s->n_unacked ? n : s->n_unacked - 1;
}

/* sw_flow_resolve_open - like sw_flow_resolve, for an open entry. */
void sw_flow_resolve_open(struct sw_flow *f, uint32_t class, struct sw_sent *e,
	bool is_first, uint64_t now_ns);

/* sw_flow_resolve - close the frame @psn of @class, which a received frame has
 * implicitly acknowledged. No callback. @is_first: no other copy was sent, so
 * its time is a sample of the RTT (Karn). */
static inline void sw_flow_resolve(struct sw_flow *f, uint32_t class,
	uint64_t psn, bool is_first, uint64_t now_ns)
{
	struct sw_sent *e = sw_space_sent(&f->space[class], psn);

	if (e->is_open && e->psn == psn)
		sw_flow_resolve_open(f, class, e, is_first, now_ns);
}

/* sw_flow_owes_ack - return whether a received frame awaits its ACK. */
static inline bool sw_flow_owes_ack(const struct sw_flow *f)
{
	return f->unacked_mask;
}

/* sw_flow_ack_at - return when an ACK is due: 0 now, UINT64_MAX never. */
uint64_t sw_flow_ack_at(const struct sw_flow *f);

/* sw_flow_build_ack - fill @out with one block per space that has new frames,
 * and clear what was due. Returns the number of blocks (0…8). */
uint32_t sw_flow_build_ack(struct sw_flow *f, uint64_t now_ns, uint64_t gap_ns,
	struct sw_sack out[SW_N_CLASSES]);

/* sw_flow_on_ack - process the @n blocks of the ACK numbered @psn, except
 * blocks of a space for which a newer ACK has arrived. Calls @fate for frames
 * whose fate is now known. Returns false if a block acknowledges a number never
 * sent; the rest of the block counts. */
bool sw_flow_on_ack(struct sw_flow *f, uint64_t psn,
	const struct sw_sack *sacks, uint32_t n, uint64_t now_ns,
	sw_fate_fn fate, void *ctx);

/* sw_flow_tick - declare overdue frames lost. Returns whether an ACK is due. */
bool sw_flow_tick(
	struct sw_flow *f, uint64_t now_ns, sw_fate_fn fate, void *ctx);

/* sw_flow_tick_at - return when to call sw_flow_tick, for frames in flight or a
 * pending ACK; UINT64_MAX: never. Timers are lazy: events only bring the time
 * forward, and a call that is too early computes the next time. */
static inline uint64_t sw_flow_tick_at(const struct sw_flow *f)
{
	return f->tick_at_ns;
}

/* sw_flow_is_open - return whether a data frame is in flight. */
static inline bool sw_flow_is_open(const struct sw_flow *f)
{
	return f->open_mask;
}

/* sw_flow_n_timeouts - return the number of frames that sw_flow_tick has
 * declared lost. */
static inline uint64_t sw_flow_n_timeouts(const struct sw_flow *f)
{
	return f->n_timeouts;
}

/* Approximate counts of frames in both directions since the flow began. */
struct sw_flow_losses {
	uint64_t sent, lost;       /* ours */
	uint64_t queued;           /* lost while a queue had grown */
	uint64_t numbered, missed; /* the peer's, up to the newest one */
};

/* sw_flow_losses - return the counts of sent, received and lost frames. */
struct sw_flow_losses sw_flow_losses(const struct sw_flow *f);

/* The present limits of a sender, in bytes of frames. */
struct sw_flow_view {
	uint64_t window;  /* congestion's; 0: it does not limit the flow */
	uint64_t granted; /* granted and not consumed */
	uint64_t srtt_ns, least_ns; /* round trips; 0: no sample */
	uint32_t marked_part;       /* frames marked, of 10,000, on average */
};

struct sw_flow_view sw_flow_view(const struct sw_flow *f);

/* sw_flow_srtt - return the largest smoothed RTT of all spaces; 0: no sample.
 */
uint64_t sw_flow_srtt(const struct sw_flow *f);

#endif
