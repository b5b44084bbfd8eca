/* flow.h - packet numbers, SACK, RTT, loss and credit between two lcores.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A flow joins one worker lcore and one server lcore, and is the same at both
 * ends.  It delivers at least once, in any order: what a frame means is the
 * cell's business, and nothing there relies on the flow being right.
 *
 * Numbers.  Each class has a space of packet numbers (48 bits, from 1, never
 * reused; a retransmission is a new number), its own SACK, RTT and loss
 * detection, since a switch that honours DSCP reorders between classes.
 * Control frames have a ninth space, which is not acknowledged.  A number far
 * ahead is not believed until a second one follows it: one forged frame must
 * not move what the peer's true frames are compared with.
 *
 * Credit.  Every frame carries two cumulative counts in quanta of 1 KiB: what
 * its sender has consumed (losses included, so that a loss cannot leak credit)
 * and what its sender grants.  grant = highest consumed seen + window; nothing
 * is held by the receiver, since a contribution is folded as it arrives.  A
 * sender with nothing on its way may send one frame without, so that a flow
 * whose grants were lost asks for new ones by that; one whose peer knows what
 * is to come, only when that has taken long.  Who sends more than it was given
 * is policed.
 *
 * Incast.  The flows of a receiver share one budget of grants, so that what all
 * send at once fits the queue before it.  For what its peer has to send a flow
 * is granted its share of the budget, in whole frames; where there is none left
 * flows get one in turn.  A server is told by each PUSH what is behind it, and
 * a flow at rest may begin with SW_FLOW_START quanta; a worker knows what
 * results are to come, and grants nothing else, but keeps a frame for each
 * server that holds none: other members may be long in completing what it
 * knows.
 */
#ifndef SW_ENGINE_FLOW_FLOW_H
#define SW_ENGINE_FLOW_FLOW_H

#include "engine/base/params.h"
#include "engine/wire/wire.h"

enum {
	SW_SENT_RING = 256,                /* frames on their way per space */
	SW_CAME_WORDS = 2 * SW_SACK_WORDS, /* ring of numbers received */
	/* Numbers that one frame may skip.  It leaves half of a SACK for the
	 * numbers that were sent, should that frame be forged. */
	SW_PSN_SKIP = SW_SACK_BITS / 2,
	SW_CREDIT_MAX = 1 << 16, /* quanta; a larger grant is not believed */
	SW_CREDIT_SLACK = 64,    /* quanta beyond the grant that are taken */
	SW_FLOW_START = 16, /* quanta that a sender may always begin with */
	SW_FLOW_HASTE = 64, /* with such a share nobody waits for a grant */
};

/* What the flows of one receiver are granted. */
struct sw_grants {
	uint32_t start;   /* quanta that each may hold besides */
	uint32_t whole;   /* quanta that fit the queue */
	uint32_t total;   /* that may be granted and not consumed */
	uint32_t used;    /* that are */
	uint32_t n_idle;  /* flows that hold none of them */
	uint64_t windows; /* of all flows whose senders have more to send */
	struct sw_flow *first, *last; /* that wait for some, in turn */
};

/* sw_grants_init - what is granted fits @bytes with its headers, 120 B a frame:
 * at least a frame. */
static inline void sw_grants_init(struct sw_grants *g, uint64_t bytes)
{
	uint64_t total = bytes / SW_QUANTUM * 63 / 64;
	uint64_t frame = SW_PAYLOAD_MAX / SW_QUANTUM;

	g->whole = (uint32_t)(total > frame ? total : frame);
	g->total = g->whole;
}

/* sw_grants_divide - @n flows share: what each may begin with.  Where that were
 * more than all others may be granted, it is half of that, and out of it. */
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
	uint64_t oldest; /* no open entry lies below */
	uint64_t largest_acked;
	uint64_t ack_psn; /* of the newest ACK that spoke of this space */
	uint64_t srtt_ns, rttvar_ns; /* 0: no sample yet */
	uint32_t backoff;            /* doublings of the RTO */
	uint32_t n_open;
	/* receiving */
	uint64_t largest;
	uint64_t far;                 /* a number that is not believed yet */
	uint64_t came[SW_CAME_WORDS]; /* numbers up to the largest */
	uint64_t t_largest_ns;
	uint64_t t_unacked_ns;  /* arrival of the first frame not yet ACKed */
	uint64_t t_answered_ns; /* when some were answered last */
	uint32_t n_unacked;
	bool is_ack_urgent;
	struct sw_sent sent[SW_SENT_RING];
};

