/* unit_congestion.c - the congestion window of a flow's sender.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/base/params.h"
#include "engine/flow/congestion.h"
#include "test/support/unit.h"

enum { FRAME = 23, FULL = 8192, RTT = 100 * 1000, FAR = 1 << 30 };

/* A sender that always has enough data to fill the window. */
struct sender {
	struct sw_congestion c;
	uint64_t consumed, now_ns, rtt;
};

static struct sender *open_sender(void)
{
	static struct sender s;

	memset(&s, 0, sizeof(s));
	s.now_ns = SW_S;
	s.rtt = RTT;
	sw_congestion_init(&s.c, FRAME, FULL, true);
	return &s;
}

static uint32_t window(const struct sender *s)
{
	return s->c.window / SW_CONGESTION_UNIT;
}

static void acknowledge(struct sender *s, uint32_t quanta)
{
	if (!sw_congestion_count(&s->c, s->consumed, quanta))
		sw_congestion_settle(&s->c, s->consumed, FAR, quanta, s->rtt);
}

/* Send as much as the window allows, ignoring pacing; then acknowledge all but
 * @n_lost frames. */
static void round_trip(struct sender *s, uint32_t n_lost)
{
	uint64_t end;

	while (s->consumed - s->c.settled < window(s))
		s->consumed += FRAME;
	end = s->consumed;
	s->now_ns += s->rtt;
	sw_congestion_sample(&s->c, s->rtt);
	for (; n_lost; n_lost--)
		sw_congestion_lose(&s->c, s->consumed, FAR, FRAME, s->rtt);
	sw_congestion_sample(&s->c, s->rtt);
	while (s->c.settled < end)
		acknowledge(s, FRAME);
}

/* Let the window grow to about @quanta, then lose frames. */
static struct sender *open_cut(uint32_t quanta, uint64_t rtt_there)
{
	struct sender *s = open_sender();

	while (window(s) < quanta)
		round_trip(s, 0);
	s->rtt = rtt_there;
	round_trip(s, 2);
	return s;
}

static void init__starts_small(void **state)
{
	struct sender *s = open_sender();

	assert_int_equal(s->c.limit, SW_CONGESTION_START);
	assert_false(sw_congestion_is_open(&s->c));
	sw_congestion_init(&s->c, FRAME, FULL, false);
	/* a flow inside a machine has no congestion window */
	assert_true(sw_congestion_is_open(&s->c));
}

static void disable__neither_loss_nor_marks_limit(void **state)
{
	struct sender *s = open_sender();

	sw_congestion_disable(&s->c);
	s->consumed = 100 * FRAME;
	sw_congestion_lose(&s->c, s->consumed, FAR, FRAME, s->rtt);
	sw_congestion_mark(&s->c, s->consumed, FRAME);
	acknowledge(s, 99 * FRAME);
	assert_true(sw_congestion_is_open(&s->c));
	assert_true(s->c.limit == UINT64_MAX && s->c.settled == s->consumed);
	assert_int_equal(s->c.all_lost, FRAME);
}

static void slow_start__doubles_until_it_is_open(void **state)
{
	struct sender *s = open_sender();
	uint32_t before;

	for (uint32_t i = 0; i < 2; i++) {
		before = window(s);
		round_trip(s, 0);
		assert_in_range(
			window(s), 2 * before - FRAME, 2 * before + 2 * FRAME);
	}
	round_trip(s, 0);
	round_trip(s, 0);
	assert_true(sw_congestion_is_open(&s->c));
	assert_true(s->c.limit == UINT64_MAX);
}

static void slow_start__needs_use(void **state)
{
	struct sender *s = open_sender();

	for (uint32_t i = 0; i < 20; i++) {
		s->consumed += FRAME;
		acknowledge(s, FRAME);
	}
	assert_int_equal(window(s), SW_CONGESTION_START);
}

/* If frames are lost while the queue is full, the window shrinks by 1/8 to
 * 1/2. */
static void lose__shrinks_by_the_part(void **state)
{
	uint32_t of[] = {1, 10, 100}, left[] = {88, 80, 50};

	for (uint32_t i = 0; i < 3; i++) {
		struct sender *s = open_sender();
		uint32_t before;

		while (window(s) < 1000)
			round_trip(s, 0);
		s->rtt = RTT + RTT / 8;
		before = window(s);
		round_trip(s, 2 + before / FRAME * of[i] / 105);
		assert_in_range(100 * window(s) / before, left[i] - 9, left[i]);
	}
}

