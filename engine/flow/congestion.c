/* congestion.c - the sender's window of a flow, which follows loss and delay.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/flow/congestion.h"

#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/random.h"

enum {
	RATE_SHIFT = 20,
	FEW = 4,          /* frames that losses leave of a window */
	CURVE = 11,       /* the curve is rounds^3 / 2^11 frames from the top */
	FLAT = 32,        /* least rounds until the curve is at the top */
	ROUNDS = 1 << 12, /* rounds after which the curve gets no steeper */
	LONG = 500000, /* ns per quantum of a frame: the round counts twice */
	TIMES = 64,    /* most that a round counts */
	LINE = 8 /* a line grows by times^2 / 8 frames per round, at most 32 */
};

static void begin_round(struct sw_congestion *c, uint64_t consumed)
{
	c->from = c->settled;
	c->end = consumed;
	c->min_ns = sw_min64(c->min_ns, c->round_ns);
	c->round_ns = UINT64_MAX;
	c->n_lost = 0;
	c->n_marked = 0;
	c->peak = 0;
	c->is_used = false;
}

/* Close an open window and end the calm state: a frame was lost or marked, so
 * something limits the path. */
static void close_window(struct sw_congestion *c, uint64_t consumed)
{
	if (c->is_open) {
		c->is_open = false;
		c->ask_at = consumed;
		begin_round(c, consumed);
	}
	c->is_calm = false;
}

/* The path had no room for the lost frames, so none replace them before the
 * round ends. Windows of few frames, common with many senders, are exempt,
 * because they would stall. */
uint64_t sw_congestion_limit(const struct sw_congestion *c)
{
	uint64_t window = c->window / SW_CONGESTION_UNIT;
	uint64_t least = sw_min64(FEW * c->frame, window ? window : 1);
	uint64_t limit = c->settled;

	if (c->is_open)
		return UINT64_MAX;
	limit += sw_max64(window - sw_min64(window, c->n_lost), least);
	return c->rate ? sw_min64(limit, c->paced) : limit;
}

static void set_limit(struct sw_congestion *c)
{
	c->half = c->window / SW_CONGESTION_UNIT / 2;
	c->limit = sw_min64(sw_congestion_limit(c), c->turn);
}

void sw_congestion_turn(struct sw_congestion *c, uint64_t turn)
{
	c->turn = turn;
	if (turn != UINT64_MAX)
		c->ask_at = 0;
	if (!c->is_open)
		set_limit(c);
}

static void open_window(struct sw_congestion *c)
{
	c->window = c->full * SW_CONGESTION_UNIT;
	c->is_open = true;
	c->rate = 0;
	c->release_ns = c->limit = c->ask_at = UINT64_MAX;
}

void sw_congestion_init(
	struct sw_congestion *c, uint32_t frame, uint32_t full, bool is_far)
{
	memset(c, 0, sizeof(*c));
	c->frame = frame;
	c->full = full;
	c->window = SW_CONGESTION_START * SW_CONGESTION_UNIT;
	c->min_ns = c->round_ns = c->release_ns = c->turn = UINT64_MAX;
	c->is_slow = c->is_calm = true;
	begin_round(c, 0);
	set_limit(c);
	if (!is_far)
		open_window(c);
}

void sw_congestion_disable(struct sw_congestion *c)
{
	open_window(c);
	c->is_off = true;
}

void sw_congestion_skip(struct sw_congestion *c, uint64_t quanta)
{
	c->settled += quanta;
	c->from += quanta;
	c->end += quanta;
	c->paced += quanta;
	if (!c->is_open)
		set_limit(c);
}

bool sw_congestion_ask(
	struct sw_congestion *c, uint64_t consumed, uint64_t granted)
{
	c->ask_at = consumed;
	if (c->turn == UINT64_MAX)
		c->ask_at += c->window / SW_CONGESTION_UNIT / 4;
	return c->limit <= granted &&
	       (!c->is_calm || consumed - c->settled >= c->half);
}

/* Set the pace: the window per round trip, plus half of the queue's part of the
 * round trip, a 32nd to a quarter, because a short queue absorbs no burst. A
 * step is a frame or a 16th of the window, whichever is larger. */