/* Numbers that have come are bits of a ring, the newest ones first: the next in
 * order needs no other bit to move. */
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
	uint64_t consumed, granted; /* quanta; what we send */
	uint64_t returned;          /* of consumed: what was never sent */
	uint64_t rested;            /* consumed, when some was returned last */
	uint64_t peer_consumed;     /* quanta; what we receive */
	uint64_t given;             /* quanta; the last grant that we sent */
	uint64_t n_since_given;     /* quanta that came since then */
	uint32_t window;            /* quanta that we grant at most */
	struct sw_grants *grants;   /* that it shares; NULL: with nobody */
	struct sw_flow *next;       /* of those that wait */
	uint32_t frame;             /* quanta of a full frame */
	uint32_t backlog;           /* quanta that the peer has still to send */
	uint32_t held;              /* of grants->used, ours */
	uint32_t ack_every;
	uint64_t rx_psn[SW_N_SPACES]; /* highest number believed, any verdict */
	uint64_t ctl_next;
	uint64_t peer_gap_ns;
	uint64_t n_timeouts;
	uint64_t blocked_ns;  /* since when, 0: it is not */
	uint64_t tick_at_ns;  /* no timer of it is due before */
	uint8_t open_mask;    /* spaces with open entries */
	uint8_t unacked_mask; /* spaces with frames to acknowledge */
	bool is_waiting;      /* for its turn to be granted something */
	bool is_patient;      /* the peer knows what we have to send */
	bool may_ask;         /* by a frame that was not granted */
	struct sw_space space[SW_N_CLASSES];
	uint64_t far_psn[SW_N_SPACES]; /* not believed yet, if above rx_psn */
};

enum sw_fate { SW_ACKED, SW_LOST };

/* What the owner of a flow does when the fate of @n frames is known, which were
 * sent one after the other. */
typedef void (*sw_fate_fn)(void *ctx, const struct sw_sent *const *sent,
	uint32_t n, enum sw_fate fate);

/* sw_flow_init - a flow on which nothing was sent.
 * @params  borrowed
 * @grants  that its own come out of, borrowed until sw_flow_fini, which gives
 *          back what it holds; NULL: it shares with nobody
 * @n_ctl   control frames that were numbered elsewhere before */
void sw_flow_init(struct sw_flow *f, const struct sw_params *params,
	struct sw_grants *grants, uint64_t n_ctl);

/* sw_flow_restart - as new, for a peer that begins anew; our control frames are
 * numbered on, so that what comes late is told apart. */
void sw_flow_restart(struct sw_flow *f);
void sw_flow_fini(struct sw_flow *f);

/* sw_flow_set_window - grant so many bytes from now on, at most those of the
 * params; what was granted stays. */
void sw_flow_set_window(struct sw_flow *f, uint32_t bytes);

/* sw_flow_can_send - is there credit and a free packet number in @class?
 * Without credit one frame may go when none is on its way and grants seem to be
 * lost: it tells the peer what was consumed, and brings them. */
static inline bool sw_flow_can_send(const struct sw_flow *f, uint32_t class)
{
	const struct sw_space *s = &f->space[class];

	return (f->consumed < f->granted ||
		       (f->may_ask && !f->open_mask &&
			       (f->granted || f->is_patient))) &&
	       s->next_psn - s->oldest < SW_SENT_RING;
}

/* sw_flow_block - data is held.  If there is no credit, and nothing on its way
 * that would bring some, a frame may ask for it after rto_min (sw_flow_tick).
 */
void sw_flow_block(struct sw_flow *f, uint64_t now_ns);

/* sw_flow_may_ask - may a frame go without credit? */
static inline bool sw_flow_may_ask(const struct sw_flow *f)
{
	return f->may_ask;
}

