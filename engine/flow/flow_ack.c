/* flow_ack.c - SACK, RTT, loss and timers of a flow.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/base/bytes.h"
#include "engine/base/random.h"
#include "engine/flow/fanout.h"
#include "engine/flow/flow.h"

/* Timeouts in a row that repeat the oldest frame alone.  A queue may grow by
 * many round-trip times at once, so later frames need not be lost. */
enum { PROBES = 2 };

/* The longest sample falls by this part of its difference to the newest. */
enum { FALL_PART = 32 };

/* --- timers --- */

static void wake(struct sw_flow *f, uint64_t at_ns)
{
	f->tick_at_ns = sw_min64(f->tick_at_ns, at_ns);
}

/* Return the age at which a frame is lost if a later one was acknowledged: 5/4
 * of the RTT and some room for reordering (RACK, RFC 8985 §6.2). */
static uint64_t overtaken_after(
	const struct sw_flow *f, const struct sw_space *s)
{
	return s->srtt_ns + s->srtt_ns / 4 + f->params->reorder;
}

/* Return up to a quarter of @ns, by the time of the oldest frame: senders that
 * lost frames together must not send again together. */
static uint64_t spread(const struct sw_space *s, uint64_t ns)
{
	uint64_t seed = sw_space_sent(s, s->oldest)->t_ns;

	return (ns >> 10) * (sw_random_next(&seed) >> 56);
}

/* Return the longest delay of an ACK. On a slow path frames are so rare that a
 * fixed delay would bring an ACK for each, which takes a tenth of the path. */
static uint64_t late_after(const struct sw_flow *f, const struct sw_space *s)
{
	return sw_max64(f->params->ack_delay_late, s->srtt_ns / 4);
}

static uint64_t rto_of(const struct sw_flow *f, const struct sw_space *s)
{
	const struct sw_params *p = f->params;
	/* Many samples in a round trip make the variance small where a queue
	 * fills and drains over several. */
	uint64_t asked = sw_max64(
		s->srtt_ns + 4 * s->rttvar_ns, s->longest_ns + p->ack_delay);
	uint64_t rto = s->srtt_ns ? asked + late_after(f, s) : p->rto_first;

	/* The frames of a small window ask for their ACKs, and a probe costs
	 * little.  If data ran out before the window was full, the last frame
	 * may not have asked, and its ACK may be late. */
	if (!s->backoff && s->srtt_ns &&
		!sw_congestion_is_open(&f->congestion)) {
		if (sw_congestion_has_room(&f->congestion, f->consumed))
			asked = rto;
		return sw_max64(sw_max64(asked, 2 * s->srtt_ns + p->ack_delay),
			sw_max64(2 * f->peer_gap_ns, p->rto_min / 2));
	}
	/* A peer that polls late is not a loss, nor is a queue that has grown
	 * since the last sample of this space. */
	rto = sw_max64(sw_max64(rto, p->rto_min), 2 * f->peer_gap_ns);
	if (s->backoff || !s->srtt_ns)
		rto = sw_max64(rto, 2 * f->srtt_ns);
	if (!s->backoff && s->srtt_ns)
		return rto;
	rto = sw_min64(rto << s->backoff, sw_max64(p->rto_max, rto));
	return rto - spread(s, rto);
}

/* Return the time at which the oldest frame in flight of a space is lost. */
static uint64_t lost_at(const struct sw_flow *f, const struct sw_space *s)
{
	return sw_space_sent(s, s->oldest)->t_ns +
	       (s->oldest < s->largest_acked ? overtaken_after(f, s)
					     : rto_of(f, s));
}

/* Return the time of the next check for losses: a frame is lost at the earliest
 * rto_min after it was sent, or when later frames were acknowledged. */
static uint64_t look_at(const struct sw_flow *f, const struct sw_space *s)
{
	return sw_space_sent(s, s->oldest)->t_ns +
	       (s->oldest < s->largest_acked ? overtaken_after(f, s)
					     : f->params->rto_min);
}

