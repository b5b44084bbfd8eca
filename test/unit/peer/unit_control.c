/* unit_control.c - the ordered control stream under loss and reordering.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/peer/control.h"

#include <string.h>

#include "test/support/unit.h"

static const struct sw_params *params(void)
{
	static struct sw_params p;

	sw_params_init(&p);
	return &p;
}

static struct sw_stats st;
static uint64_t now_ns;

/* Both ends of a session after @n messages. */
struct ends {
	struct sw_control from, to;
};

static struct ends open_at(uint32_t n)
{
	struct ends e = {
		{.n_built = n, .n_sent = n, .n_acked = n}, {.n_taken = n}};

	memset(&st, 0, sizeof(st));
	now_ns = SW_S;
	return e;
}

static struct sw_header put(struct ends *e, uint8_t what)
{
	struct sw_header h = {.type = SW_STATUS, .payload_len = 1};

	sw_control_put(&e->from, &h, &what, params(), now_ns);
	return h;
}

static bool take(struct ends *e, struct sw_header h)
{
	return sw_control_take(&e->to, &h, &st);
}

/* Acknowledge every message taken so far. */
static bool ack(struct ends *e)
{
	struct sw_header h = {.ctl.taken = (uint16_t)e->to.n_taken};

	return sw_control_on_ack(&e->from, &h, params(), now_ns, &st);
}

/* Let @ns pass; return the time until the timer is due. */
static uint64_t tick(struct ends *e, uint64_t ns)
{
	uint64_t at_ns;

	now_ns += ns;
	at_ns = sw_control_tick(&e->from, params(), now_ns);
	return at_ns == UINT64_MAX ? UINT64_MAX : at_ns - now_ns;
}

static void control__in_order(void **state)
{
	struct ends e = open_at(0);

	assert_true(sw_control_is_idle(&e.from));
	assert_int_equal(tick(&e, 0), UINT64_MAX);
	for (uint32_t i = 1; i <= 100; i++) {
		struct sw_header h = put(&e, (uint8_t)i);

		assert_int_equal(h.ctl.number, i);
		assert_false(sw_control_has_acked(&e.from, i));
		assert_true(take(&e, h));
		assert_true(ack(&e));
		assert_true(sw_control_has_acked(&e.from, i));
		assert_true(sw_control_is_idle(&e.from));
	}
	assert_int_equal(st.rx_state, 0);
}

/* A lost message is retransmitted with all messages after it, in order. The
 * interval doubles up to retry_max, and starts over after progress. */
static void control__loss(void **state)
{
	struct ends e = open_at(0);
	uint64_t wait = params()->retry_min;
	struct sw_header h;

	put(&e, 'a'); /* lost */
	assert_false(take(&e, put(&e, 'b')));
	assert_false(sw_control_has_again(&e.from));
	assert_int_equal(tick(&e, wait - 1), 1);
	assert_false(sw_control_has_again(&e.from));
	for (uint32_t i = 0; i < 9; i++) {
		uint64_t next = sw_min64(2 * wait, params()->retry_max);

		assert_int_equal(tick(&e, i ? wait : 1), next);
		wait = next;
		for (uint32_t m = 0; m < 2; m++) {
			const struct sw_message *again =
				sw_control_again(&e.from);

			assert_int_equal(again->head.ctl.number, m + 1);
			assert_int_equal(again->payload[0], 'a' + m);
		}
		assert_false(sw_control_has_again(&e.from));
	}
	assert_int_equal(wait, params()->retry_max);
	h = e.from.window[1].head;
	assert_true(take(&e, h));
	assert_true(ack(&e));
	assert_int_equal(tick(&e, 0), params()->retry_min);
	assert_true(take(&e, e.from.window[2].head));
	assert_true(ack(&e));
	assert_int_equal(tick(&e, SW_S), UINT64_MAX);
}

static void control__duplicate(void **state)
{
	struct ends e = open_at(0);
	struct sw_header a = put(&e, 'a'), b = put(&e, 'b');

	assert_true(take(&e, a));
	assert_false(take(&e, a));
	assert_true(take(&e, b));
	assert_false(take(&e, a));
	assert_false(take(&e, b));
	assert_true(ack(&e));
	assert_false(ack(&e));
	assert_int_equal(e.to.n_taken, 2);
	assert_int_equal(st.rx_state, 0);
}

