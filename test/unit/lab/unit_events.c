/* unit_events.c - events leave the wheel by time, then by order of entry.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include "apps/lab/sim/events.h"
#include "engine/base/random.h"

enum { ROUNDS = 20000, MOST = 300 };

static bool has_next(struct sw_sim_events *q)
{
	return q->now.n || sw_sim_turn_wheel(q);
}

/* Near, far and equal times, while the wheel goes round several times. */
static void take__in_order(void **state)
{
	static const uint64_t spans[] = {1, 100, 20000, 200000, 5000000};
	static struct sw_sim_events q;
	uint64_t rng = 1, at_ns = 1000000000, tag = 0;
	uint32_t n = 0, n_taken = 0;

	sw_sim_events_init(&q, 3);
	for (uint32_t i = 0; i < ROUNDS || n; i++) {
		while (i < ROUNDS && n < MOST &&
			(!n || sw_random_next(&rng) % 4)) {
			uint64_t span = spans[sw_random_next(&rng) % 5];

			sw_sim_put(&q, at_ns + sw_random_next(&rng) % span,
				SW_SIM_WAKE, n_taken % 1000);
			n++;
		}
		assert_true(has_next(&q));
		struct sw_sim_event e = sw_sim_take(&q);

		assert_true(e.at_ns > at_ns ||
			    (e.at_ns == at_ns && (e.tag > tag || !n_taken)));
		assert_int_equal(sw_sim_kind_of(&e), SW_SIM_WAKE);
		at_ns = e.at_ns;
		tag = e.tag;
		n--;
		n_taken++;
	}
	assert_true(n_taken >= ROUNDS);
	assert_false(has_next(&q));
	sw_sim_events_close(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(take__in_order)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