/* A forged delay may make a round trip take no time. */
static void lose__in_no_time(void **state)
{
	struct sender *s = open_cut(1000, 0);

	round_trip(s, 20);
	assert_in_range(window(s), 500, 900);
}

/* If the queue is as long as the path, half of the frames in flight fill it. */
static void lose__shrinks_more_with_a_long_queue(void **state)
{
	struct sender *s = open_sender();
	uint32_t before;

	while (window(s) < 1000)
		round_trip(s, 0);
	s->rtt = 10 * RTT;
	before = window(s);
	round_trip(s, 2);
	assert_in_range(100 * window(s) / before, 54, 56);
}

/* In the next round trip, losses concern frames sent before the decrease. */
static void lose__once_per_round_trip(void **state)
{
	struct sender *s = open_cut(1000, 2 * RTT);
	uint32_t before = window(s);

	round_trip(s, 5);
	assert_int_equal(window(s), before);
	round_trip(s, 5);
	assert_true(window(s) < before);
}

/* Lost frames found no room in the queue, so at most a few frames replace them
 * in this round trip. */
static void lose__leaves_places_empty(void **state)
{
	struct sender *s = open_cut(1000, 2 * RTT);

	round_trip(s, 0); /* a round trip that does not count */
	s->c.paced = UINT64_MAX / 2;
	while (s->consumed - s->c.settled < window(s))
		s->consumed += FRAME;
	sw_congestion_lose(&s->c, s->consumed, FAR, 2 * FRAME, s->rtt);
	assert_int_equal(s->c.limit, s->c.settled + window(s) - 2 * FRAME);
	sw_congestion_lose(
		&s->c, s->consumed, FAR, window(s) - 5 * FRAME, s->rtt);
	assert_int_equal(s->c.limit, s->c.settled + 4 * FRAME);
	acknowledge(s, (uint32_t)(s->consumed - s->c.settled));
	assert_int_equal(s->c.limit, s->c.settled + window(s));
}

/* If no queue grows and few frames are lost, the losses are random and not
 * congestion. */
static void lose__at_random_is_no_congestion(void **state)
{
	struct sender *s = open_sender();
	uint32_t before;

	while (window(s) < 1000)
		round_trip(s, 0);
	round_trip(s, 10); /* ends slow start */
	before = window(s);
	for (uint32_t i = 0; i < 200; i++)
		round_trip(s, i % 10 == 9 && window(s) > 500);
	assert_true(window(s) >= before);
}

static void lose__much_is_congestion(void **state)
{
	struct sender *s = open_sender();
	uint32_t before;

	while (window(s) < 4000)
		round_trip(s, 0);
	before = window(s);
	for (uint32_t i = 0; i < 20; i++)
		round_trip(s, window(s) / FRAME / 10);
	assert_true(window(s) < before / 2);
}

static void lose__ends_an_open_window(void **state)
{
	struct sender *s = open_sender();

	while (!sw_congestion_is_open(&s->c))
		round_trip(s, 0);
	s->consumed += 4000;
	s->rtt = 2 * RTT;
	sw_congestion_sample(&s->c, s->rtt);
	sw_congestion_lose(&s->c, s->consumed, FAR, 2 * FRAME, RTT);
	assert_false(sw_congestion_is_open(&s->c));
	acknowledge(s, 4000 - 2 * FRAME);
	assert_in_range(window(s), 2000, 3500);
}

static void increase__flat_where_frames_were_lost(void **state)
{
	struct sender *s = open_cut(1000, 2 * RTT);
	uint32_t top = s->c.top / SW_CONGESTION_UNIT, before = window(s), at;

	round_trip(s, 0); /* a round trip that does not count */
	round_trip(s, 0);
	assert_true(window(s) > before);
	while (window(s) < top - 5)
		round_trip(s, 0);
	at = window(s);
	round_trip(s, 0);
	assert_in_range(window(s) - at, 0, 5);
	for (uint32_t i = 0; i < 100; i++)
		round_trip(s, 0);
	assert_true(window(s) > 2 * top);
}

