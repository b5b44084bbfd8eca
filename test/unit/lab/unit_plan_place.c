/* unit_plan_place.c - placements by BytePS's hashes.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <math.h>

#include "apps/lab/plan_place.h"

static uint32_t owner_of(enum sw_plan_place place, uint32_t stripe)
{
	struct sw_place_job job = {.n_members = 4, .n_servers = 7};

	return sw_plan_owner(place, &job, NULL, stripe);
}

/* Expected values were computed by BytePS's own hash functions. */
static void owner__hashes_of_byteps(void **state)
{
	assert_int_equal(owner_of(SW_PLAN_NAIVE, 12), 12 * 9973 % 7);
	assert_int_equal(owner_of(SW_PLAN_DJB2, 12),
		(5381 * 33 * 33 + 49 * 33 + 50) % 7);
	assert_int_equal(owner_of(SW_PLAN_SDBM, 12), (49 * 65599 + 50) % 7);
	/* std::hash<std::string> of "12" and "1234" with libstdc++ */
	assert_int_equal(owner_of(SW_PLAN_BUILT_IN, 12), 0);
	assert_int_equal(owner_of(SW_PLAN_BUILT_IN, 1234), 2);
}

/* Our placement is the map that jobs use. */
static void owner__bytes(void **state)
{
	struct sw_place_job job = {
		.n_members = 4, .n_servers = 6, .n_colocated = 4};
	struct sw_place_map map;

	sw_place_map_init(&map, &job);
	for (uint32_t at = 0; at < 3 * map.period; at++)
		assert_int_equal(sw_plan_owner(SW_PLAN_BYTES, &job, &map, at),
			map.owner[at % map.period]);
}

/* Several lcores of the CPU machines get the same total share as one each. */
static void owner__mixed_share_of_lcores(void **state)
{
	uint32_t of_cpus[2] = {0};

	for (uint32_t m = 1; m <= 2; m++) {
		struct sw_place_job job = {.n_members = 4,
			.n_servers = (uint16_t)(6 * m),
			.n_colocated = (uint16_t)(4 * m),
			.n_lcores = (uint8_t)m};

		for (uint32_t at = 0; at < SW_PLACE_PERIOD_MAX; at++)
			of_cpus[m - 1] += sw_plan_owner(SW_PLAN_MIXED, &job,
						  NULL, at) < 2 * m;
	}
	assert_true(of_cpus[0] > 0);
	assert_int_equal(of_cpus[0], of_cpus[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(owner__hashes_of_byteps),
		cmocka_unit_test(owner__bytes),
		cmocka_unit_test(owner__mixed_share_of_lcores),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
