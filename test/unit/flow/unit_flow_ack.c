/* unit_flow_ack.c - how ACKs give a flow its RTT and its losses.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/flow_rig.h"

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
	assert_false(ack(x, 0, 2, 0, 0));
	assert_false(ack(x, 1, 1, 0, 0));
	assert_false(ack(x, 0, UINT64_MAX, ~0ULL, 0));
	assert_false(ack(x, 8, 1, 0, 0)); /* an invalid class */
	assert_false(ack(x, 255, 1, 0, 0));
	assert_string_equal(x->fates, "");
	assert_int_equal(x->f.open_mask, 1);
	assert_true(ack(x, 0, 0, ~0ULL, 0)); /* an ACK of no frame */
	assert_string_equal(x->fates, "");
}

/* Bits for frames that were sent count. Frames that the ACK does not name are
 * not overtaken by numbers that were never sent. */
static void on_ack__of_some_that_were_sent(void **state)
{
	struct fixture *x = open_flow();

	for (uint32_t i = 0; i < 5; i++)
		send(x, 0);
	x->now_ns += 10 * SW_MS;
	assert_false(ack(x, 0, 9, 1 << 5 | 1 << 7, 0)); /* bits of 3 and 1 */
	assert_string_equal(x->fates, "+1 +3 -2");
	assert_int_equal(x->f.space[0].largest_acked, 3);
	assert_int_equal(x->f.space[0].srtt_ns, 0);
	/* A valid block counts even beside an invalid one. */
	send(x, 1);
	assert_false(sw_flow_on_ack(&x->f, ++x->ack_psn,
		(struct sw_sack[]){
			{.largest = 1, .class = 9}, {.largest = 1, .class = 1}},
		2, x->now_ns, on_fate, x));
	assert_int_equal(x->f.space[1].n_open, 0);
}

/* Marks are reported as a running count, so a lost ACK loses no marks. */
static void on_ack__tells_marks(void **state)
{
	struct fixture *x = open_flow();
	struct sw_sack out[SW_N_CLASSES];

	accept(x, 3, 1);
	sw_flow_mark(&x->f, 3, 1);
	sw_flow_mark(&x->f, SW_CLASS_CTL, 1); /* not a data class */
	assert_int_equal(sw_flow_build_ack(&x->f, x->now_ns, 0, out), 1);
	assert_int_equal(out[0].n_marked, 1);
	sw_flow_mark(&x->f, 3, 2);
	accept(x, 3, 2);
	assert_int_equal(sw_flow_build_ack(&x->f, x->now_ns, 0, out), 1);
	assert_int_equal(out[0].n_marked, 3);

	sw_congestion_init(&x->f.congestion, FRAME, 8192, true);
	for (uint32_t i = 0; i < 3; i++)
		send(x, 3);
	x->now_ns += 100 * SW_US;
	out[0].largest = 1;
	x->f.rx_psn[SW_CLASS_CTL] = 1;
	assert_true(sw_flow_on_ack(&x->f, 1, out, 1, x->now_ns, on_fate, x));
	assert_int_equal(x->f.congestion.n_marked, 3 * FRAME);
	out[0].n_marked = 2; /* 65,535 more, modulo 2^16 */
	x->f.rx_psn[SW_CLASS_CTL] = 2;
	assert_true(sw_flow_on_ack(&x->f, 2, out, 1, x->now_ns, on_fate, x));
	assert_int_equal(x->f.congestion.n_marked, (3 + 65535) * FRAME);
}

/* Bits for numbers below 1 or more than 256 back are ignored. */
static void on_ack__wild_bits(void **state)
{
	struct fixture *x = open_flow();

	for (uint32_t i = 0; i < 10; i++)
		send(x, 0);
	x->now_ns += SW_MS;
	assert_true(ack(x, 0, 5, ~0ULL, 65535));
	assert_string_equal(x->fates, "+1 +2 +3 +4 +5");
	/* an impossible delay: no sample */
	assert_int_equal(x->f.space[0].srtt_ns, 0);
}

