/* unit_events.c - the wheel returns events by time, then by order of entry.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include "apps/lab/sim/events.h"
#include "engine/base/random.h"

enum { ROUNDS = 20000, MOST = 300 };

/* Put events at near, far and equal times, while both levels of the wheel go
 * round. Events with equal times leave by their numbers. */
static void take__in_order(void **state)
{
	static const uint64_t spans[] = {1, 100, 20000, 5000000, 100000000};
	static struct sw_sim_events q;
	struct sw_sim_event e = {0};
	uint64_t rng = 1, at_ns = 1000000000;
	uint32_t n = 0, n_put = 0, n_taken = 0, last = 0;

	sw_sim_events_init(&q);
	for (uint32_t i = 0; i < ROUNDS || n; i++) {
		while (i < ROUNDS && n < MOST &&
			(!n || sw_random_next(&rng) % 4)) {
			uint64_t span = spans[sw_random_next(&rng) % 5];
			uint64_t in = sw_random_next(&rng) % span;

			/* Round times up, so that several events share one for
			 * every span. */
			sw_sim_put(&q, (at_ns + in + 1023) & ~1023ULL,
				SW_SIM_WAKE, n_put++);
			n++;
		}
		assert_true(sw_sim_take(&q, UINT64_MAX, &e));
		assert_true(e.at_ns > at_ns || !n_taken ||
			    (e.at_ns == at_ns && sw_sim_index_of(&e) > last));
		assert_int_equal(sw_sim_kind_of(&e), SW_SIM_WAKE);
		at_ns = e.at_ns;
		last = sw_sim_index_of(&e);
		n--;
		n_taken++;
	}
	assert_true(n_taken >= ROUNDS);
	assert_false(sw_sim_take(&q, UINT64_MAX, &e));
	sw_sim_events_close(&q);
}

/* No event leaves before its time; an event that is added meanwhile at an
 * earlier time leaves first. */
static void take__not_after_its_bound(void **state)
{
	static struct sw_sim_events q;
	struct sw_sim_event e = {0};

	sw_sim_events_init(&q);
	sw_sim_put(&q, 5000, SW_SIM_TIMER, 1);
	sw_sim_put(&q, 90000000, SW_SIM_TIMER, 2);
	assert_false(sw_sim_take(&q, 4999, &e));
	sw_sim_put(&q, 4999, SW_SIM_WAKE, 3);
	assert_true(sw_sim_take(&q, 4999, &e));
	assert_int_equal(sw_sim_index_of(&e), 3);
	assert_true(sw_sim_take(&q, 5000, &e));
	assert_false(sw_sim_take(&q, 89999999, &e));
	sw_sim_put(&q, 89999999, SW_SIM_WAKE, 4);
	assert_true(sw_sim_take(&q, 90000000, &e));
	assert_int_equal(sw_sim_index_of(&e), 4);
	assert_true(sw_sim_take(&q, 90000000, &e));
	assert_int_equal(sw_sim_index_of(&e), 2);
	assert_false(sw_sim_take(&q, UINT64_MAX, &e));
	sw_sim_events_close(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(take__in_order),
		cmocka_unit_test(take__not_after_its_bound)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