/* sw_flow_wait - its peer knows what it has to send, and grants that in turn:
 * so it does not ask at once. */
static inline void sw_flow_wait(struct sw_flow *f)
{
	f->is_patient = true;
	f->may_ask = false;
}

/* sw_flow_may_rest - were frames sent since sw_flow_rest, none of which is on
 * its way? */
static inline bool sw_flow_may_rest(const struct sw_flow *f)
{
	return !f->open_mask && f->consumed != f->rested;
}

/* sw_flow_rest - nothing is left to send: what is left of the grant goes back
 * to the peer, as if it had been used, with the next control frame. */
void sw_flow_rest(struct sw_flow *f);

/* sw_flow_is_spent - has the peer used or returned all that it was granted? */
static inline bool sw_flow_is_spent(const struct sw_flow *f)
{
	return f->given && f->given <= f->peer_consumed;
}

/* sw_flow_give - see what the peer is granted from now on: before data frames
 * are sent, once for a burst of them. */
void sw_flow_give(struct sw_flow *f);

/* sw_flow_quanta - of a frame with @bytes of payload. */
static inline uint32_t sw_flow_quanta(uint32_t bytes)
{
	return (bytes + SW_QUANTUM - 1) / SW_QUANTUM;
}

/* sw_flow_open - @class has its first frame on its way. */
static inline void sw_flow_open(
	struct sw_flow *f, uint32_t class, uint64_t now_ns)
{
	uint64_t at_ns = now_ns + f->params->rto_min;

	f->may_ask = !f->is_patient;
	f->blocked_ns = 0;
	f->open_mask |= (uint8_t)(1u << class);
	f->tick_at_ns = at_ns < f->tick_at_ns ? at_ns : f->tick_at_ns;
}

/* sw_flow_send - number a data frame and charge its credit: fills psn,
 * consumed and grant of @h, whose class, key, round and payload_len are set.
 * @cell comes back with the frame's fate. */
static inline void sw_flow_send(
	struct sw_flow *f, struct sw_header *h, uint32_t cell, uint64_t now_ns)
{
	struct sw_space *s = &f->space[h->class];
	struct sw_sent *e = &s->sent[s->next_psn % SW_SENT_RING];

	h->psn = s->next_psn++;
	e->t_ns = now_ns;
	e->psn = h->psn;
	e->key = h->key;
	e->cell = cell;
	e->round = h->round;
	e->is_open = true;
	if (!s->n_open++)
		sw_flow_open(f, h->class, now_ns);
	f->consumed += sw_flow_quanta(h->payload_len);
	h->consumed = (uint32_t)f->consumed;
	h->grant = (uint32_t)f->given;
}

/* sw_flow_is_shared - do its grants come out of a budget? */
static inline bool sw_flow_is_shared(const struct sw_flow *f)
{
	return f->grants != NULL;
}

/* sw_flow_expect - so many quanta more, or less, are to come from the peer. */
void sw_flow_expect(struct sw_flow *f, int32_t quanta);

/* sw_grants_next - the flow that has waited longest, with what it is granted
 * now; NULL: there is none, or nothing to grant.  It is to be sent a frame. */
struct sw_flow *sw_grants_next(struct sw_grants *g);

static inline bool sw_grants_are_awaited(const struct sw_grants *g)
{
	return g->first != NULL;
}

/* sw_flow_is_starved - its peer is about to run out of a grant that it could
 * have.  Where so many share that each has little, the others fill the link
 * meanwhile: then a RESULT, or the ACK when it is due, is early enough to bring
 * the grant.  Where nobody has a grant to begin with, they must hold most of
 * it. */
bool sw_flow_is_starved(const struct sw_flow *f);

/* sw_flow_send_ctl - number a control frame. */
void sw_flow_send_ctl(struct sw_flow *f, struct sw_header *h);

/* sw_psn_follows - does @psn follow @far, a number that was not believed, so
 * that both are? */
static inline bool sw_psn_follows(uint64_t psn, uint64_t far)
{
	return far && psn > far && psn - far <= SW_PSN_SKIP;
}

/* Does the number of @h follow those before it in its space so closely that
 * nothing else is to be asked? */