static void on_ack__overtaken_is_lost(void **state)
{
	struct fixture *x = open_flow();

	send(x, 0);
	x->now_ns += 100 * SW_US;
	ack(x, 0, 1, 0, 0); /* the SRTT is now 100 us */
	send(x, 0);
	send(x, 0);
	x->now_ns += 100 * SW_US;
	ack(x, 0, 3, 0, 0);
	assert_string_equal(x->fates, "+3"); /* the frame may only be late */
	tick(x, 44 * SW_US);                 /* 144 us < 5/4 SRTT + 20 us */
	assert_string_equal(x->fates, "");
	tick(x, 1 * SW_US);
	assert_string_equal(x->fates, "-2");
	assert_int_equal(x->f.n_timeouts, 0);
}

/* The later of two ACKs omits class 1, so the earlier ACK's report on class 1
 * is new, and its report on class 0 is stale. */
static void on_ack__newer_per_class(void **state)
{
	struct fixture *x = open_flow();
	struct sw_sack early[] = {{.largest = 2, .bits = {1}, .class = 0},
		{.largest = 1, .class = 1}};
	struct sw_sack late = {.largest = 1, .class = 0};

	send(x, 0);
	send(x, 0);
	send(x, 1);
	x->f.rx_psn[SW_CLASS_CTL] = 9;
	assert_true(sw_flow_on_ack(&x->f, 9, &late, 1, x->now_ns, on_fate, x));
	assert_string_equal(x->fates, "+1");
	assert_true(sw_flow_on_ack(&x->f, 8, early, 2, x->now_ns, on_fate, x));
	assert_string_equal(x->fates, "+1 +1");
	assert_int_equal(x->f.open_mask, 1);
}

/* A more urgent class overtakes others by design, which is no loss (A10). */
static void on_ack__other_class_overtakes(void **state)
{
	struct fixture *x = open_flow();

	send(x, 7);
	x->now_ns += 10 * SW_US;
	send(x, 0);
	x->now_ns += 100 * SW_US;
	ack(x, 0, 1, 0, 0);
	tick(x, 2 * SW_MS);
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

/* A late frame restores the window, even if its ACK names a later frame too. */
static void on_ack__late_restores_the_window(void **state)
{
	struct fixture *x = open_flow();
	uint32_t window;

	sw_congestion_init(&x->f.congestion, FRAME, 8192, true);
	x->f.congestion.is_slow = false;
	window = x->f.congestion.window;
	for (uint32_t i = 0; i < 3; i++)
		send(x, 0);
	x->now_ns += 10 * SW_MS;
	assert_true(ack(x, 0, 3, 1 << 1, 0)); /* bit of 1 */
	tick(x, 5 * SW_MS);
	assert_string_equal(x->fates, "-2");
	assert_true(x->f.congestion.window < window);
	tick(x, 20 * SW_MS); /* the pace lets a frame leave */
	send(x, 0);
	assert_true(ack(x, 0, 4, 7, 0));
	assert_int_equal(x->f.congestion.window, window);
}

static void resolve__by_meaning(void **state)
{
	struct fixture *x = open_flow();

	send(x, 0);
	send(x, 0);
	x->now_ns += 80 * SW_US;
	sw_flow_resolve(&x->f, 0, 1, true, x->now_ns);
	assert_int_equal(x->f.space[0].srtt_ns, 80 * SW_US);
	assert_int_equal(x->f.space[0].n_open, 1);
	sw_flow_resolve(&x->f, 0, 1, true, x->now_ns);   /* a second time */
	sw_flow_resolve(&x->f, 0, 900, true, x->now_ns); /* was never sent */
	sw_flow_resolve(&x->f, 0, 2 + SW_SENT_RING, true, x->now_ns);
	assert_int_equal(x->f.space[0].n_open, 1);
	/* An answer that waited for a straggler gives no RTT sample. */
	x->now_ns += SW_S;
	sw_flow_resolve(&x->f, 0, 2, true, x->now_ns);
	assert_int_equal(x->f.space[0].srtt_ns, 80 * SW_US);
	assert_int_equal(x->f.space[0].n_open, 0);
}

/* The answer may be to an earlier copy, so it gives no RTT sample (Karn). */
static void resolve__of_a_copy_is_no_sample(void **state)
{
	struct fixture *x = open_flow();

	send(x, 0);
	x->now_ns += 3 * SW_US;
	sw_flow_resolve(&x->f, 0, 1, false, x->now_ns);
	assert_int_equal(x->f.space[0].srtt_ns, 0);
	assert_int_equal(x->f.space[0].n_open, 0);
}

/* Any answer from the peer ends the exponential backoff. */
static void resolve__ends_the_backoff(void **state)
{
	struct fixture *x = open_flow();

	send(x, 0);
	tick(x, SW_S);
	send(x, 0);
	assert_in_range(tick(x, 0) - x->now_ns, x->params.rto_first,
		2 * x->params.rto_first);
	x->now_ns += 10 * SW_US;
	sw_flow_resolve(&x->f, 0, 2, true, x->now_ns);
	send(x, 0);
	assert_true(tick(x, 0) - x->now_ns == x->params.rto_min);
}

/* A later ACK of a smaller number does not make overtaken frames wait again. */
static void on_ack__of_less(void **state)
{
	struct fixture *x = open_flow();

	for (uint32_t i = 0; i < 3; i++)
		send(x, 0);
	x->now_ns += 100 * SW_US;
	ack(x, 0, 3, 0, 0);
	ack(x, 0, 1, 0, 0);
	assert_string_equal(x->fates, "+1");
	tick(x, 200 * SW_US);
	assert_string_equal(x->fates, "-2");
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
		assert_in_range(at - x->now_ns, expected / 4 * 3, expected);
		tick(x, at - x->now_ns - 1);
		assert_string_equal(x->fates, "");
		tick(x, 1);
		assert_int_equal(x->fates[0], '-');
		expected = sw_min64(2 * expected, x->params.rto_max);
	}
	assert_int_equal(x->f.n_timeouts, 12);
}