/* Return the growth of a window on the flat part of the curve, in units. */
static uint32_t growth_at_the_top(uint64_t rtt)
{
	struct sender *s = open_cut(1000, 2 * RTT);
	uint32_t before;

	round_trip(s, 0); /* a round trip that does not count */
	s->c.n_rounds = s->c.n_flat - 1;
	s->c.window = before = s->c.top;
	s->rtt = rtt;
	round_trip(s, 0);
	return s->c.window - before;
}

static void increase__slow_near_the_longest_queue(void **state)
{
	uint32_t middle = growth_at_the_top(RTT + RTT / 2);

	assert_true(middle > 0);
	assert_in_range(growth_at_the_top(2 * RTT), 1, middle / 4);
}

enum { LONG = FRAME * 500 * 1000 }; /* a round trip that counts twice */

/* Rounds without loss after which a window of a few frames, that lost one, has
 * doubled; in so long round trips. */
static uint32_t rounds_to_double(uint64_t rtt)
{
	struct sender *s = open_cut(300, 2 * RTT);
	uint32_t n = 0, before;

	round_trip(s, 0); /* does not count */
	before = window(s);
	for (s->rtt = rtt; window(s) < 2 * before; n++)
		round_trip(s, 0);
	return n;
}

/* Who has little of a long queue soon has more. */
static void increase__by_time_in_long_round_trips(void **state)
{
	uint32_t n = rounds_to_double(LONG - 1);

	assert_in_range(rounds_to_double(4 * LONG), 1, n / 2);
	assert_in_range(rounds_to_double(12 * LONG), 1, n / 4);
}

/* Growth of a window of @quanta in a long round past the top, in units. */
static uint32_t growth_past_the_top(uint32_t quanta, uint64_t rtt)
{
	struct sender *s = open_cut(quanta, 2 * RTT);
	uint32_t before;

	round_trip(s, 0); /* does not count */
	s->c.n_rounds = s->c.n_flat + 10;
	s->c.window = before = s->c.top;
	s->rtt = rtt;
	round_trip(s, 0);
	return s->c.window - before;
}

/* However small a window is. */
static void increase__alike_past_the_top(void **state)
{
	uint32_t small = growth_past_the_top(300, LONG);

	assert_int_equal(small, growth_past_the_top(1000, LONG));
	assert_true(small > 2 * growth_past_the_top(300, LONG - 1));
}

/* Growth of a window of @quanta in three rounds after a decrease, in units. */
static uint32_t growth_after_a_cut(uint32_t quanta, uint64_t rtt)
{
	struct sender *s = open_cut(quanta, 2 * RTT);
	uint32_t before;

	round_trip(s, 0); /* does not count */
	before = s->c.window;
	s->rtt = rtt;
	for (uint32_t i = 0; i < 3; i++)
		round_trip(s, 0);
	return s->c.window - before;
}

/* Two frames per round, which a small window's curve does not reach. */
static void increase__along_a_line_in_long_round_trips(void **state)
{
	uint32_t least = 3 * 2 * FRAME * SW_CONGESTION_UNIT;

	assert_in_range(
		growth_after_a_cut(300, 4 * LONG), least * 7 / 8, least);
	assert_true(growth_after_a_cut(1000, 4 * LONG) >= least);
	assert_true(growth_after_a_cut(300, LONG - 1) < least / 2);
}

/* Near the longest queue by a frame at most, in longer rounds by more, up to a
 * quarter or the line's growth. */
static void increase__without_a_burst(void **state)
{
	static const struct {
		uint32_t times, part, frames;
	} of[] = {{1, 256, 1}, {4, 32, 2}, {12, 4, 18}};

	for (uint32_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		struct sender *s = open_cut(1000, 2 * RTT);
		uint32_t before, most;

		most = of[i].frames * FRAME * SW_CONGESTION_UNIT;
		round_trip(s, 0); /* does not count */
		s->c.n_rounds = s->c.n_flat + 200;
		before = s->c.window;
		most = before / of[i].part > most ? before / of[i].part : most;
		s->rtt = (uint64_t)of[i].times * LONG;
		round_trip(s, 0);
		assert_int_equal(s->c.window - before, most);
	}
}

static void decay__when_not_used(void **state)
{
	struct sender *s = open_cut(4000, 2 * RTT);

	for (uint32_t i = 0; i < 100; i++) {
		s->consumed += FRAME;
		acknowledge(s, FRAME);
	}
	assert_in_range(window(s), 200, SW_CONGESTION_START);
}

