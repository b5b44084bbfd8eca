/* unit_idle.c - what a polling lcore does while it has no work.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/node/idle.h"
#include "engine/base/params.h"
#include "test/support/unit.h"

#define SPIN_NS (20 * SW_US)
#define NAP_NS  (200 * SW_US)

static const struct sw_idle quiet = {.spin_ns = SPIN_NS, .sleep_ns = NAP_NS};

static void expect(const struct sw_idle *i, struct sw_idle_look look,
	uint64_t idle_ns, enum sw_idle_way way, uint64_t most_ns)
{
	uint64_t most;

	look.idle_ns = idle_ns;
	assert_int_equal(sw_idle_choose(i, &look, &most), way);
	if (way != SW_IDLE_YIELD)
		assert_int_equal(most, most_ns);
}

/* With ports that can wake the lcore: spin, yield, then sleep until they do. */
static void choose__wakeable(void **state)
{
	struct sw_idle_look busy = {.is_busy = true, .can_wake = true};
	struct sw_idle_look idle = {.can_wake = true, .is_serving = true};

	assert_true(sw_idle_spins(&quiet, SPIN_NS / 4 - 1));
	assert_false(sw_idle_spins(&quiet, SPIN_NS / 4));
	expect(&quiet, busy, SPIN_NS / 4, SW_IDLE_YIELD, 0);
	expect(&quiet, busy, 20 * SPIN_NS - 1, SW_IDLE_YIELD, 0);
	expect(&quiet, busy, 20 * SPIN_NS, SW_IDLE_REST, SW_MS);
	expect(&quiet, idle, SPIN_NS - 1, SW_IDLE_YIELD, 0);
	expect(&quiet, idle, SPIN_NS, SW_IDLE_REST, 10 * SW_MS);
}

/* Other ports cannot wake the lcore: if it is busy, it polls again after short
 * sleeps. */
static void choose__not_wakeable(void **state)
{
	struct sw_idle_look busy = {.is_busy = true};
	struct sw_idle_look agent = {0}, server = {.is_serving = true};

	expect(&quiet, busy, 20 * SPIN_NS - 1, SW_IDLE_YIELD, 0);
	expect(&quiet, busy, 20 * SPIN_NS, SW_IDLE_SLEEP, 50 * SW_US);
	expect(&quiet, busy, SW_S, SW_IDLE_SLEEP, NAP_NS);
	expect(&quiet, agent, SPIN_NS, SW_IDLE_REST, 10 * SW_MS);
	expect(&quiet, server, SW_S, SW_IDLE_REST, NAP_NS);
}

/* If sleeps are switched off, the lcore never sleeps while work is
 * outstanding. */
static void choose__no_sleep(void **state)
{
	struct sw_idle i = {.spin_ns = SPIN_NS, .shared_until_ns = SW_S};
	struct sw_idle_look busy = {.is_busy = true, .can_wake = true};

	expect(&i, busy, SPIN_NS, SW_IDLE_YIELD, 0);
	expect(&i, busy, SW_S, SW_IDLE_SLEEP, 0);
}

/* The lcore does not yield to processes that would use their whole time
 * slice. */
static void choose__shared(void **state)
{
	struct sw_idle i = quiet;
	struct sw_idle_look busy = {.is_busy = true, .can_wake = true};
	struct sw_idle_look idle = {.can_wake = true};
	struct sw_idle_look computing = {
		.is_busy = true, .can_wake = true, .has_computing = true};
	struct sw_idle_look blind = {.is_busy = true};

	i.shared_until_ns = 1;
	expect(&i, busy, SPIN_NS / 4, SW_IDLE_REST, SW_MS);
	expect(&i, idle, SPIN_NS / 4, SW_IDLE_REST, 10 * SW_MS);
	expect(&i, computing, SPIN_NS / 4, SW_IDLE_NAP, SW_MS);
	expect(&i, blind, SPIN_NS / 4, SW_IDLE_YIELD, 0);
	busy.now_ns = 1; /* the shared time is over */
	expect(&i, busy, SPIN_NS / 4, SW_IDLE_YIELD, 0);
}

/* After a long yield the lcore avoids yields for a multiple of its duration. So
 * yields take a small part of the time, even if other processes run rarely. */
static void note__how_long(void **state)
{
	struct sw_idle i = quiet;

	sw_idle_note(&i, 0, 4 * SW_MS, false); /* an interrupt */
	assert_false(sw_idle_is_shared(&i, 4 * SW_MS));
	sw_idle_note(&i, 0, 4 * SW_MS, true);
	assert_true(sw_idle_is_shared(&i, 68 * SW_MS - 1));
	assert_false(sw_idle_is_shared(&i, 68 * SW_MS));
	sw_idle_note(&i, SW_S, SW_S + 100 * SW_US, true);
	assert_false(sw_idle_is_shared(&i, SW_S + 1700 * SW_US));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(choose__wakeable),
		cmocka_unit_test(choose__not_wakeable),
		cmocka_unit_test(choose__no_sleep),
		cmocka_unit_test(choose__shared),
		cmocka_unit_test(note__how_long)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
