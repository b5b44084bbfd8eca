/* unit_flow.c - packet numbers and credit of a flow.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/flow_rig.h"

/* --- life --- */

/* If the window has few frames, ACKs do not wait for the 16th (A9). */
static void init__ack_threshold_follows_the_window(void **state)
{
	assert_int_equal(open_with(1344, 512 * 1024)->f.ack_every, 16);
	assert_int_equal(open_with(8192, 10 * 8192)->f.ack_every, 1);
	assert_int_equal(open_with(8192, 3 * 8192)->f.ack_every, 1);
	assert_int_equal(open_with(8192, 8192)->f.ack_every, 1);
	assert_int_equal(open_with(8192, 1024)->f.ack_every, 1);
}

/* --- sending --- */

static void send__numbers_per_class(void **state)
{
	struct fixture *x = open_flow();
	struct sw_header h = {.type = SW_KEEPALIVE};

	assert_int_equal(send(x, 0), 1);
	assert_int_equal(send(x, 0), 2);
	assert_int_equal(send(x, 7), 1);
	sw_flow_send_ctl(&x->f, &h);
	assert_int_equal(h.psn, 1);
	assert_int_equal(h.class, SW_CLASS_CTL);
	sw_flow_send_ctl(&x->f, &h);
	assert_int_equal(h.psn, 2);
	assert_int_equal(x->f.open_mask, 0x81);
}

/* Every copy is charged, also the lost ones (A9). */
static void send__charges_quanta(void **state)
{
	struct fixture *x = open_flow();
	struct sw_header h = {.type = SW_PUSH, .payload_len = 1344};

	sw_flow_send(&x->f, &h, 0, x->now_ns);
	assert_int_equal(h.consumed, FRAME);
	h.payload_len = 1024;
	sw_flow_send(&x->f, &h, 0, x->now_ns);
	assert_int_equal(h.consumed, FRAME + 18);
	h.payload_len = 1;
	sw_flow_send(&x->f, &h, 0, x->now_ns);
	assert_int_equal(h.consumed, FRAME + 18 + SW_QUANTA_MIN);
	h.payload_len = 0;
	sw_flow_send(&x->f, &h, 0, x->now_ns);
	for (uint32_t i = 0; i < 4; i++)
		tick(x, SW_S); /* in the end all are lost */
	assert_int_equal(x->n_lost, 4);
	sw_flow_send_ctl(&x->f, &h);
	/* control frames cost no credit */
	assert_int_equal(h.consumed, FRAME + 18 + SW_QUANTA_MIN);
	assert_int_equal(h.grant, x->f.window);
}

static void can_send__credit_ends(void **state)
{
	struct fixture *x = open_flow();

	x->f.granted = FRAME + 1; /* the second frame may exceed the grant */
	send(x, 0);
	send(x, 0);
	assert_false(sw_flow_can_send(&x->f, 0));
	assert_false(sw_flow_can_send(&x->f, 7));
}

/* The room equals the number of full frames that could be sent one by one: by
 * credit, by congestion window and by packet numbers. */
static void room__agrees_with_can_send(void **state)
{
	const uint64_t limits[][2] = {{1, 1 << 19}, {FRAME, 1 << 19},
		{FRAME + 1, 1 << 19}, {1 << 19, 5 * FRAME - 1},
		{1 << 19, 1 << 19}};
	const uint32_t wanted[] = {1, 1, 2, 5, SW_SENT_RING};

	for (uint32_t i = 0; i < 5; i++) {
		struct fixture *x = open_flow();
		uint32_t room;

		x->f.granted = limits[i][0];
		x->f.congestion.limit = limits[i][1];
		assert_int_equal(sw_flow_room(&x->f, 3, 1), 1);
		room = sw_flow_room(&x->f, 3, 1000);
		assert_int_equal(room, wanted[i]);
		while (room--)
			send(x, 3);
		assert_false(sw_flow_can_send(&x->f, 3));
	}
}

/* Without credit one frame may be sent when no frame is in flight, whatever
 * happened to earlier frames. Before the first credit no frame may be sent. */