/* Run a round trip in which the last @n_marked frames are marked. */
static void marked_round(struct sender *s, uint32_t n_marked)
{
	while (s->consumed - s->c.settled < window(s))
		s->consumed += FRAME;
	if (n_marked)
		sw_congestion_mark(&s->c, s->consumed, n_marked * FRAME);
	round_trip(s, 0);
}

static void mark__ends_the_slow_start(void **state)
{
	struct sender *s = open_sender();
	uint32_t before;

	while (window(s) < 1000)
		round_trip(s, 0);
	before = window(s);
	marked_round(s, before / FRAME / 2);
	assert_in_range(100 * window(s) / before, 70, 80); /* a quarter less */
	assert_false(s->c.is_slow);
}

static void mark__ends_an_open_window(void **state)
{
	struct sender *s = open_sender();

	while (!sw_congestion_is_open(&s->c))
		round_trip(s, 0);
	s->consumed += 4000;
	sw_congestion_mark(&s->c, s->consumed, FRAME);
	assert_false(sw_congestion_is_open(&s->c));
	acknowledge(s, 4000);
	assert_in_range(window(s), 2000, 4000);
}

/* Few marks shrink the window only a little (RFC 8257). */
static void mark__shrinks_by_the_part(void **state)
{
	struct sender *s = open_cut(4000, RTT);
	uint32_t n = window(s) / FRAME, before;

	round_trip(s, 0); /* a round trip that does not count */
	for (uint32_t i = 0; i < 100; i++)
		marked_round(s, i % 2 ? n / 20 : 0);
	before = window(s);
	marked_round(s, n / 20);
	assert_in_range(100 * window(s) / before, 95, 102);
	assert_true(s->c.marked_part < 1 << 13);
}

/* Forged ACKs mark more frames than were sent: the window keeps a minimum. */
static void mark__forged(void **state)
{
	struct sender *s = open_sender();

	for (uint32_t i = 0; i < 100; i++)
		marked_round(s, UINT16_MAX);
	assert_in_range(window(s), 1, FRAME);
	for (uint32_t i = 0; i < 400; i++)
		marked_round(s, 0);
	assert_true(window(s) > 10 * FRAME);
}

/* If the lost frame was only late, the window is restored. */
static void undo__restores_the_window(void **state)
{
	struct sender *s = open_sender();
	uint32_t before;

	while (window(s) < 1000)
		round_trip(s, 0);
	before = window(s);
	round_trip(s, 40);
	assert_true(window(s) < before);
	sw_congestion_undo(&s->c);
	assert_int_equal(window(s), before);
	assert_true(s->c.limit == s->c.settled + before);
	sw_congestion_undo(&s->c); /* a second undo has no effect */
	assert_int_equal(window(s), before);
	round_trip(s, 0);
	/* the window doubles again */
	assert_true(window(s) > before + before / 2);
}

static void ask__four_in_a_window(void **state)
{
	struct sw_congestion c;
	uint64_t consumed = 0, n = 0;

	sw_congestion_init(&c, FRAME, FULL, true);
	for (; consumed < c.limit; consumed += FRAME)
		if (consumed >= c.ask_at)
			n += sw_congestion_ask(&c, consumed, FULL);
	assert_in_range(n, 2, 4);
	c.ask_at = 0;
	assert_false(sw_congestion_ask(&c, consumed, c.limit - 1));
}

/* --- the pace --- */

/* Return the quanta that a sender with enough data releases in @ns. */
static uint64_t leave_in(struct sender *s, uint64_t ns)
{
	struct sw_congestion *c = &s->c;
	uint64_t begin = s->now_ns, at, n = 0;

	c->paced = s->consumed;
	c->paced_ns = begin;
	c->release_ns = begin;
	for (at = begin; at < begin + ns;) {
		uint64_t next = sw_congestion_tick(c, s->consumed, true, at);

		assert_in_range(next, at + 1, at + RTT / 2);
		assert_in_range(c->paced - s->consumed, 0, window(s) / 4);
		n += c->paced - s->consumed;
		s->consumed = c->paced;
		at = next;
	}
	return n;
}

/* Pacing releases 5/4 of the window per round trip. */
static void pace__spreads_a_window(void **state)
{
	struct sender *s = open_cut(1000, 2 * RTT);
	uint64_t n = leave_in(s, 4 * s->rtt);

	assert_in_range(n, window(s) * 4 * 6 / 5, window(s) * 4 * 13 / 10);
}