/* Return when the ACK is due: after two RTTs, or an eighth of a long RTT. With
 * many flows, more ACKs would take the place of data. While answers flow, which
 * also acknowledge, the delay counts from the last answer. The last frame was
 * likely answered, so its ACK may be late. */
static uint64_t ack_at(const struct sw_flow *f, const struct sw_space *s)
{
	const struct sw_params *p = f->params;
	bool is_answered = s->t_answered_ns >= s->t_unacked_ns;
	uint64_t delay = 2 * s->srtt_ns;

	if (is_answered && s->n_unacked == 1)
		return s->t_unacked_ns + late_after(f, s);
	delay = delay > p->ack_delay_max
			? sw_max64(p->ack_delay_max, s->srtt_ns / 8)
			: sw_max64(p->ack_delay, delay);
	if (!is_answered)
		return s->t_unacked_ns + delay;
	return sw_min64(
		s->t_answered_ns + delay, s->t_unacked_ns + late_after(f, s));
}

/* --- received frames: which to acknowledge, and when --- */

/* Make @psn the largest received number; the numbers between have not arrived.
 */
static void skip_to(struct sw_space *s, uint64_t psn)
{
	if (psn - s->largest > SW_SACK_BITS)
		memset(s->came, 0, sizeof(s->came));
	else
		while (++s->largest < psn)
			*sw_space_word(s, s->largest) &=
				~sw_space_bit(s->largest);
	s->largest = psn;
}

/* Return whether to accept a frame's number. A number far from the received
 * ones needs a second number that follows it: ahead, if all frames between were
 * lost, or behind, if the largest was forged. A duplicate never leads back. */
static bool is_believed(struct sw_space *s, uint64_t psn, bool is_new)
{
	uint64_t skip = is_new ? SW_PSN_SKIP : 1;
	bool is_ahead = psn > s->largest, follows;

	if (is_ahead ? psn - s->largest <= skip
		     : s->largest - psn <= SW_SACK_BITS)
		return true;
	if (!is_ahead && !is_new)
		return false;
	follows = sw_psn_follows(psn, s->far);
	s->far = psn;
	return follows;
}

void sw_flow_accept_any(struct sw_flow *f, uint32_t class, uint64_t psn,
	bool is_new, uint64_t now_ns)
{
	struct sw_space *s = &f->space[class];

	if (!is_believed(s, psn, is_new))
		return;
	s->is_ack_urgent |= psn != s->largest + 1; /* gap, late, duplicate */
	if (psn > s->largest || s->largest - psn > SW_SACK_BITS) {
		if (psn > s->largest + 1) {
			f->n_missed += psn - s->largest - 1;
			sw_flow_missed(f, now_ns);
		}
		skip_to(s, psn);
		s->t_largest_ns = now_ns;
	} else if (!(*sw_space_word(s, psn) & sw_space_bit(psn)) &&
		   f->n_missed) {
		f->n_missed--; /* it was only late */
	}
	*sw_space_word(s, psn) |= sw_space_bit(psn);
	if (s->n_unacked++)
		return;
	s->t_unacked_ns = now_ns;
	f->unacked_mask |= (uint8_t)(1u << class);
	wake(f, ack_at(f, s));
}

/* Read which numbers before the largest have arrived. */
static void read_came(const struct sw_space *s, uint64_t bits[SW_SACK_WORDS])
{
	uint32_t at = (uint32_t)-s->largest, from = at % 64;
	uint64_t low = s->came[at / 64 % SW_CAME_WORDS];

	for (uint32_t i = 0; i < SW_SACK_WORDS; i++) {
		uint64_t high = s->came[(at / 64 + i + 1) % SW_CAME_WORDS];

		bits[i] = low >> from | high << 1 << (63 - from);
		low = high;
	}
}

uint64_t sw_flow_ack_at(const struct sw_flow *f)
{
	uint64_t at = UINT64_MAX;

	if (f->unacked_mask && (f->is_asked || sw_flow_is_starved(f)))
		return 0;
	for (uint32_t m = f->unacked_mask; m; m &= m - 1) {
		const struct sw_space *s = &f->space[__builtin_ctz(m)];

		if (s->is_ack_urgent || s->n_unacked >= f->ack_every)
			return 0;
		at = sw_min64(at, ack_at(f, s));
	}
	return at;
}