static void can_send__one_without_credit(void **state)
{
	struct fixture *x = open_flow();

	x->f.granted = FRAME;
	send(x, 0);
	assert_false(sw_flow_can_send(&x->f, 0));
	ack(x, 0, 1, 0, 0);
	send(x, 0);
	assert_false(sw_flow_can_send(&x->f, 0));
	assert_false(sw_flow_can_send(&x->f, 7));
	x->f.granted = 0;
	ack(x, 0, 2, 0, 0);
	assert_false(sw_flow_can_send(&x->f, 0));
}

static void can_send__ring_is_full(void **state)
{
	struct fixture *x = open_flow();

	for (uint32_t i = 0; i < SW_SENT_RING; i++)
		send(x, 2);
	assert_false(sw_flow_can_send(&x->f, 2));
	assert_true(sw_flow_can_send(&x->f, 3));
	/* While the oldest frame is open, its number's slot cannot be
	 * reused. */
	ack(x, 2, SW_SENT_RING, ~0ULL, 0);
	assert_false(sw_flow_can_send(&x->f, 2));
	ack(x, 2, 1, 0, 0);
	assert_true(sw_flow_can_send(&x->f, 2));
}

/* The ring grows with the frames in flight, at any position, and loses none:
 * each frame is acknowledged once under its own number. */
static void ring__grows_with_what_is_in_flight(void **state)
{
	struct fixture *x = open_flow();
	uint64_t next = 1;

	for (; next <= 50; next++) { /* one frame at a time */
		assert_int_equal(send(x, 1), next);
		ack(x, 1, next, 0, 0);
	}
	assert_int_equal(x->f.space[1].mask, SW_SENT_FEW - 1);
	assert_int_equal(
		sw_flow_room(&x->f, 1, SW_SENT_FEW / 2), SW_SENT_FEW / 2);
	assert_int_equal(x->f.space[1].mask, SW_SENT_FEW - 1);
	for (; next <= 150; next++)
		assert_int_equal(send(x, 1), next);
	assert_int_equal(x->f.space[1].mask, SW_SENT_RING - 1);
	x->n_acked = 0;
	for (uint64_t psn = 51; psn < next; psn++) {
		ack(x, 1, psn, 0, 0);
		assert_int_equal(x->last.psn, psn);
	}
	assert_int_equal(x->n_acked, 100);
	assert_int_equal(x->n_lost, 0);
	assert_int_equal(x->f.space[1].n_open, 0);
	/* no frame was sent in this class */
	assert_int_equal(x->f.space[2].mask, 0);
}

/* --- hearing --- */

static bool hear(struct fixture *x, uint8_t class, uint64_t psn,
	uint32_t consumed, uint32_t grant)
{
	struct sw_header h = {.class = class,
		.psn = psn,
		.consumed = consumed,
		.grant = grant};

	return sw_flow_rx(&x->f, &h);
}

/* Count the frames of a run up to the first one beyond the limit. */
static void within__up_to_the_first_beyond(void **state)
{
	struct fixture *x = open_flow();
	uint32_t most = (uint32_t)x->f.given + SW_CREDIT_SLACK;
	const struct sw_header h[] = {{.consumed = most - 1},
		{.consumed = most, .payload_len = 1344},
		{.consumed = most + 1, .payload_len = 1344}};

	assert_int_equal(sw_flow_within(&x->f, h, 3), 2);
	assert_int_equal(x->f.n_since_given, FRAME);
	assert_int_equal(sw_flow_within(&x->f, h + 2, 1), 0);
	assert_int_equal(x->f.n_since_given, FRAME);
}

static void hear__in_order(void **state)
{
	struct fixture *x = open_flow();
	struct sw_header h = {0};

	x->f.granted = 0;
	assert_true(hear(x, 0, 1, 10, 100));
	assert_int_equal(x->f.granted, 100);
	assert_int_equal(x->f.peer_consumed, 10);
	assert_false(hear(x, 0, 2, 12, 100)); /* no new grant */
	assert_int_equal(x->f.peer_consumed, 12);
	sw_flow_send_ctl(&x->f, &h);
	assert_int_equal(h.grant, 12 + x->f.window);
}