/* If the queue is short, frames leave no faster than they arrive. */
static void pace__heeds_a_short_queue(void **state)
{
	struct sender *s = open_cut(1000, RTT + RTT / 12);
	uint64_t n = leave_in(s, 4 * s->rtt);

	assert_in_range(n, window(s) * 4, window(s) * 4 * 11 / 10);
}

static void pace__of_less_than_a_frame(void **state)
{
	struct sender *s = open_sender();
	struct sw_congestion *c = &s->c;
	uint64_t at = s->now_ns, least = UINT64_MAX, most = 0;

	s->rtt = 2 * RTT;
	round_trip(s, 0);
	for (uint32_t i = 0; i < 20; i++)
		round_trip(s, window(s) / FRAME + 1);
	assert_true(window(s) < FRAME / 2);
	assert_true(window(s) > 0);
	c->paced = s->consumed;
	c->paced_ns = c->release_ns = at;
	for (uint32_t i = 0; i < 50; i++) {
		uint64_t from = at, next = at;

		c->release_ns = sw_min64(c->release_ns, at);
		while (c->paced <= s->consumed) {
			at = next;
			next = sw_congestion_tick(c, s->consumed, false, at);
		}
		s->consumed += FRAME;
		if (i && at - from < least)
			least = at - from;
		if (i && at - from > most)
			most = at - from;
	}
	assert_true(least > RTT);
	assert_true(most > least + RTT / 4); /* losses at random */
}

static void pace__ends_when_nothing_is_sent(void **state)
{
	struct sender *s = open_cut(1000, 2 * RTT);
	struct sw_congestion *c = &s->c;

	c->release_ns = s->now_ns;
	c->paced = s->consumed;
	c->paced_ns = s->now_ns - RTT;
	assert_true(sw_congestion_tick(c, s->consumed, false, s->now_ns) ==
		    UINT64_MAX);
	assert_true(c->limit > s->consumed);
	assert_true(sw_congestion_start(c, s->now_ns) > s->now_ns);
}

/* Returned grants never count as in flight. */
static void skip__moves_all_counts(void **state)
{
	struct sender *s = open_cut(1000, 2 * RTT);
	uint64_t left = s->c.limit - s->consumed;

	sw_congestion_skip(&s->c, 500);
	s->consumed += 500;
	assert_true(s->c.limit - s->consumed == left);
	assert_true(s->c.settled == s->consumed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(init__starts_small),
		cmocka_unit_test(disable__neither_loss_nor_marks_limit),
		cmocka_unit_test(slow_start__doubles_until_it_is_open),
		cmocka_unit_test(slow_start__needs_use),
		cmocka_unit_test(lose__shrinks_by_the_part),
		cmocka_unit_test(lose__shrinks_more_with_a_long_queue),
		cmocka_unit_test(lose__in_no_time),
		cmocka_unit_test(lose__once_per_round_trip),
		cmocka_unit_test(lose__leaves_places_empty),
		cmocka_unit_test(lose__at_random_is_no_congestion),
		cmocka_unit_test(lose__much_is_congestion),
		cmocka_unit_test(lose__ends_an_open_window),
		cmocka_unit_test(increase__flat_where_frames_were_lost),
		cmocka_unit_test(increase__slow_near_the_longest_queue),
		cmocka_unit_test(increase__by_time_in_long_round_trips),
		cmocka_unit_test(increase__alike_past_the_top),
		cmocka_unit_test(increase__along_a_line_in_long_round_trips),
		cmocka_unit_test(increase__without_a_burst),
		cmocka_unit_test(decay__when_not_used),
		cmocka_unit_test(mark__ends_the_slow_start),
		cmocka_unit_test(mark__ends_an_open_window),
		cmocka_unit_test(mark__shrinks_by_the_part),
		cmocka_unit_test(mark__forged),
		cmocka_unit_test(undo__restores_the_window),
		cmocka_unit_test(ask__four_in_a_window),
		cmocka_unit_test(pace__spreads_a_window),
		cmocka_unit_test(pace__heeds_a_short_queue),
		cmocka_unit_test(pace__of_less_than_a_frame),
		cmocka_unit_test(pace__ends_when_nothing_is_sent),
		cmocka_unit_test(skip__moves_all_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