static void control__any_order(void **state)
{
	struct ends e = open_at(0);
	struct sw_header a = put(&e, 'a'), b = put(&e, 'b'), c = put(&e, 'c');

	assert_false(take(&e, c));
	assert_false(take(&e, b));
	assert_false(ack(&e));
	assert_true(take(&e, a));
	assert_false(take(&e, c));
	assert_true(take(&e, b));
	assert_true(take(&e, c));
	assert_true(ack(&e));
	assert_true(sw_control_is_idle(&e.from));
}

/* An acknowledgement that arrives after a newer one is ignored. */
static void ack__late(void **state)
{
	struct ends e = open_at(0);
	struct sw_header old = {.ctl.taken = 1};

	for (uint32_t i = 0; i < 3; i++)
		assert_true(take(&e, put(&e, 'a')));
	assert_true(ack(&e));
	assert_false(sw_control_on_ack(&e.from, &old, params(), now_ns, &st));
	assert_int_equal(e.from.n_acked, 3);
	assert_int_equal(st.rx_state, 0);
}

/* An acknowledgement during a retransmission stops the messages that it
 * covers. */
static void ack__while_sending_again(void **state)
{
	struct ends e = open_at(0);

	for (uint32_t i = 0; i < 3; i++)
		assert_true(take(&e, put(&e, 'a')));
	tick(&e, SW_S);
	assert_int_equal(sw_control_again(&e.from)->head.ctl.number, 1);
	e.to.n_taken = 2;
	assert_true(ack(&e));
	assert_true(sw_control_has_again(&e.from));
	assert_int_equal(sw_control_again(&e.from)->head.ctl.number, 3);
	assert_false(sw_control_has_again(&e.from));
}

static void ack__of_what_was_not_sent(void **state)
{
	struct ends e = open_at(0);
	struct sw_header h = {.ctl.taken = 1};

	assert_false(sw_control_on_ack(&e.from, &h, params(), now_ns, &st));
	assert_int_equal(st.rx_state, 1);
	put(&e, 'a');
	put(&e, 'b');
	for (h.ctl.taken = 3; h.ctl.taken < 0x8000; h.ctl.taken++)
		assert_false(
			sw_control_on_ack(&e.from, &h, params(), now_ns, &st));
	assert_int_equal(st.rx_state, 1 + 0x8000 - 3);
	for (; h.ctl.taken; h.ctl.taken++) /* numbers of long ago */
		assert_false(
			sw_control_on_ack(&e.from, &h, params(), now_ns, &st));
	assert_int_equal(st.rx_state, 1 + 0x8000 - 3);
	assert_int_equal(e.from.n_acked, 0);
	h.ctl.taken = 2;
	assert_true(sw_control_on_ack(&e.from, &h, params(), now_ns, &st));
}

static void window__full(void **state)
{
	struct ends e = open_at(0);

	for (uint32_t i = 0; i < SW_CONTROL_WINDOW; i++) {
		assert_false(sw_control_is_full(&e.from));
		assert_true(take(&e, put(&e, (uint8_t)i)));
	}
	assert_true(sw_control_is_full(&e.from));
	e.to.n_taken = 1;
	assert_true(ack(&e));
	assert_false(sw_control_is_full(&e.from));
	put(&e, 'a');
	assert_true(sw_control_is_full(&e.from));
	/* the newest state has replaced the first one in the last slot */
	tick(&e, SW_S);
	for (uint32_t i = 2; i <= SW_CONTROL_WINDOW + 1; i++)
		assert_int_equal(sw_control_again(&e.from)->head.ctl.number, i);
	assert_false(sw_control_has_again(&e.from));
}

/* An honest peer never sends a number beyond the window. */
static void take__gap_that_never_closes(void **state)
{
	struct ends e = open_at(0);
	struct sw_header h = {.type = SW_STATUS};

	for (h.ctl.number = 2; h.ctl.number <= SW_CONTROL_WINDOW;
		h.ctl.number++)
		assert_false(take(&e, h));
	assert_int_equal(st.rx_state, 0);
	for (; h.ctl.number < 0x8000; h.ctl.number++)
		assert_false(take(&e, h));
	assert_int_equal(st.rx_state, 0x8000 - SW_CONTROL_WINDOW - 1);
	assert_int_equal(e.to.n_taken, 0);
}