static void tick__rto_min(void **state)
{
	struct fixture *x = open_flow();

	send(x, 0);
	x->now_ns += 10 * SW_US;
	ack(x, 0, 1, 0, 0);
	send(x, 0);
	assert_true(tick(x, 0) - x->now_ns == x->params.rto_min);
}

/* Send @n frames and acknowledge each after @ns. */
static void sample(struct fixture *x, uint32_t n, uint64_t ns)
{
	uint64_t psn = 0;

	for (uint32_t i = 0; i < n; i++)
		psn = send(x, 0);
	x->now_ns += ns;
	for (uint32_t i = n; i--;)
		ack(x, 0, psn - i, ~0ULL, 0);
}

/* A queue that was full may fill again. The timeout allows for it despite many
 * short samples, until the queue has been short for long. */
static void tick__remembers_a_long_queue(void **state)
{
	struct fixture *x = open_flow();

	sample(x, 1, 40 * SW_MS);
	for (uint32_t i = 0; i < 4; i++)
		sample(x, 32, 200 * SW_US);
	send(x, 0);
	tick(x, 30 * SW_MS);
	assert_string_equal(x->fates, "");
	ack(x, 0, x->f.space[0].next_psn - 1, ~0ULL, 0);
	for (uint32_t i = 0; i < 200; i++)
		sample(x, 32, 200 * SW_US);
	send(x, 0);
	tick(x, 2 * SW_MS);
	assert_int_equal(x->fates[0], '-');
}

/* The first timeout retransmits the oldest frame; its ACK reports on the
 * others. Only the third timeout in a row gives up all frames. */
static void tick__probes_first(void **state)
{
	struct fixture *x = open_flow();
	uint64_t at;

	for (uint32_t i = 0; i < 6; i++)
		send(x, 0);
	tick(x, 4 * SW_MS);
	assert_string_equal(x->fates, "-1");
	for (const char *const *f = (const char *[]){"-2", "-3 -4 -5 -6", NULL};
		*f; f++) {
		at = tick(x, 0);
		assert_true(at > x->now_ns);
		tick(x, at - x->now_ns);
		assert_string_equal(x->fates, *f);
	}
}