static void set_pace(struct sw_congestion *c, uint64_t consumed, uint64_t srtt)
{
	uint64_t step = sw_max64(
		(uint64_t)c->frame * SW_CONGESTION_UNIT, c->window / 16);
	uint64_t more;

	if (!srtt)
		return;
	if (!c->rate)
		c->paced = consumed;
	more = sw_min64(sw_max64(c->queue_ns * 32 / srtt, 2), 16); /* 64ths */
	c->rate = (c->window * (64 + more) << (RATE_SHIFT - 14)) / srtt;
	c->rate = c->rate ? c->rate : 1;
	c->gap_ns = srtt * step / c->window * 4 / 5;
}

/* Return the least time that a frame of this round spent in queues. */
static uint64_t queue_of(const struct sw_congestion *c)
{
	return c->round_ns != UINT64_MAX && c->round_ns > c->min_ns
		       ? c->round_ns - c->min_ns
		       : 0;
}

static bool has_queue(const struct sw_congestion *c)
{
	return queue_of(c) > c->min_ns / 16;
}

/* Return whether the queue is about as long as the longest recent one. */
static bool has_long_queue(const struct sw_congestion *c)
{
	return has_queue(c) && queue_of(c) >= c->queue_ns - c->queue_ns / 4;
}

/* Return @n as a part of the round's quanta, in units of 2^-16. */
static uint32_t part_of(const struct sw_congestion *c, uint32_t n)
{
	return (uint32_t)sw_min64(
		((uint64_t)n << 16) / (c->settled - c->from), 1 << 16);
}

/* Begin a cubic curve that leads from the window to the top and beyond. */
static void start_curve(struct sw_congestion *c)
{
	uint64_t frame = (uint64_t)c->frame * SW_CONGESTION_UNIT;
	uint64_t step = c->top > c->window ? c->top - c->window : 0;
	uint32_t n = 0;

	for (uint32_t bit = 1 << 7; bit; bit >>= 1) {
		uint64_t x = n + bit;

		if (x * x * x * frame >> CURVE <= step)
			n += bit;
	}
	c->n_flat = n > FLAT ? n : FLAT;
	c->step = (uint32_t)step;
	c->n_rounds = 0;
}

/* Shrink the used part of the window by @by, in units of 2^-16. */
static void shrink(struct sw_congestion *c, uint32_t by)
{
	uint64_t least = (uint64_t)c->frame * SW_CONGESTION_UNIT / 4;
	uint64_t peak = sw_max64(c->peak, SW_CONGESTION_START);
	uint64_t used = sw_min64(c->window, peak * SW_CONGESTION_UNIT);

	c->before = (uint32_t)used;
	c->was_slow = c->is_slow;
	c->top = (uint32_t)(used < c->top ? used - (used >> 4) : used);
	c->window = (uint32_t)sw_max64(used - (used * by >> 16), least);
	start_curve(c);
	c->is_slow = false;
	c->is_cut = true;
}

/* Shrink the window after a round that lost frames: by twice the lost part or
 * by half of the queue, whichever is more, within 1/8 to 1/2. */
static void decrease(struct sw_congestion *c, uint32_t part)
{
	uint32_t by = 2 * part;

	if (c->round_ns != UINT64_MAX)
		by = (uint32_t)sw_max64(
			by, (queue_of(c) << 15) / (c->round_ns + 1));
	shrink(c, by < 1 << 13 ? 1 << 13 : by > 1 << 15 ? 1 << 15 : by);
}

/* Shrink the window after a round with marks. The average begins with the first
 * marks, since a window that doubles gets many marks at once. */
static void heed_marks(struct sw_congestion *c, uint32_t part)
{
	if (c->is_slow || !c->marked_part)
		c->marked_part = part;
	shrink(c, c->marked_part / 2);
	c->before = 0; /* a late frame does not undo this decrease */
}

/* Return how many more times than once a round counts, because it is long. */
static uint64_t times_of(const struct sw_congestion *c, uint64_t srtt)
{
	return sw_min64(srtt / ((uint64_t)LONG * c->frame), TIMES - 1);
}

/* Return the least growth per long round: the same for windows of all sizes. */
static uint64_t slope(const struct sw_congestion *c, uint64_t times)
{
	uint64_t frame = (uint64_t)c->frame * SW_CONGESTION_UNIT;

	return sw_min64(times * times, 4 * LINE * LINE) * frame / LINE;
}

