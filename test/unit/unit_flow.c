/* unit_flow.c - packet numbers, SACK, RTT, loss and credit.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <stdio.h>

#include "engine/flow.h"

/* A flow and the fates that it told. */
struct fixture {
	struct sw_params params;
	struct sw_flow f;
	uint64_t now_ns;
	uint32_t n_acked, n_lost;
	struct sw_sent last;
	char fates[1024]; /* "+1 -2": acknowledged 1, lost 2 */
};

static struct fixture *open_with(uint32_t payload, uint32_t window_bytes)
{
	static struct fixture x;

	memset(&x, 0, sizeof(x));
	sw_params_init(&x.params);
	x.params.payload = payload;
	x.params.window_bytes = window_bytes;
	x.now_ns = SW_S;
	sw_flow_init(&x.f, &x.params);
	x.f.granted = 1 << 15;
	return &x;
}

static struct fixture *open_flow(void)
{
	return open_with(1344, 512 * 1024);
}

static void on_fate(void *ctx, const struct sw_sent *sent, uint32_t class,
	enum sw_fate fate)
{
	struct fixture *x = ctx;
	size_t n = strlen(x->fates);

	(void)class;
	x->n_acked += fate == SW_ACKED;
	x->n_lost += fate == SW_LOST;
	x->last = *sent;
	if (n + 24 < sizeof(x->fates))
		snprintf(x->fates + n, sizeof(x->fates) - n, "%s%c%llu",
			n ? " " : "", fate == SW_ACKED ? '+' : '-',
			(unsigned long long)sent->psn);
}

static uint64_t send(struct fixture *x, uint8_t class)
{
	struct sw_header h = {.type = SW_PUSH,
		.class = class,
		.key = 5,
		.round = 6,
		.payload_len = 1344};

	assert_true(sw_flow_can_send(&x->f, class));
	sw_flow_send(&x->f, &h, 7, x->now_ns);
	return h.psn;
}

/* An ACK of @class: @largest, and of those before it the set bits. */
static bool ack(struct fixture *x, uint8_t class, uint64_t largest,
	uint64_t bits, uint16_t delay_us)
{
	struct sw_sack k = {.largest = largest,
		.bits = {bits},
		.class = class,
		.delay_us = delay_us};

	x->fates[0] = 0;
	return sw_flow_on_ack(&x->f, &k, 1, x->now_ns, on_fate, x);
}

static uint64_t tick(struct fixture *x, uint64_t ns)
{
	x->now_ns += ns;
	x->fates[0] = 0;
	return sw_flow_tick(&x->f, x->now_ns, on_fate, x);
}

static void accept(struct fixture *x, uint8_t class, uint64_t psn)
{
	sw_flow_accept(&x->f, class, psn, x->now_ns);
}

/* --- life --- */