static inline bool sw_flow_is_next(
	const struct sw_flow *f, const struct sw_header *h)
{
	uint64_t skip = h->class == SW_CLASS_CTL ? 1 : SW_PSN_SKIP;

	return h->psn - f->rx_psn[h->class] - 1 < skip;
}

/* As sw_flow_is_newer, of a number that is not next. */
bool sw_flow_is_far_newer(const struct sw_flow *f, const struct sw_header *h);

/* sw_flow_is_newer - is the number of @h newer than all before it in its space,
 * and can its peer have sent it?  Control frames of a session begin with any
 * number, and each counts by itself: one that skips some is taken, but what it
 * skipped is not late until a second one follows. */
static inline bool sw_flow_is_newer(
	const struct sw_flow *f, const struct sw_header *h)
{
	return sw_flow_is_next(f, h) || sw_flow_is_far_newer(f, h);
}

/* sw_flow_is_old - is the number of @h one that was believed, or before one? */
static inline bool sw_flow_is_old(
	const struct sw_flow *f, const struct sw_header *h)
{
	return h->psn <= f->rx_psn[h->class];
}

/* sw_flow_is_recent - is the packet number of @h less than SW_PSN_SKIP behind
 * the newest one that was believed in its space? */
static inline bool sw_flow_is_recent(
	const struct sw_flow *f, const struct sw_header *h)
{
	return f->rx_psn[h->class] - h->psn < SW_PSN_SKIP;
}

/* sw_flow_rx - take consumed, grant and backlog from a valid header,
 * if sw_flow_is_newer.  Returns true when the grant grew. */
bool sw_flow_rx(struct sw_flow *f, const struct sw_header *h);

/* Quanta that may come after a grant was sent, before the next is. */
static inline uint64_t sw_flow_most_since(const struct sw_flow *f)
{
	return f->params->window_bytes / SW_QUANTUM + SW_CREDIT_SLACK;
}

/* sw_flow_within - @n data frames came: of how many, from the first on, does
 * their sender use no more than it was given?  Counts these, so call it once
 * per frame, before its payload is looked at.  More means: by its own count, or
 * by what came since we last sent a grant, it has used the grant and
 * SW_CREDIT_SLACK.  An honest sender overdraws by a frame, and by one more for
 * each that was lost since the last grant came.  What is beyond belief is the
 * past, as in sw_flow_rx. */
static inline uint32_t sw_flow_within(
	struct sw_flow *f, const struct sw_header *h, uint32_t n)
{
	uint32_t from = (uint32_t)f->given + SW_CREDIT_SLACK + 1, i = 0;
	uint64_t since = f->n_since_given, most = sw_flow_most_since(f);

	for (; i < n; i++) {
		uint64_t more = since + sw_flow_quanta(h[i].payload_len);

		if (h[i].consumed - from < SW_CREDIT_MAX - SW_CREDIT_SLACK ||
			more > most)
			break;
		since = more;
	}
	f->n_since_given = since;
	return i;
}

/* sw_flow_accept - a data frame was folded or written: it will be acknowledged,
 * unless its number is far from those that came.  Its sender then sends it
 * again, by a number that follows. */
void sw_flow_accept_any(
	struct sw_flow *f, uint32_t class, uint64_t psn, uint64_t now_ns);

/* sw_flow_accept_again - the same of a frame that nobody waits for, since it
 * was folded or written before: it skips no number. */
void sw_flow_accept_again(
	struct sw_flow *f, uint32_t class, uint64_t psn, uint64_t now_ns);

static inline void sw_flow_accept(
	struct sw_flow *f, uint32_t class, uint64_t psn, uint64_t now_ns)
{
	struct sw_space *s = &f->space[class];

	if (psn != s->largest + 1 || !s->n_unacked) {
		sw_flow_accept_any(f, class, psn, now_ns);
		return;
	}
	/* The next one, behind others that wait for the same ACK. */
	s->largest = psn;
	s->t_largest_ns = now_ns;
	s->n_unacked++;
	*sw_space_word(s, psn) |= sw_space_bit(psn);
}

/* sw_flow_accept_run - the same of @n frames of a class, of ascending numbers.
 */