static uint16_t to_us(uint64_t ns)
{
	return (uint16_t)sw_min64(ns / 1000, UINT16_MAX);
}

uint32_t sw_flow_build_ack(struct sw_flow *f, uint64_t now_ns, uint64_t gap_ns,
	struct sw_sack out[SW_N_CLASSES])
{
	uint32_t n = 0;

	for (uint32_t m = f->unacked_mask; m; m &= m - 1) {
		uint32_t class = (uint32_t)__builtin_ctz(m);
		struct sw_space *s = &f->space[class];

		out[n] = (struct sw_sack){.largest = s->largest,
			.class = (uint8_t) class,
			.delay_us = to_us(now_ns - s->t_largest_ns),
			.gap_us = to_us(gap_ns),
			.n_marked = s->n_marked};
		read_came(s, out[n].bits);
		s->n_unacked = 0;
		s->is_ack_urgent = false;
		n++;
	}
	f->unacked_mask = 0;
	f->is_asked = false;
	f->tick_at_ns = sw_congestion_release_at(&f->congestion);
	for (uint32_t m = f->open_mask; m; m &= m - 1)
		wake(f, look_at(f, &f->space[__builtin_ctz(m)]));
	if (f->blocked_ns)
		wake(f, f->blocked_ns + f->params->rto_min);
	return n;
}

/* --- sent frames: acknowledged or lost --- */

static __attribute__((noinline)) void note_rtt(
	const struct sw_flow *f, uint64_t rtt)
{
	if (f->rtts)
		sw_histogram_note(f->rtts, rtt);
}

static void sample_rtt(struct sw_flow *f, struct sw_space *s, uint64_t rtt)
{
	uint64_t err;

	sw_congestion_sample(&f->congestion, rtt);
	f->srtt_ns = f->srtt_ns ? f->srtt_ns - f->srtt_ns / 8 + rtt / 8 : rtt;
	if (!s->srtt_ns) { /* RFC 6298 §2.2 */
		s->srtt_ns = rtt;
		s->rttvar_ns = rtt / 2;
		s->longest_ns = rtt;
		note_rtt(f, rtt);
		return;
	}
	err = rtt > s->srtt_ns ? rtt - s->srtt_ns : s->srtt_ns - rtt;
	s->rttvar_ns += err / 4 - s->rttvar_ns / 4;
	if (rtt > s->longest_ns) {
		s->longest_ns = rtt;
		note_rtt(f, rtt);
	} else if (s->largest_acked >= s->fall_psn) {
		note_rtt(f, rtt);
		s->longest_ns -= (s->longest_ns - rtt) / FALL_PART;
		s->fall_psn = s->next_psn;
	}
	s->srtt_ns += rtt / 8 - s->srtt_ns / 8;
}

static void look_at_crowd(struct sw_flow *f)
{
	if (f->crowd && sw_ceiling_is_low(&f->crowd->fanout.ceiling))
		sw_fanout_settle(f);
}

/* Note that the window has changed: frames may leave at its pace. */
static __attribute__((noinline)) void settle_some(struct sw_flow *f,
	const struct sw_space *s, uint32_t quanta, uint64_t now_ns)
{
	sw_congestion_settle(
		&f->congestion, f->consumed, f->granted, quanta, s->srtt_ns);
	look_at_crowd(f);
	wake(f, sw_congestion_start(&f->congestion, now_ns));
}

static void settle(struct sw_flow *f, const struct sw_space *s, uint32_t quanta,
	uint64_t now_ns)
{
	if (!sw_congestion_count(&f->congestion, f->consumed, quanta))
		settle_some(f, s, quanta, now_ns);
}

/* Close @n entries. */
static void note_closed(struct sw_flow *f, uint32_t class, uint32_t n)
{
	struct sw_space *s = &f->space[class];

	s->n_open -= n;
	if (!s->n_open) {
		f->open_mask &= (uint8_t) ~(1u << class);
		s->oldest = s->next_psn;
		return;
	}
	while (!sw_space_sent(s, s->oldest)->is_open)
		s->oldest++;
}