static bool is_overdrawn(struct fixture *x, uint32_t consumed)
{
	struct sw_header h = {.consumed = consumed, .payload_len = 2048};

	return !sw_flow_within(&x->f, &h, 1);
}

/* The limit is the last grant that was sent, plus the slack. */
static void is_overdrawn__by_what_it_says(void **state)
{
	struct fixture *x = open_flow();
	uint32_t most = x->f.window + SW_CREDIT_SLACK;
	struct sw_header h = {0};

	sw_flow_send_ctl(&x->f, &h);
	assert_false(is_overdrawn(x, 0));
	assert_false(is_overdrawn(x, most));
	assert_true(is_overdrawn(x, most + 1));
	/* The count is noted anyway, so the next grant covers it. */
	hear(x, 0, 1, most + 1, 0);
	assert_true(is_overdrawn(x, most + 1));
	sw_flow_send_ctl(&x->f, &h);
	assert_false(is_overdrawn(x, most + 1));
	/* An implausible count is an old one, from before a wrap. */
	assert_false(is_overdrawn(x, most + 1 + (1u << 30)));
}

static void is_overdrawn__by_what_comes(void **state)
{
	struct fixture *x = open_flow();
	struct sw_header h = {0};

	sw_flow_send_ctl(&x->f, &h);
	for (uint32_t i = 0; i < (x->f.window + SW_CREDIT_SLACK) / 34; i++)
		assert_false(is_overdrawn(x, 1));
	assert_true(is_overdrawn(x, 1));
	sw_flow_send_ctl(&x->f, &h);
	assert_false(is_overdrawn(x, 1));
}

static void hear__past_and_duplicate(void **state)
{
	struct fixture *x = open_flow();

	x->f.granted = 0;
	hear(x, 0, 9, 50, 100);
	assert_false(hear(x, 0, 9, 90, 900));
	assert_false(hear(x, 0, 8, 90, 900));
	assert_int_equal(x->f.granted, 100);
	assert_int_equal(x->f.peer_consumed, 50);
}

/* A single number far ahead is not believed; if a second one follows it, the
 * frames in between were lost. Control frames may begin with any number. */
static void hear__far_ahead(void **state)
{
	struct fixture *x = open_flow();

	x->f.granted = 0;
	assert_false(hear(x, 0, SW_PSN_SKIP + 1, 1, 1));
	assert_true(hear(x, SW_CLASS_CTL, 5000, 1, 1));
	assert_false(hear(x, SW_CLASS_CTL, 0xffffffffffffULL, 2, 2));
	assert_true(hear(x, SW_CLASS_CTL, 5001, 3, 3));
	assert_false(hear(x, SW_CLASS_CTL, 7000, 4, 4));
	assert_false(hear(x, SW_CLASS_CTL, 7000, 4, 4));
	assert_true(hear(x, SW_CLASS_CTL, 7002, 5, 5));
	assert_false(hear(x, SW_CLASS_CTL, 7001, 9, 9));
	assert_int_equal(x->f.peer_consumed, 5);
}

/* Numbers of one space do not affect another. */
static void hear__spaces_are_apart(void **state)
{
	struct fixture *x = open_flow();

	x->f.granted = 0;
	hear(x, 0, 100, 50, 100);
	assert_true(hear(x, 1, 1, 60, 110));
	assert_true(hear(x, SW_CLASS_CTL, 1, 70, 120));
	assert_int_equal(x->f.peer_consumed, 70);
}

/* A grant never shrinks. */
static void hear__smaller_values(void **state)
{
	struct fixture *x = open_flow();

	x->f.granted = 0;
	hear(x, 0, 1, 50, 100);
	assert_false(hear(x, 0, 2, 40, 90));
	assert_int_equal(x->f.granted, 100);
	assert_int_equal(x->f.peer_consumed, 50);
}