/* Return the curve's window after the rounds so far.  Where round trips are
 * long, all windows grow alike: along a line from the last decrease at least,
 * and past the top, so that flows approach equal parts of a queue. */
static uint64_t curve(const struct sw_congestion *c, uint64_t times)
{
	int64_t x = (int64_t)c->n_rounds - c->n_flat, n = c->n_flat;
	int64_t frame = (int64_t)c->frame * SW_CONGESTION_UNIT;
	int64_t to = c->top + c->step * x * x * x / n / n / n, line;

	if (!times)
		return to > 0 ? (uint64_t)to : 0;
	if (x > 0)
		to = c->top + (frame * x * x * x >> CURVE);
	line = (int64_t)c->top - c->step +
	       (int64_t)(slope(c, times) * c->n_rounds / (1 + times));
	return (uint64_t)(to > line ? to : line > 0 ? line : 0);
}

/* Return the largest growth of the window per round: a quarter.  In long rounds
 * it is less, unless they are very long, since all excess frames are lost. */
static uint64_t most_growth(const struct sw_congestion *c, uint64_t times)
{
	uint64_t frame = (uint64_t)c->frame * SW_CONGESTION_UNIT;
	uint64_t part = times * times / (has_long_queue(c) ? 2 : 1);

	if (!times)
		return c->window / 4;
	part = c->window * sw_min64(part, 64) / 256;
	return sw_max64(sw_max64(part, slope(c, times)), frame);
}

/* Grow along a cubic curve, which is flat where frames were lost last.  Follow
 * the curve faster without a queue, since the path has room, and in long
 * rounds, so that the curve takes no more time.  If the queue is about as long
 * as the longest recent one, grow little beyond the curve. */
static void increase(struct sw_congestion *c, uint64_t srtt)
{
	uint32_t frame = c->frame * SW_CONGESTION_UNIT;
	uint64_t times = times_of(c, srtt), least, to;

	if (c->n_rounds < ROUNDS)
		c->n_rounds += (has_queue(c) ? 1 : 4) * (uint32_t)(1 + times);
	to = sw_min64(curve(c, times), c->window + most_growth(c, times));
	least = has_queue(c) ? sw_min64(frame >> 3, c->window >> 6)
			     : sw_min64(frame, c->window >> 4);
	if (has_long_queue(c))
		least /= 4;
	c->window = (uint32_t)sw_max64(to, c->window + least);
}

/* Shrink a window that was not used: it says nothing about the path. */
static void decay(struct sw_congestion *c)
{
	if (c->window <= SW_CONGESTION_START * SW_CONGESTION_UNIT)
		return;
	c->window -= c->window >> 4;
	c->top = c->window;
	c->n_rounds = c->n_flat = FLAT;
	c->step =
		FLAT * FLAT * FLAT * (uint64_t)c->frame * SW_CONGESTION_UNIT >>
		CURVE;
}

void sw_congestion_undo(struct sw_congestion *c)
{
	if (c->before <= c->window || c->is_open)
		return;
	c->window = c->before;
	c->is_slow = c->is_calm = c->was_slow;
	c->before = 0;
	c->n_lost = 0;
	c->lost_part = 0;
	if (c->is_slow)
		c->rate = 0;
	set_limit(c);
}

static bool is_congestion(const struct sw_congestion *c)
{
	/* A queue that overflows in slow start drops many frames. */
	if (!c->n_lost || (c->is_slow && c->n_lost <= c->frame))
		return false;
	return c->lost_part > SW_CONGESTION_RANDOM ||
	       c->round_ns == UINT64_MAX || has_long_queue(c);
}

/* Return whether the window may open: at its full size, or in slow start if
 * grants are the tighter limit or the window is so large that the path seems
 * free. */
static bool may_open(const struct sw_congestion *c, uint64_t granted)
{
	uint32_t window = c->window / SW_CONGESTION_UNIT;

	if (c->is_slow && !c->n_lost &&
		(window >= c->full / 16 * 3 || c->limit > granted))
		return true;
	return window >= c->full;
}

