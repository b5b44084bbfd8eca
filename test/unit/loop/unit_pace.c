/* unit_pace.c - how many payload bytes may leave a port at a time.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include "engine/loop/pace.h"

enum { FRAME = 8192 };

/* Return the bytes that leave in @ns if the port is asked every @step_ns. */
static uint64_t sent_in(struct sw_pace *p, uint64_t ns, uint64_t step_ns)
{
	uint64_t bytes = 0;

	for (uint64_t now = SW_S; now < SW_S + ns; now += step_ns)
		while (sw_pace_may(p, now)) {
			sw_pace_charge(p, FRAME, now);
			bytes += FRAME;
		}
	return bytes;
}

static void may__no_rate_no_limit(void **state)
{
	struct sw_pace p;

	sw_pace_init(&p, 0, 0, FRAME);
	for (uint32_t i = 0; i < 1000; i++) {
		assert_true(sw_pace_may(&p, SW_S));
		sw_pace_charge(&p, FRAME, SW_S);
	}
}

/* 10 Gb/s are 1.25 bytes per nanosecond: 25 KB in 20 us, plus one frame. */
static void may__no_more_than_20_us_at_once(void **state)
{
	struct sw_pace p;
	uint32_t n = 0;

	sw_pace_init(&p, 10 * SW_S, 0, FRAME);
	for (; sw_pace_may(&p, SW_S); n++)
		sw_pace_charge(&p, FRAME, SW_S);
	assert_int_equal(n, 4);
	assert_true(!sw_pace_may(&p, sw_pace_at(&p) - 1));
	assert_true(sw_pace_may(&p, sw_pace_at(&p)));
}

static void charge__the_rate_is_met_exactly(void **state)
{
	static const uint64_t rates[] = {
		1 * SW_S, 3 * SW_S, 10 * SW_S, 25 * SW_S, 97 * SW_S};

	for (size_t i = 0; i < SW_ARRAY_SIZE(rates); i++) {
		struct sw_pace p;
		uint64_t want = rates[i] / 8 / 10, got;

		sw_pace_init(&p, rates[i], 0, FRAME);
		got = sent_in(&p, SW_S / 10, 1000);
		/* allow the burst, and one ten-thousandth lost by rounding the
		 * time of a byte */
		assert_in_range(got, want - want / 10000 - FRAME,
			want + want / 10000 + rates[i] / 8 / 50000 + FRAME);
	}
}

/* A pause does not allow a burst of more than 20 us. */
static void charge__a_pause_is_not_made_up_for(void **state)
{
	struct sw_pace p;
	uint32_t n = 0;

	sw_pace_init(&p, 10 * SW_S, 0, FRAME);
	sent_in(&p, SW_MS, 1000);
	for (; sw_pace_may(&p, 10 * SW_S); n++)
		sw_pace_charge(&p, FRAME, 10 * SW_S);
	assert_int_equal(n, 4);
}

/* If turns come late while data waits, the rate is kept, and a burst never
 * doubles. */
static void charge__late_turns_are_made_up_for(void **state)
{
	struct sw_pace p;
	uint64_t bytes = 0, burst = 0;

	sw_pace_init(&p, 10 * SW_S, 0, FRAME);
	for (uint64_t now = SW_S, i = 0; now < SW_S + 100 * SW_MS; i++) {
		burst = 0;
		for (; sw_pace_may(&p, now); burst += FRAME)
			sw_pace_charge(&p, FRAME, now);
		bytes += burst;
		assert_in_range(burst, 0, 2 * 25000 + 2 * FRAME);
		sw_pace_note(&p, true);
		now += i % 100 ? 5000 : 100000;
	}
	assert_in_range(bytes, 124500000, 125500000);
}

/* Pacing uses 95 % of the link, headers included; a smaller configured rate
 * stays. */
static void init__leaves_room_on_the_link(void **state)
{
	struct sw_pace p;
	uint64_t got;

	sw_pace_init(&p, 0, 10 * SW_S, FRAME);
	got = sent_in(&p, SW_S / 10, 1000);
	assert_in_range(got / FRAME * (FRAME + 120), 118500000, 118900000);
	sw_pace_init(&p, 100 * SW_S, 10 * SW_S, FRAME);
	assert_int_equal(sent_in(&p, SW_S / 10, 1000), got);
	sw_pace_init(&p, SW_S, 10 * SW_S, FRAME);
	assert_in_range(sent_in(&p, SW_S / 10, 1000), 12400000, 12600000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(may__no_rate_no_limit),
		cmocka_unit_test(may__no_more_than_20_us_at_once),
		cmocka_unit_test(charge__the_rate_is_met_exactly),
		cmocka_unit_test(charge__a_pause_is_not_made_up_for),
		cmocka_unit_test(charge__late_turns_are_made_up_for),
		cmocka_unit_test(init__leaves_room_on_the_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