static void stuck__after_dead_after(void **state)
{
	struct ends e = open_at(0);
	uint64_t dead = params()->dead_after;

	now_ns += 2 * dead; /* no message was sent */
	assert_false(sw_control_is_stuck(&e.from, params(), now_ns));
	put(&e, 'a');
	tick(&e, dead - 1);
	sw_control_again(&e.from);
	put(&e, 'b'); /* a new message is no progress */
	assert_false(sw_control_is_stuck(&e.from, params(), now_ns));
	tick(&e, 1);
	assert_true(sw_control_is_stuck(&e.from, params(), now_ns));
	e.to.n_taken = 1;
	assert_true(ack(&e));
	assert_false(sw_control_is_stuck(&e.from, params(), now_ns));
	tick(&e, dead);
	assert_true(sw_control_is_stuck(&e.from, params(), now_ns));
}

/* The rules also hold across 2^16, the range of numbers in frames, and 2^32. */
static void numbers__wrap(void **state)
{
	const uint32_t starts[] = {0xfffa, 0x7ffa, 0xfffffffa, 0x7ffffffa};

	for (uint32_t s = 0; s < SW_ARRAY_SIZE(starts); s++) {
		struct ends e = open_at(starts[s]);

		for (uint32_t i = 1; i <= 20; i++) {
			struct sw_header a = put(&e, 'a'), b = put(&e, 'b');

			assert_int_equal(
				b.ctl.number, (uint16_t)(starts[s] + 2 * i));
			assert_false(take(&e, b));
			assert_true(take(&e, a));
			assert_false(take(&e, a));
			assert_true(ack(&e));
			tick(&e, SW_S);
			assert_true(take(&e, sw_control_again(&e.from)->head));
			assert_true(ack(&e));
			assert_true(sw_control_is_idle(&e.from));
			assert_true(sw_control_has_acked(
				&e.from, starts[s] + 2 * i));
			assert_false(sw_control_has_acked(
				&e.from, starts[s] + 2 * i + 1));
		}
		assert_int_equal(st.rx_state, 0);
	}
}

static void reset__begins_with_1(void **state)
{
	struct ends e = open_at(70000);

	put(&e, 'a');
	sw_control_reset(&e.from);
	sw_control_reset(&e.to);
	assert_true(sw_control_is_idle(&e.from));
	assert_int_equal(tick(&e, SW_S), UINT64_MAX);
	assert_true(take(&e, put(&e, 'b')));
	assert_true(ack(&e));
}

/* A thousand runs with random loss, repetition and order of frames and
 * acknowledgements: the receiver takes each message once, in order. */
static void control__of_any_disturbance(void **state)
{
	uint32_t seed = 1;

	for (uint32_t run = 0; run < 1000; run++) {
		struct ends e = open_at(0xfff0);
		struct sw_header air[64];
		uint32_t n_air = 0, n_taken = 0, n_put = 0;

		while (n_taken < 60) {
			uint32_t dice;

			seed = seed * 1664525 + 1013904223;
			dice = seed >> 24;
			if (!sw_control_is_full(&e.from) && n_put < 60 &&
				!sw_control_has_again(&e.from) && dice < 100)
				air[n_air++ % 64] = put(&e, (uint8_t)n_put++);
			else if (sw_control_has_again(&e.from))
				air[n_air++ % 64] =
					sw_control_again(&e.from)->head;
			else if (dice < 110)
				tick(&e, SW_S / 4);
			else if (dice < 150)
				ack(&e);
			/* deliver one of the last eight frames */
			if (n_air &&
				take(&e, air[(n_air - 1 - dice % 8 % n_air) %
						 64]))
				n_taken++;
		}
		assert_int_equal(e.to.n_taken, 0xfff0 + 60);
		assert_int_equal(st.rx_state, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(control__in_order),
		cmocka_unit_test(control__loss),
		cmocka_unit_test(control__duplicate),
		cmocka_unit_test(control__any_order),
		cmocka_unit_test(control__of_any_disturbance),
		cmocka_unit_test(ack__late),
		cmocka_unit_test(ack__while_sending_again),
		cmocka_unit_test(ack__of_what_was_not_sent),
		cmocka_unit_test(window__full),
		cmocka_unit_test(take__gap_that_never_closes),
		cmocka_unit_test(stuck__after_dead_after),
		cmocka_unit_test(numbers__wrap),
		cmocka_unit_test(reset__begins_with_1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