static inline void sw_flow_accept_run(struct sw_flow *f,
	const struct sw_header *h, uint32_t n, uint64_t now_ns)
{
	struct sw_space *s = &f->space[h->class];
	uint64_t last = h[n - 1].psn;
	uint32_t i = 0;

	do /* until the others are the next ones, behind others that wait */
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

/* sw_flow_answered - what we send to the peer acknowledges @n frames of
 * @class by its meaning, so that no ACK is needed for them; but not of another
 * that waits for its own: the last one is acknowledged in any case, but late.
 */
static inline void sw_flow_answered(
	struct sw_flow *f, uint32_t class, uint32_t n, uint64_t now_ns)
{
	struct sw_space *s = &f->space[class];

	s->t_answered_ns = n ? now_ns : s->t_answered_ns;
	if (s->n_unacked > 1 && !s->is_ack_urgent)
		s->n_unacked -= n < s->n_unacked ? n : s->n_unacked - 1;
}

/* As sw_flow_resolve, of one that is open. */
void sw_flow_resolve_open(struct sw_flow *f, uint32_t class, struct sw_sent *e,
	bool is_first, uint64_t now_ns);

/* sw_flow_resolve - the frame @psn of @class was acknowledged by the meaning
 * of something that came.  No callback.  @is_first: nothing else was sent that
 * could have been meant, so that its time says something about the RTT (Karn).
 */
static inline void sw_flow_resolve(struct sw_flow *f, uint32_t class,
	uint64_t psn, bool is_first, uint64_t now_ns)
{
	struct sw_sent *e = &f->space[class].sent[psn % SW_SENT_RING];

	if (e->is_open && e->psn == psn)
		sw_flow_resolve_open(f, class, e, is_first, now_ns);
}

/* sw_flow_owes_ack - has anything come that was not acknowledged? */
static inline bool sw_flow_owes_ack(const struct sw_flow *f)
{
	return f->unacked_mask;
}

/* sw_flow_ack_at - when an ACK is due; 0 = now, UINT64_MAX = never. */
uint64_t sw_flow_ack_at(const struct sw_flow *f);

/* sw_flow_build_ack - fill @out with one block per space with new frames, and
 * forget that they were due.  Returns the number of blocks (0…8). */
uint32_t sw_flow_build_ack(struct sw_flow *f, uint64_t now_ns, uint64_t gap_ns,
	struct sw_sack out[SW_N_CLASSES]);

/* sw_flow_on_ack - take those of the @n blocks of the ACK numbered @psn that no
 * newer ACK has spoken of; other control frames may have overtaken it.
 * Calls @fate for the frames whose fate is known now.  Returns false when a
 * block names what was never sent; the rest of it counts. */
bool sw_flow_on_ack(struct sw_flow *f, uint64_t psn,
	const struct sw_sack *sacks, uint32_t n, uint64_t now_ns,
	sw_fate_fn fate, void *ctx);

/* sw_flow_tick - declare lost what is overdue.  Returns whether an ACK is due.
 */
bool sw_flow_tick(
	struct sw_flow *f, uint64_t now_ns, sw_fate_fn fate, void *ctx);

/* sw_flow_tick_at - when sw_flow_tick is to be called, for what is on its way
 * or for an ACK that is not due yet; UINT64_MAX: there is neither.  Timers
 * are lazy: what is sent, accepted or acknowledged only brings it forward, and
 * a call that comes too early finds out when the next one is. */
static inline uint64_t sw_flow_tick_at(const struct sw_flow *f)
{
	return f->tick_at_ns;
}

/* sw_flow_is_open - is a data frame on its way? */
static inline bool sw_flow_is_open(const struct sw_flow *f)
{
	return f->open_mask;
}

/* sw_flow_n_timeouts - frames that sw_flow_tick declared lost, since init. */
static inline uint64_t sw_flow_n_timeouts(const struct sw_flow *f)
{
	return f->n_timeouts;
}

/* sw_flow_srtt - the largest smoothed RTT of all spaces, 0 without sample. */
uint64_t sw_flow_srtt(const struct sw_flow *f);

#endif