static void close_entry(struct sw_flow *f, uint32_t class, struct sw_sent *e)
{
	e->is_open = false;
	note_closed(f, class, 1);
}

/* An answer has arrived: reset the backoff, so that the next loss is found
 * sooner. */
static void end_backoff(struct sw_flow *f, struct sw_space *s)
{
	s->backoff = 0;
	if (s->n_open)
		wake(f, look_at(f, s));
}

void sw_flow_resolve_open(struct sw_flow *f, uint32_t class, struct sw_sent *e,
	bool is_first, uint64_t now_ns)
{
	struct sw_space *s = &f->space[class];

	/* The answer may have waited for other members, so its time is a sample
	 * only if it is the first or close to earlier samples. */
	if (is_first && (!s->srtt_ns || now_ns - e->t_ns <=
						s->srtt_ns + 4 * s->rttvar_ns))
		sample_rtt(f, s, now_ns - e->t_ns);
	close_entry(f, class, e);
	settle(f, s, e->quanta, now_ns);
	if (s->backoff)
		end_backoff(f, s);
}

static void lose(struct sw_flow *f, uint32_t class, struct sw_sent *e,
	uint64_t now_ns, sw_fate_fn fate, void *ctx)
{
	const struct sw_sent copy = *e, *lost = &copy;

	close_entry(f, class, e);
	e->is_lost = true;
	f->space[class].lost_psn = copy.psn;
	sw_congestion_lose(&f->congestion, f->consumed, f->granted, copy.quanta,
		f->space[class].srtt_ns);
	sw_fanout_lose(f, copy.t_ns);
	look_at_crowd(f);
	f->may_ask = true;
	wake(f, sw_congestion_start(&f->congestion, now_ns));
	fate(ctx, &lost, 1, SW_LOST);
}

/* Declare the open frames before @end lost that are at least @age old. */
static void lose_older(struct sw_flow *f, uint32_t class, uint64_t end,
	uint64_t age, uint64_t now_ns, sw_fate_fn fate, void *ctx)
{
	struct sw_space *s = &f->space[class];

	for (uint64_t psn = s->oldest; psn < end; psn++) {
		struct sw_sent *e = sw_space_sent(s, psn);

		if (!e->is_open)
			continue;
		if (now_ns - e->t_ns < age)
			return; /* later frames are younger */
		lose(f, class, e, now_ns, fate, ctx);
	}
}

/* Retransmit the oldest frame as a probe: its ACK tells whether other frames
 * were lost, and which. */
static void probe(struct sw_flow *f, uint32_t class, uint64_t now_ns,
	sw_fate_fn fate, void *ctx)
{
	struct sw_space *s = &f->space[class];
	struct sw_sent *e = sw_space_sent(s, s->oldest);
	const struct sw_sent copy = *e, *lost = &copy;

	close_entry(f, class, e);
	f->congestion.all_lost += copy.quanta;
	settle(f, s, copy.quanta, now_ns);
	fate(ctx, &lost, 1, SW_LOST);
}

static bool is_sacked(const struct sw_sack *k, uint64_t psn)
{
	uint64_t back = k->largest - psn;

	if (back == 0)
		return true;
	return back <= SW_SACK_BITS &&
	       k->bits[(back - 1) / 64] >> ((back - 1) % 64) & 1;
}

/* Return the largest number that was sent and that @k acknowledges, for a @k
 * whose largest was never sent; 0: none. */
static __attribute__((noinline)) uint64_t largest_sent(
	const struct sw_space *s, const struct sw_sack *k)
{
	uint64_t psn = s->next_psn - 1;

	while (psn && k->largest - psn <= SW_SACK_BITS && !is_sacked(k, psn))
		psn--;
	return k->largest - psn <= SW_SACK_BITS ? psn : 0;
}

/* Return the number from which on @k acknowledges all frames up to its largest,
 * as far as its first word tells. */
