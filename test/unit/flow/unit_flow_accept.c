/* unit_flow_accept.c - which frames a flow acknowledges, and when.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/flow_rig.h"

/* Receive the numbers in @psns, which 0 terminates, and return the SACK. */
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
	assert_int_equal(k.bits[0], 4); /* 1 was received; 2 and 3 were not */
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

/* Every jump moves the window of numbers correctly; a far jump does so when a
 * second frame follows. */
static void accept__jumps_of_every_size(void **state)
{
	for (uint64_t jump = 1; jump <= 300; jump++) {
		bool is_far = jump > SW_PSN_SKIP;
		uint64_t to = 12 + jump, two[] = {10, 12, to, to + 1, 0};
		struct sw_sack k;

		two[3] = is_far ? two[3] : 0;
		k = sack_after(two);
		assert_int_equal(k.largest, to + is_far);
		for (uint64_t back = 1; back <= SW_SACK_BITS; back++) {
			bool bit =
				k.bits[(back - 1) / 64] >> ((back - 1) % 64) &
				1;

			assert_int_equal(
				bit, back == jump + is_far ||
					     back == jump + is_far + 2);
		}
	}
}

/* A single frame with a far number moves nothing. */
static void accept__one_far_number(void **state)
{
	static const uint64_t far[] = {
		12 + SW_PSN_SKIP + 2, 10000, 0xffffffffffffULL};

	for (uint32_t i = 0; i < SW_ARRAY_SIZE(far); i++) {
		struct sw_sack k =
			sack_after((uint64_t[]){11, 12, far[i], 13, far[i], 0});

		assert_int_equal(k.largest, 13);
		assert_int_equal(k.bits[0], 3);
	}
}

/* Two consecutive far numbers move the window: forward if all frames in between
 * were lost, and back if the two were forged. */
static void accept__two_far_numbers(void **state)
{
	struct sw_sack k = sack_after((uint64_t[]){100, 2000, 2002, 2003, 0});

	assert_int_equal(k.largest, 2003);
	assert_int_equal(k.bits[0], 1);
	k = sack_after((uint64_t[]){100, 2000, 2001, 101, 102, 103, 0});
	assert_int_equal(k.largest, 103);
	assert_int_equal(k.bits[0], 1);
}

/* A duplicate frame skips no number and does not move the window back. */
static void accept_again__moves_little(void **state)
{
	struct fixture *x = open_flow();
	struct sw_space *s = &x->f.space[0];

	accept(x, 0, 1);
	sw_flow_accept_again(&x->f, 0, 2, x->now_ns);
	assert_int_equal(s->largest, 2);
	sw_flow_accept_again(&x->f, 0, 4, x->now_ns);
	assert_int_equal(s->largest, 2);
	sw_flow_accept_again(&x->f, 0, 5, x->now_ns);
	assert_int_equal(s->largest, 5);
	for (uint64_t psn = 6; psn < 400; psn++)
		accept(x, 0, psn);
	for (uint64_t psn = 1; psn < 9; psn++)
		sw_flow_accept_again(&x->f, 0, psn, x->now_ns);
	assert_int_equal(s->largest, 399);
}

/* Accepting a run has the same effect as accepting its frames one by one:
 * across words and gaps, and with late frames at the start. */
static void accept_run__as_one_by_one(void **state)
{
	struct sw_flow one = open_flow()->f, run = one;
	struct sw_header h[64];
	struct sw_sack a[SW_N_CLASSES], b[SW_N_CLASSES];
	uint64_t psn = 1;

	for (uint32_t n = 1; n <= 64; n++) {
		for (uint32_t i = 0; i < n; i++) {
			psn += n % 5 == 0 && i == n / 2;
			h[i] = (struct sw_header){.class = 2, .psn = psn++};
			if (n % 7 == 0 && i < n / 7) /* late frames */
				h[i].psn -= n + 1 - i;
			psn -= n % 7 == 0 && i == 0;
			sw_flow_accept(&one, 2, h[i].psn, n);
		}
		sw_flow_accept_run(&run, h, n, n);
		assert_memory_equal(&one, &run, sizeof(one));
		if (n % 3)
			continue;
		assert_int_equal(sw_flow_build_ack(&one, n, 0, a),
			sw_flow_build_ack(&run, n, 0, b));
		assert_memory_equal(a, b, sizeof(a[0]));
	}
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
	accept(x, 0, 18); /* 17 is missing: acknowledge at once */
	assert_true(sw_flow_ack_at(&x->f) == 0);
	sw_flow_build_ack(&x->f, x->now_ns, 0, out);
	accept(x, 0, 18); /* our ACK was lost: acknowledge again at once */
	assert_true(sw_flow_ack_at(&x->f) == 0);
}