static void end_round(struct sw_congestion *c, uint64_t consumed,
	uint64_t granted, uint64_t srtt)
{
	uint32_t part = part_of(c, c->n_lost);
	uint32_t marked = part_of(c, c->n_marked);
	bool was_cut = c->is_cut;

	c->is_cut = false;
	c->all_lost += c->n_lost;
	if (c->round_ns == UINT64_MAX ||
		(has_queue(c) && queue_of(c) >= c->queue_ns / 4))
		c->all_queued += c->n_lost;
	c->min_ns = sw_min64(c->min_ns, c->round_ns);
	c->queue_ns -= c->queue_ns >> 8;
	c->queue_ns = sw_max64(c->queue_ns, queue_of(c));
	if (!was_cut)
		c->lost_part += part / 8 - c->lost_part / 8;
	if (marked | c->marked_part)
		c->marked_part += marked / 16 - c->marked_part / 16;
	if (!was_cut && is_congestion(c))
		decrease(c, part);
	else if (!was_cut && marked)
		heed_marks(c, marked);
	else if (!c->is_slow && !c->n_lost)
		c->is_used ? increase(c, srtt) : decay(c);
	if (!c->is_slow)
		set_pace(c, consumed, sw_min64(srtt, c->round_ns));
	if (may_open(c, granted))
		open_window(c);
	begin_round(c, consumed);
}

void sw_congestion_settle(struct sw_congestion *c, uint64_t consumed,
	uint64_t granted, uint32_t quanta, uint64_t srtt_ns)
{
	uint64_t flight = consumed - c->settled;

	if (c->end <= c->settled) { /* nothing was in flight */
		c->from = c->settled;
		c->end = consumed;
	}
	c->is_used |= flight >= c->half;
	c->peak = (uint32_t)sw_max64(c->peak, flight);
	if (c->is_slow && c->is_used && !c->n_lost)
		c->window += quanta * SW_CONGESTION_UNIT;
	c->settled += quanta;
	if (c->settled >= c->end && c->settled > c->from)
		end_round(c, consumed, granted, srtt_ns);
	if (!c->is_open)
		set_limit(c);
}

void sw_congestion_mark(
	struct sw_congestion *c, uint64_t consumed, uint32_t quanta)
{
	if (c->is_off)
		return;
	close_window(c, consumed);
	c->n_marked += quanta;
}

void sw_congestion_lose(struct sw_congestion *c, uint64_t consumed,
	uint64_t granted, uint32_t quanta, uint64_t srtt_ns)
{
	if (c->is_off) {
		c->settled += quanta;
		c->all_lost += quanta;
		return;
	}
	close_window(c, consumed);
	c->n_lost += quanta;
	sw_congestion_settle(c, consumed, granted, quanta, srtt_ns);
}

void sw_congestion_delays(
	const struct sw_congestion *c, uint64_t *least_ns, uint64_t *most_ns)
{
	*least_ns = c->min_ns == UINT64_MAX ? 0 : c->min_ns;
	*most_ns = *least_ns + c->queue_ns;
}

/* Return a random time between half and 3/2 of @ns. */
static uint64_t about(const struct sw_congestion *c, uint64_t ns, uint64_t now)
{
	uint64_t seed = now ^ c->settled << 7;

	return ns / 2 + (ns >> 10) * (sw_random_next(&seed) >> 54);
}

uint64_t sw_congestion_tick(struct sw_congestion *c, uint64_t consumed,
	bool is_busy, uint64_t now_ns)
{
	uint64_t past = now_ns - c->paced_ns, n, most;

	if (now_ns < c->release_ns)
		return c->release_ns;
	c->release_ns = UINT64_MAX;
	if (!c->rate)
		return UINT64_MAX;
	most = c->window / SW_CONGESTION_UNIT / (consumed < c->paced ? 16 : 4);
	most = sw_max64(c->frame, most);
	past = past >> 30 ? 1 << 30 : past;
	n = past * c->rate >> RATE_SHIFT;
	if (n) {
		c->paced = sw_min64(c->paced + n, consumed + most);
		c->paced_ns = now_ns;
	}
	set_limit(c);
	if (is_busy || consumed >= c->paced)
		c->release_ns =
			now_ns + (c->window < c->frame * SW_CONGESTION_UNIT
						 ? about(c, c->gap_ns, now_ns)
						 : c->gap_ns);
	return c->release_ns;
}