static uint64_t sacked_from(const struct sw_sack *k)
{
	uint64_t gaps = ~k->bits[0];

	return k->largest - (gaps ? (uint32_t)__builtin_ctzll(gaps) : 64);
}

/* Close the open frames of a space up to @largest that @k acknowledges. Returns
 * how many. */
static uint32_t close_sacked(struct sw_flow *f, const struct sw_sack *k,
	uint64_t largest, uint64_t now_ns, sw_fate_fn fate, void *ctx)
{
	struct sw_space *s = &f->space[k->class];
	const struct sw_sent *closed[SW_SENT_RING];
	uint64_t from = sacked_from(k);
	uint32_t n = 0, quanta = 0;

	for (uint64_t psn = s->oldest; psn <= largest; psn++) {
		struct sw_sent *e = sw_space_sent(s, psn);

		if (!e->is_open || (psn < from && !is_sacked(k, psn)))
			continue;
		e->is_open = false;
		quanta += e->quanta;
		closed[n++] = e;
	}
	if (!n)
		return 0;
	settle(f, s, quanta, now_ns);
	fate(ctx, closed, n, SW_ACKED);
	return n;
}

/* Take the count of our frames that a queue on the path has marked. */
static __attribute__((noinline)) void note_marks(
	struct sw_flow *f, struct sw_space *s, uint16_t n_marked)
{
	uint32_t n = (uint16_t)(n_marked - s->n_told);

	s->n_told = n_marked;
	sw_congestion_mark(&f->congestion, f->consumed, n * f->frame);
}

static void take_sack(struct sw_flow *f, const struct sw_sack *k,
	uint64_t now_ns, sw_fate_fn fate, void *ctx)
{
	struct sw_space *s = &f->space[k->class];
	struct sw_sent *e = sw_space_sent(s, k->largest);
	uint64_t delay = k->delay_us * SW_US;
	uint64_t largest =
		k->largest < s->next_psn ? k->largest : largest_sent(s, k);
	bool is_late = e->is_lost && e->psn == k->largest;
	uint32_t n;

	if ((e->is_open || e->is_lost) && e->psn == k->largest &&
		now_ns - e->t_ns > delay)
		sample_rtt(f, s, now_ns - e->t_ns - delay);
	if (is_late)
		e->is_lost = false;
	if (s->lost_psn && is_sacked(k, s->lost_psn)) {
		s->lost_psn = 0;
		is_late = true;
	}
	if (is_late) { /* it only seemed lost */
		s->backoff = 0;
		sw_congestion_undo(&f->congestion);
		look_at_crowd(f);
	}
	if (k->n_marked != s->n_told)
		note_marks(f, s, k->n_marked);
	n = close_sacked(f, k, largest, now_ns, fate, ctx);
	if (n) {
		s->backoff = 0;
		note_closed(f, k->class, n);
	}
	s->largest_acked = sw_max64(s->largest_acked, largest);
	if (s->oldest < s->largest_acked)
		lose_older(f, k->class, s->largest_acked, overtaken_after(f, s),
			now_ns, fate, ctx);
	if (s->n_open)
		wake(f, look_at(f, s));
}

bool sw_flow_on_ack(struct sw_flow *f, uint64_t psn,
	const struct sw_sack *sacks, uint32_t n, uint64_t now_ns,
	sw_fate_fn fate, void *ctx)
{
	bool is_true = true;

	for (uint32_t i = 0; i < n; i++) {
		const struct sw_sack *k = &sacks[i];
		struct sw_space *s;

		if (k->class >= SW_N_CLASSES) {
			is_true = false;
			continue;
		}
		s = &f->space[k->class];
		is_true &= k->largest < s->next_psn;
		if (psn <= s->ack_psn)
			continue; /* stale for this space */
		/* a number that skips others is not believed yet */
		s->ack_psn = sw_max64(
			s->ack_psn, sw_min64(psn, f->rx_psn[SW_CLASS_CTL]));
		f->peer_gap_ns = k->gap_us * SW_US;
		take_sack(f, k, now_ns, fate, ctx);
	}
	return is_true;
}