/* The flow acknowledges after two RTTs, within bounds. */
static void ack_at__by_rtt(void **state)
{
	static const uint64_t rtts_us[] = {10, 60, 900, 16000};
	static const uint64_t delays_us[] = {50, 120, 200, 2000};

	for (uint32_t i = 0; i < SW_ARRAY_SIZE(rtts_us); i++) {
		struct fixture *x = open_flow();

		send(x, 0);
		x->now_ns += rtts_us[i] * SW_US;
		ack(x, 0, 1, 0, 0);
		accept(x, 0, 1);
		assert_true(sw_flow_ack_at(&x->f) ==
			    x->now_ns + delays_us[i] * SW_US);
		accept(x, 1, 1); /* an invalid class */
		assert_true(sw_flow_ack_at(&x->f) == x->now_ns + 50 * SW_US);
	}
}

static void build_ack__one_block_per_class_with_new_frames(void **state)
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

	sw_flow_answered(&x->f, 0, 1, x->now_ns); /* more answers than frames */
	assert_true(sw_flow_ack_at(&x->f) == UINT64_MAX);
	for (uint64_t psn = 1; psn < x->params.ack_every; psn++)
		accept(x, 0, psn);
	sw_flow_answered(&x->f, 0, 1, x->now_ns);
	accept(x, 0, x->params.ack_every);
	/* one frame short of a due ACK */
	assert_true(sw_flow_ack_at(&x->f) != 0);
	for (uint32_t i = 0; i < x->params.ack_every; i++)
		sw_flow_answered(&x->f, 0, 1, x->now_ns);
	sw_flow_answered(&x->f, 0, 99, x->now_ns);
	/* the last frame is acknowledged in any case */
	assert_true(sw_flow_ack_at(&x->f) != UINT64_MAX);
	accept(x, 0, 99); /* a gap is still reported at once */
	sw_flow_answered(&x->f, 0, 1, x->now_ns);
	assert_true(sw_flow_ack_at(&x->f) == 0);
}

/* Each answer postpones the ACK, but not beyond a late limit. After the last
 * answer the ACK waits until that limit. */
static void answered__acknowledged_late(void **state)
{
	struct fixture *x = open_flow();
	struct sw_sack out[SW_N_CLASSES];
	uint64_t first = x->now_ns, late = first + x->params.ack_delay_late;

	for (uint64_t psn = 1; psn <= 3; psn++)
		accept(x, 0, psn);
	x->now_ns += x->params.ack_delay / 2;
	sw_flow_answered(&x->f, 0, 0, x->now_ns);
	assert_true(sw_flow_ack_at(&x->f) == first + x->params.ack_delay);
	sw_flow_answered(&x->f, 0, 1, x->now_ns);
	assert_true(sw_flow_ack_at(&x->f) == x->now_ns + x->params.ack_delay);
	sw_flow_answered(&x->f, 0, 1, x->now_ns);
	assert_true(sw_flow_ack_at(&x->f) == late);
	accept(x, 0, 4);
	x->now_ns = late - 1;
	sw_flow_answered(&x->f, 0, 1, x->now_ns);
	accept(x, 0, 5);
	assert_true(sw_flow_ack_at(&x->f) == late);
	sw_flow_build_ack(&x->f, x->now_ns, 0, out);
	x->now_ns += SW_MS;
	accept(x, 0, 6); /* stale answers */
	assert_true(sw_flow_ack_at(&x->f) == x->now_ns + x->params.ack_delay);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accept__in_order),
		cmocka_unit_test(accept__gap_then_late),
		cmocka_unit_test(accept__duplicate),
		cmocka_unit_test(accept__jumps_of_every_size),
		cmocka_unit_test(accept__one_far_number),
		cmocka_unit_test(accept__two_far_numbers),
		cmocka_unit_test(accept_again__moves_little),
		cmocka_unit_test(accept_run__as_one_by_one),
		cmocka_unit_test(ack_at__count_or_delay_or_gap),
		cmocka_unit_test(ack_at__by_rtt),
		cmocka_unit_test(
			build_ack__one_block_per_class_with_new_frames),
		cmocka_unit_test(build_ack__long_times_stop_at_the_top),
		cmocka_unit_test(answered__takes_back_one),
		cmocka_unit_test(answered__acknowledged_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