/* The window counted in frames is small: do not wait for the 16th (A9). */
static void init__ack_threshold_follows_the_window(void **state)
{
	assert_int_equal(open_with(1344, 512 * 1024)->f.ack_every, 16);
	assert_int_equal(open_with(8192, 10 * 8192)->f.ack_every, 5);
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

/* Every copy is charged, the lost ones too (A9). */
static void send__charges_quanta(void **state)
{
	struct fixture *x = open_flow();
	struct sw_header h = {.type = SW_PUSH, .payload_len = 1344};

	sw_flow_send(&x->f, &h, 0, x->now_ns);
	assert_int_equal(h.consumed, 2);
	h.payload_len = 1024;
	sw_flow_send(&x->f, &h, 0, x->now_ns);
	assert_int_equal(h.consumed, 3);
	h.payload_len = 1;
	sw_flow_send(&x->f, &h, 0, x->now_ns);
	assert_int_equal(h.consumed, 4);
	tick(x, SW_S); /* all lost */
	assert_int_equal(x->n_lost, 3);
	sw_flow_send_ctl(&x->f, &h);
	assert_int_equal(h.consumed, 4); /* control costs none */
	assert_int_equal(h.grant, x->f.window);
}

static void can_send__credit_ends(void **state)
{
	struct fixture *x = open_flow();

	x->f.granted = 3; /* the second frame may overdraw */
	send(x, 0);
	send(x, 0);
	assert_false(sw_flow_can_send(&x->f, 0));
	assert_false(sw_flow_can_send(&x->f, 7));
}

static void can_send__ring_is_full(void **state)
{
	struct fixture *x = open_flow();

	for (uint32_t i = 0; i < SW_SENT_RING; i++)
		send(x, 2);
	assert_false(sw_flow_can_send(&x->f, 2));
	assert_true(sw_flow_can_send(&x->f, 3));
	/* The oldest one stays open: nothing may be reused. */
	ack(x, 2, SW_SENT_RING, ~0ULL, 0);
	assert_false(sw_flow_can_send(&x->f, 2));
	ack(x, 2, 1, 0, 0);
	assert_true(sw_flow_can_send(&x->f, 2));
}

/* --- hearing --- */

static bool hear(struct fixture *x, uint8_t class, uint64_t psn,
	uint32_t consumed, uint32_t grant)
{
	struct sw_header h = {.class = class,
		.psn = psn,
		.consumed = consumed,
		.grant = grant};

	return sw_flow_hear(&x->f, &h);
}

static void hear__in_order(void **state)
{
	struct fixture *x = open_flow();
	struct sw_header h = {0};

	x->f.granted = 0;
	assert_true(hear(x, 0, 1, 10, 100));
	assert_int_equal(x->f.granted, 100);
	assert_int_equal(x->f.peer_consumed, 10);
	assert_false(hear(x, 0, 2, 12, 100)); /* no news about the grant */
	assert_int_equal(x->f.peer_consumed, 12);
	sw_flow_send_ctl(&x->f, &h);
	assert_int_equal(h.grant, 12 + x->f.window);
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

/* Numbers of one space say nothing about another. */
static void hear__spaces_are_apart(void **state)
{
	struct fixture *x = open_flow();

	x->f.granted = 0;
	hear(x, 0, 1000, 50, 100);
	assert_true(hear(x, 1, 1, 60, 110));
	assert_true(hear(x, SW_CLASS_CTL, 1, 70, 120));
	assert_int_equal(x->f.peer_consumed, 70);
}

/* A grant never shrinks: what was promised stays promised. */
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

/* A count that nobody can have reached is one of long ago, over a wrap. */
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

/* The counts go on beyond 2^32. */
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

/* 30 frames lost over time do not stop the flow (A9). */
static void credit__losses_do_not_leak(void **state)
{
	struct fixture *a = open_with(1344, 30 * 1344);
	struct sw_header h = {.type = SW_PUSH, .payload_len = 1344};
	struct sw_flow b;

	sw_flow_init(&b, &a->params);
	a->f.granted = b.window;
	for (uint32_t i = 0; i < 1000; i++) {
		if (!sw_flow_can_send(&a->f, 0))
			tick(a, SW_S); /* a probe may go */
		assert_true(sw_flow_can_send(&a->f, 0));
		sw_flow_send(&a->f, &h, 0, a->now_ns);
		if (i % 10 == 9) { /* nine of ten are lost */
			struct sw_header answer = {0};

			sw_flow_hear(&b, &h);
			sw_flow_send_ctl(&b, &answer);
			sw_flow_hear(&a->f, &answer);
		}
		tick(a, SW_S);
	}
	assert_int_equal(b.peer_consumed, 2000);
	assert_int_equal(a->f.granted, 2000 + b.window);
}

/* --- what is acknowledged --- */

/* Receive the numbers of @psns (0 ends) and give the SACK's bits. */
static struct sw_sack sack_after(const uint64_t *psns)
{
	struct fixture *x = open_flow();
	struct sw_sack out[SW_N_CLASSES];

	for (; *psns; psns++)
		accept(x, 0, *psns);
	assert_int_equal(sw_flow_build_ack(&x->f, x->now_ns, 0, out), 1);
	return out[0];
}

static void accept__in_order(void **state)
{
	struct sw_sack k = sack_after((uint64_t[]){1, 2, 3, 0});

	assert_int_equal(k.largest, 3);
	assert_int_equal(k.bits[0], 3);
}

static void accept__gap_then_late(void **state)
{
	struct sw_sack k = sack_after((uint64_t[]){1, 4, 0});

	assert_int_equal(k.largest, 4);
	assert_int_equal(k.bits[0], 4); /* 1; neither 2 nor 3 */
	k = sack_after((uint64_t[]){1, 4, 2, 0});
	assert_int_equal(k.bits[0], 4 | 2);
	k = sack_after((uint64_t[]){3, 2, 1, 0});
	assert_int_equal(k.largest, 3);
	assert_int_equal(k.bits[0], 3);
}

static void accept__duplicate(void **state)
{
	struct sw_sack k = sack_after((uint64_t[]){1, 2, 2, 1, 0});

	assert_int_equal(k.largest, 2);
	assert_int_equal(k.bits[0], 1);
}

/* Every distance moves the window as it should. */
static void accept__jumps_of_every_size(void **state)
{
	for (uint64_t jump = 1; jump <= 300; jump++) {
		struct sw_sack k = sack_after(
			(uint64_t[]){10, 12, 12 + jump, 0});

		assert_int_equal(k.largest, 12 + jump);
		for (uint64_t back = 1; back <= SW_SACK_BITS; back++) {
			bool bit = k.bits[(back - 1) / 64] >>
					   ((back - 1) % 64) &
				   1;

			assert_int_equal(
				bit, back == jump || back == jump + 2);
		}
	}
}

static void accept__far_past_and_far_future(void **state)
{
	struct sw_sack k =
		sack_after((uint64_t[]){1000, 1, 0xffffffffffffULL, 5, 0});

	assert_true(k.largest == 0xffffffffffffULL);
	for (int i = 0; i < SW_SACK_WORDS; i++)
		assert_true(k.bits[i] == 0);
}

static void ack_at__count_or_delay_or_gap(void **state)
{
	struct fixture *x = open_flow();
	struct sw_sack out[SW_N_CLASSES];

	assert_true(sw_flow_ack_at(&x->f) == UINT64_MAX);
	accept(x, 0, 1);
	assert_true(sw_flow_ack_at(&x->f) == x->now_ns + x->params.ack_delay);
	for (uint64_t psn = 2; psn < 16; psn++)
		accept(x, 0, psn);
	assert_true(sw_flow_ack_at(&x->f) == x->now_ns + x->params.ack_delay);
	accept(x, 0, 16);
	assert_true(sw_flow_ack_at(&x->f) == 0);
	sw_flow_build_ack(&x->f, x->now_ns, 0, out);
	assert_true(sw_flow_ack_at(&x->f) == UINT64_MAX);
	accept(x, 0, 18); /* 17 is missing: say so at once */
	assert_true(sw_flow_ack_at(&x->f) == 0);
	sw_flow_build_ack(&x->f, x->now_ns, 0, out);
	accept(x, 0, 18); /* our ACK was lost: again at once */
	assert_true(sw_flow_ack_at(&x->f) == 0);
}

static void build_ack__one_block_per_class_with_news(void **state)
{
	struct fixture *x = open_flow();
	struct sw_sack out[SW_N_CLASSES];

	accept(x, 6, 3);
	accept(x, 1, 4);
	x->now_ns += 30 * SW_US;
	assert_int_equal(
		sw_flow_build_ack(&x->f, x->now_ns, 2 * SW_MS, out), 2);
	assert_int_equal(out[0].class, 1);
	assert_int_equal(out[0].largest, 4);
	assert_int_equal(out[0].delay_us, 30);
	assert_int_equal(out[0].gap_us, 2000);
	assert_int_equal(out[1].class, 6);
	assert_int_equal(sw_flow_build_ack(&x->f, x->now_ns, 0, out), 0);
}

static void build_ack__long_times_stop_at_the_top(void **state)
{
	struct fixture *x = open_flow();
	struct sw_sack out[SW_N_CLASSES];

	accept(x, 0, 1);
	sw_flow_build_ack(&x->f, x->now_ns + SW_S, 3 * SW_S, out);
	assert_int_equal(out[0].delay_us, UINT16_MAX);
	assert_int_equal(out[0].gap_us, UINT16_MAX);
}

static void answered__takes_back_one(void **state)
{
	struct fixture *x = open_flow();

	accept(x, 0, 1);
	sw_flow_answered(&x->f, 0);
	assert_true(sw_flow_ack_at(&x->f) == UINT64_MAX);
	sw_flow_answered(&x->f, 0); /* more answers than frames */
	assert_true(sw_flow_ack_at(&x->f) == UINT64_MAX);
	accept(x, 0, 3); /* a gap is told all the same */
	sw_flow_answered(&x->f, 0);
	assert_true(sw_flow_ack_at(&x->f) == 0);
}

/* --- fates --- */

static void on_ack__in_order(void **state)
{
	struct fixture *x = open_flow();

	send(x, 0);
	send(x, 0);
	x->now_ns += 100 * SW_US;
	assert_true(ack(x, 0, 2, 1, 10));
	assert_string_equal(x->fates, "+1 +2");
	assert_int_equal(x->last.key, 5);
	assert_int_equal(x->last.round, 6);
	assert_int_equal(x->last.cell, 7);
	assert_int_equal(x->f.space[0].srtt_ns, 90 * SW_US);
	assert_int_equal(x->f.open_mask, 0);
}

static void on_ack__duplicate(void **state)
{
	struct fixture *x = open_flow();

	send(x, 0);
	ack(x, 0, 1, 0, 0);
	assert_true(ack(x, 0, 1, 0, 0));
	assert_string_equal(x->fates, "");
}

static void on_ack__of_what_was_never_sent(void **state)
{
	struct fixture *x = open_flow();

	send(x, 0);
	assert_false(ack(x, 0, 2, 1, 0));
	assert_false(ack(x, 1, 1, 0, 0));
	assert_false(ack(x, 0, UINT64_MAX, ~0ULL, 0));
	assert_false(ack(x, 8, 1, 0, 0)); /* no such class */
	assert_false(ack(x, 255, 1, 0, 0));
	assert_string_equal(x->fates, "");
	assert_int_equal(x->f.open_mask, 1);
	assert_true(ack(x, 0, 0, ~0ULL, 0)); /* nothing received yet */
	assert_string_equal(x->fates, "");
}

/* Bits below the first number and beyond 256 mean nothing. */
static void on_ack__wild_bits(void **state)
{
	struct fixture *x = open_flow();

	for (uint32_t i = 0; i < 10; i++)
		send(x, 0);
	x->now_ns += SW_MS;
	assert_true(ack(x, 0, 5, ~0ULL, 65535));
	assert_string_equal(x->fates, "+1 +2 +3 +4 +5");
	assert_int_equal(x->f.space[0].srtt_ns, 0); /* it lies: no sample */
}

static void on_ack__overtaken_is_lost(void **state)
{
	struct fixture *x = open_flow();

	send(x, 0);
	x->now_ns += 100 * SW_US;
	ack(x, 0, 1, 0, 0); /* SRTT 100 us */
	send(x, 0);
	send(x, 0);
	x->now_ns += 100 * SW_US;
	ack(x, 0, 3, 0, 0);
	assert_string_equal(x->fates, "+3"); /* it may only be late */
	tick(x, 44 * SW_US); /* 144 < 5/4 SRTT + 20 */
	assert_string_equal(x->fates, "");
	tick(x, 1 * SW_US);
	assert_string_equal(x->fates, "-2");
	assert_int_equal(x->f.n_timeouts, 0);
}

/* Other classes are overtaken by design: that is no loss (A10). */
static void on_ack__other_class_overtakes(void **state)
{
	struct fixture *x = open_flow();

	send(x, 7);
	x->now_ns += 10 * SW_US;
	send(x, 0);
	x->now_ns += 100 * SW_US;
	ack(x, 0, 1, 0, 0);
	tick(x, 5 * SW_MS);
	assert_int_equal(x->n_lost, 0);
}

static void on_ack__late_for_a_lost_one(void **state)
{
	struct fixture *x = open_flow();

	send(x, 0);
	tick(x, SW_S);
	assert_string_equal(x->fates, "-1");
	assert_true(ack(x, 0, 1, 0, 0));
	assert_string_equal(x->fates, "");
}

static void resolve__by_meaning(void **state)
{
	struct fixture *x = open_flow();

	send(x, 0);
	send(x, 0);
	x->now_ns += 80 * SW_US;
	sw_flow_resolve(&x->f, 0, 1, x->now_ns);
	assert_int_equal(x->f.space[0].srtt_ns, 80 * SW_US);
	assert_int_equal(x->f.space[0].n_open, 1);
	sw_flow_resolve(&x->f, 0, 1, x->now_ns); /* twice */
	sw_flow_resolve(&x->f, 0, 900, x->now_ns); /* never sent */
	sw_flow_resolve(&x->f, 0, 1 + SW_SENT_RING, x->now_ns);
	assert_int_equal(x->f.space[0].n_open, 1);
	/* An answer that waited for a straggler is no RTT. */
	x->now_ns += SW_S;
	sw_flow_resolve(&x->f, 0, 2, x->now_ns);
	assert_int_equal(x->f.space[0].srtt_ns, 80 * SW_US);
	assert_int_equal(x->f.space[0].n_open, 0);
}

static void rtt__is_smoothed(void **state)
{
	struct fixture *x = open_flow();

	for (uint64_t psn = 1; psn <= 100; psn++) {
		send(x, 0);
		x->now_ns += 200 * SW_US;
		ack(x, 0, psn, ~0ULL, 0);
	}
	assert_in_range(sw_flow_srtt(&x->f), 199 * SW_US, 201 * SW_US);
	assert_true(x->f.space[0].rttvar_ns < SW_US);
	for (uint64_t psn = 101; psn <= 200; psn++) {
		send(x, 0);
		x->now_ns += 400 * SW_US;
		ack(x, 0, psn, ~0ULL, 0);
	}
	assert_in_range(sw_flow_srtt(&x->f), 398 * SW_US, 401 * SW_US);
}

/* --- timeouts --- */

static void tick__rto_first_floor_ceiling(void **state)
{
	struct fixture *x = open_flow();
	uint64_t at = 0, expected = x->params.rto_first;

	assert_true(tick(x, 0) == UINT64_MAX);
	for (int i = 0; i < 12; i++) {
		send(x, 0);
		at = tick(x, 0);
		assert_true(at - x->now_ns == expected);
		tick(x, at - x->now_ns - 1);
		assert_string_equal(x->fates, "");
		tick(x, 1);
		assert_int_equal(x->fates[0], '-');
		expected = sw_min64(2 * expected, x->params.rto_max);
	}
	assert_int_equal(x->f.n_timeouts, 12);
	send(x, 0);
	x->now_ns += 10 * SW_US;
	ack(x, 0, 13, 0, 0); /* it lives: no backoff, but the floor */
	send(x, 0);
	assert_true(tick(x, 0) - x->now_ns == x->params.rto_min);
}

static void tick__timeout_allows_a_probe(void **state)
{
	struct fixture *x = open_flow();

	x->f.granted = 2;
	send(x, 0);
	assert_false(sw_flow_can_send(&x->f, 0));
	tick(x, SW_S);
	assert_true(sw_flow_can_send(&x->f, 0));
	send(x, 0);
	assert_false(sw_flow_can_send(&x->f, 0)); /* one only */
}

/* A peer that polls every 30 ms is not a loss (A17). */
static void tick__waits_for_a_peer_that_polls_late(void **state)
{
	struct fixture *x = open_flow();
	struct sw_sack k = {.largest = 1, .gap_us = 30000};

	send(x, 0);
	x->now_ns += 100 * SW_US;
	sw_flow_on_ack(&x->f, &k, 1, x->now_ns, on_fate, x);
	send(x, 0);
	tick(x, 59 * SW_MS);
	assert_string_equal(x->fates, "");
	tick(x, SW_MS);
	assert_string_equal(x->fates, "-2");
}

static void tick__next_deadline_of_an_overtaken_one(void **state)
{
	struct fixture *x = open_flow();
	uint64_t sent_ns;

	send(x, 0);
	x->now_ns += 100 * SW_US;
	ack(x, 0, 1, 0, 0);
	sent_ns = x->now_ns;
	send(x, 0);
	send(x, 0);
	x->now_ns += 100 * SW_US;
	ack(x, 0, 3, 0, 0);
	assert_true(tick(x, 0) == sent_ns + x->f.space[0].srtt_ns * 5 / 4 +
					  x->params.reorder);
}

/* One RTO loses what is old, not what was just sent. */
static void tick__young_frames_stay(void **state)
{
	struct fixture *x = open_flow();

	send(x, 0);
	x->now_ns += 15 * SW_MS;
	send(x, 0);
	tick(x, 5 * SW_MS);
	assert_string_equal(x->fates, "-1");
	assert_int_equal(x->f.space[0].n_open, 1);
}

/* The numbers that are reused in the ring are not mixed up. */
static void ring__long_run(void **state)
{
	struct fixture *x = open_flow();

	for (uint64_t psn = 1; psn < 5000; psn++) {
		assert_int_equal(send(x, 3), psn);
		x->f.granted = x->f.consumed + 100;
		x->now_ns += SW_US;
		if (psn % 100 == 0)
			for (uint64_t k = psn - 99; k <= psn; k += 2)
				ack(x, 3, k + 1, 1, 0);
	}
	assert_int_equal(x->n_lost, 0);
	assert_int_equal(x->n_acked, 4900);
	assert_int_equal(x->f.space[3].n_open, 99);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(init__ack_threshold_follows_the_window),
		cmocka_unit_test(send__numbers_per_class),
		cmocka_unit_test(send__charges_quanta),
		cmocka_unit_test(can_send__credit_ends),
		cmocka_unit_test(can_send__ring_is_full),
		cmocka_unit_test(hear__in_order),
		cmocka_unit_test(hear__past_and_duplicate),
		cmocka_unit_test(hear__spaces_are_apart),
		cmocka_unit_test(hear__smaller_values),
		cmocka_unit_test(hear__implausible_grant),
		cmocka_unit_test(hear__implausible_consumed),
		cmocka_unit_test(hear__counts_wrap),
		cmocka_unit_test(credit__losses_do_not_leak),
		cmocka_unit_test(accept__in_order),
		cmocka_unit_test(accept__gap_then_late),
		cmocka_unit_test(accept__duplicate),
		cmocka_unit_test(accept__jumps_of_every_size),
		cmocka_unit_test(accept__far_past_and_far_future),
		cmocka_unit_test(ack_at__count_or_delay_or_gap),
		cmocka_unit_test(build_ack__one_block_per_class_with_news),
		cmocka_unit_test(build_ack__long_times_stop_at_the_top),
		cmocka_unit_test(answered__takes_back_one),
		cmocka_unit_test(on_ack__in_order),
		cmocka_unit_test(on_ack__duplicate),
		cmocka_unit_test(on_ack__of_what_was_never_sent),
		cmocka_unit_test(on_ack__wild_bits),
		cmocka_unit_test(on_ack__overtaken_is_lost),
		cmocka_unit_test(on_ack__other_class_overtakes),
		cmocka_unit_test(on_ack__late_for_a_lost_one),
		cmocka_unit_test(resolve__by_meaning),
		cmocka_unit_test(rtt__is_smoothed),
		cmocka_unit_test(tick__rto_first_floor_ceiling),
		cmocka_unit_test(tick__timeout_allows_a_probe),
		cmocka_unit_test(tick__waits_for_a_peer_that_polls_late),
		cmocka_unit_test(tick__next_deadline_of_an_overtaken_one),
		cmocka_unit_test(tick__young_frames_stay),
		cmocka_unit_test(ring__long_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