static void tick_space(struct sw_flow *f, uint32_t class, uint64_t now_ns,
	sw_fate_fn fate, void *ctx)
{
	struct sw_space *s = &f->space[class];
	uint64_t rto = rto_of(f, s), at_ns = lost_at(f, s);

	if (at_ns > now_ns) {
		wake(f, at_ns);
		return;
	}
	lose_older(f, class, s->largest_acked, overtaken_after(f, s), now_ns,
		fate, ctx);
	if (s->n_open && now_ns - sw_space_sent(s, s->oldest)->t_ns >= rto) {
		f->n_timeouts++;
		if (s->backoff++ < PROBES && f->consumed < f->granted)
			probe(f, class, now_ns, fate, ctx);
		if (s->n_open &&
			(s->backoff > PROBES || f->consumed >= f->granted ||
				!sw_congestion_has_room(
					&f->congestion, f->consumed)))
			/* Lose all frames of a burst, not only the first. */
			lose_older(f, class, s->next_psn,
				rto - sw_min64(rto / 8, late_after(f, s)),
				now_ns, fate, ctx);
		if (s->backoff > 16)
			s->backoff = 16;
	}
	if (s->n_open)
		wake(f, lost_at(f, s));
}

bool sw_flow_block(struct sw_flow *f, uint64_t now_ns)
{
	if (sw_flow_takes_turns(f))
		sw_fanout_wait(f);
	if (f->blocked_ns || f->open_mask || f->consumed < f->granted)
		return false;
	f->blocked_ns = now_ns;
	wake(f, now_ns + f->params->rto_min);
	return true;
}

static void tick_blocked(struct sw_flow *f, uint64_t now_ns)
{
	uint64_t at = f->blocked_ns + f->params->rto_min;

	if (at > now_ns)
		wake(f, at);
	else
		f->may_ask = true;
}

bool sw_flow_tick(
	struct sw_flow *f, uint64_t now_ns, sw_fate_fn fate, void *ctx)
{
	uint64_t ack_at = sw_flow_ack_at(f);

	f->tick_at_ns = ack_at > now_ns ? ack_at : UINT64_MAX;
	wake(f, sw_congestion_tick(&f->congestion, f->consumed,
			f->open_mask != 0, now_ns));
	for (uint32_t m = f->open_mask; m; m &= m - 1)
		tick_space(f, (uint32_t)__builtin_ctz(m), now_ns, fate, ctx);
	if (f->blocked_ns)
		tick_blocked(f, now_ns);
	return ack_at <= now_ns;
}

struct sw_flow_losses sw_flow_losses(const struct sw_flow *f)
{
	struct sw_flow_losses all = {
		.sent = (f->consumed - f->returned) / f->frame,
		.lost = f->congestion.all_lost / f->frame,
		.queued = f->congestion.all_queued / f->frame,
		.missed = f->n_missed,
	};

	for (uint32_t c = 0; c < SW_N_CLASSES; c++)
		all.numbered += f->space[c].largest;
	return all;
}

uint64_t sw_flow_srtt(const struct sw_flow *f)
{
	uint64_t srtt = 0;

	for (uint32_t c = 0; c < SW_N_CLASSES; c++)
		srtt = sw_max64(srtt, f->space[c].srtt_ns);
	return srtt;
}

struct sw_flow_view sw_flow_view(const struct sw_flow *f)
{
	const struct sw_congestion *c = &f->congestion;
	uint64_t window = (uint64_t)c->window * SW_QUANTUM_WIRE;

	return (struct sw_flow_view){
		.window = c->is_open ? 0 : window / SW_CONGESTION_UNIT,
		.granted =
			f->granted > f->consumed
				? (f->granted - f->consumed) * SW_QUANTUM_WIRE
				: 0,
		.srtt_ns = sw_flow_srtt(f),
		.least_ns = c->min_ns == UINT64_MAX ? 0 : c->min_ns,
		.marked_part =
			(uint32_t)((uint64_t)c->marked_part * 10000 >> 16)};
}