static void tick__ack_of_the_probe_tells(void **state)
{
	struct fixture *x = open_flow();

	for (uint32_t i = 0; i < 4; i++)
		send(x, 0);
	tick(x, 10 * SW_MS);
	send(x, 0);
	x->now_ns += 100 * SW_US;
	ack(x, 0, 5, 0, 0);
	assert_string_equal(x->fates, "+5 -2 -3 -4");
}

/* Without credit for a probe all frames are given up; then one frame may be
 * sent as a probe. */
static void tick__without_credit_all_is_lost(void **state)
{
	struct fixture *x = open_flow();

	x->f.granted = FRAME + 1;
	send(x, 0);
	send(x, 0);
	tick(x, 10 * SW_MS);
	assert_string_equal(x->fates, "-1 -2");
	assert_true(sw_flow_can_send(&x->f, 0));
}

/* If a whole burst is lost, it is given up at once, not frame by frame with
 * doubling timeouts. */
static void tick__a_burst_is_lost_together(void **state)
{
	struct fixture *x = open_flow();
	uint64_t at;

	x->f.granted = 2 * FRAME;
	send(x, 0);
	x->now_ns += 100 * SW_US;
	send(x, 0);
	at = tick(x, 2 * SW_MS);
	tick(x, at - x->now_ns);
	assert_string_equal(x->fates, "-1 -2");
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
	assert_false(sw_flow_can_send(&x->f, 0)); /* only one frame */
}

/* A peer that polls every 30 ms causes no loss (A17). */
static void tick__waits_for_a_peer_that_polls_late(void **state)
{
	struct fixture *x = open_flow();
	struct sw_sack k = {.largest = 1, .gap_us = 30000};

	send(x, 0);
	x->now_ns += 100 * SW_US;
	sw_flow_on_ack(&x->f, 1, &k, 1, x->now_ns, on_fate, x);
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

/* A timeout loses the old frames, not those that were just sent. */
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

/* Numbers that share a slot of the ring are not confused. */
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
		cmocka_unit_test(on_ack__in_order),
		cmocka_unit_test(on_ack__duplicate),
		cmocka_unit_test(on_ack__of_what_was_never_sent),
		cmocka_unit_test(on_ack__of_some_that_were_sent),
		cmocka_unit_test(on_ack__tells_marks),
		cmocka_unit_test(on_ack__wild_bits),
		cmocka_unit_test(on_ack__overtaken_is_lost),
		cmocka_unit_test(on_ack__newer_per_class),
		cmocka_unit_test(on_ack__other_class_overtakes),
		cmocka_unit_test(on_ack__late_for_a_lost_one),
		cmocka_unit_test(on_ack__late_restores_the_window),
		cmocka_unit_test(resolve__by_meaning),
		cmocka_unit_test(resolve__of_a_copy_is_no_sample),
		cmocka_unit_test(resolve__ends_the_backoff),
		cmocka_unit_test(on_ack__of_less),
		cmocka_unit_test(rtt__is_smoothed),
		cmocka_unit_test(tick__rto_first_floor_ceiling),
		cmocka_unit_test(tick__rto_min),
		cmocka_unit_test(tick__remembers_a_long_queue),
		cmocka_unit_test(tick__probes_first),
		cmocka_unit_test(tick__ack_of_the_probe_tells),
		cmocka_unit_test(tick__without_credit_all_is_lost),
		cmocka_unit_test(tick__a_burst_is_lost_together),
		cmocka_unit_test(tick__timeout_allows_a_probe),
		cmocka_unit_test(tick__waits_for_a_peer_that_polls_late),
		cmocka_unit_test(tick__next_deadline_of_an_overtaken_one),
		cmocka_unit_test(tick__young_frames_stay),
		cmocka_unit_test(ring__long_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