static void hear__implausible_grant(void **state)
{
	struct fixture *x = open_flow();

	x->f.granted = 0;
	assert_false(hear(x, 0, 1, 0, SW_CREDIT_MAX + 1));
	assert_false(hear(x, 0, 2, 0, 0x7fffffff));
	assert_int_equal(x->f.granted, 0);
	assert_true(hear(x, 0, 3, 0, SW_CREDIT_MAX));
	assert_int_equal(x->f.granted, SW_CREDIT_MAX);
}

/* An implausibly large count is an old one, from before a wrap. */
static void hear__implausible_consumed(void **state)
{
	struct fixture *x = open_flow();

	hear(x, 0, 1, 10, 0);
	hear(x, 0, 2, 10 + SW_CREDIT_MAX + 1, 0);
	hear(x, 0, 3, 10 + 0x7fffffffu, 0);
	assert_int_equal(x->f.peer_consumed, 10);
	hear(x, 0, 4, 10 + SW_CREDIT_MAX, 0);
	assert_int_equal(x->f.peer_consumed, 10 + SW_CREDIT_MAX);
}

/* Counts continue beyond 2^32. */
static void hear__counts_wrap(void **state)
{
	struct fixture *x = open_flow();

	x->f.consumed = x->f.granted = 0xfffffff0ULL;
	x->f.peer_consumed = 0xfffffff0ULL;
	assert_true(hear(x, 0, 1, 5, 20));
	assert_true(x->f.granted == 0x100000014ULL);
	assert_true(x->f.peer_consumed == 0x100000005ULL);
	assert_false(hear(x, 0, 2, 0xfffffff8, 0xfffffff8));
}

/* Losses of 30 frames over time, a whole window, do not stop the flow (A9). */
static void credit__losses_do_not_leak(void **state)
{
	struct fixture *a = open_with(1344, 30 * 1344);
	struct sw_header h = {.type = SW_PUSH, .payload_len = 1344};
	struct sw_flow b;

	sw_flow_init(&b, &a->params, NULL, false, 0);
	a->f.granted = b.window;
	for (uint32_t i = 0; i < 1000; i++) {
		if (!sw_flow_can_send(&a->f, 0))
			tick(a, SW_S); /* a probe may be sent */
		assert_true(sw_flow_can_send(&a->f, 0));
		sw_flow_give(&a->f);
		sw_flow_send(&a->f, &h, 0, a->now_ns);
		if (i % 10 == 9) { /* nine of ten frames are lost */
			struct sw_header answer = {0};

			sw_flow_rx(&b, &h);
			sw_flow_send_ctl(&b, &answer);
			sw_flow_rx(&a->f, &answer);
		}
		tick(a, SW_S);
	}
	assert_int_equal(b.peer_consumed, 1000 * FRAME);
	assert_int_equal(a->f.granted, 1000 * FRAME + b.window);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(init__ack_threshold_follows_the_window),
		cmocka_unit_test(send__numbers_per_class),
		cmocka_unit_test(send__charges_quanta),
		cmocka_unit_test(can_send__credit_ends),
		cmocka_unit_test(room__agrees_with_can_send),
		cmocka_unit_test(can_send__one_without_credit),
		cmocka_unit_test(can_send__ring_is_full),
		cmocka_unit_test(ring__grows_with_what_is_in_flight),
		cmocka_unit_test(is_overdrawn__by_what_it_says),
		cmocka_unit_test(is_overdrawn__by_what_comes),
		cmocka_unit_test(within__up_to_the_first_beyond),
		cmocka_unit_test(hear__in_order),
		cmocka_unit_test(hear__past_and_duplicate),
		cmocka_unit_test(hear__far_ahead),
		cmocka_unit_test(hear__spaces_are_apart),
		cmocka_unit_test(hear__smaller_values),
		cmocka_unit_test(hear__implausible_grant),
		cmocka_unit_test(hear__implausible_consumed),
		cmocka_unit_test(hear__counts_wrap),
		cmocka_unit_test(credit__losses_do_not_leak),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
