/* unit_arena.c - the arena gives aligned zeros, again after it got them back.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <string.h>

#include "apps/lab/sim/arena.h"

enum { MANY = 40, TABLE = 2700000, LARGE = 5 << 20 };

static void assert_zeros(const uint8_t *mem, uint64_t bytes)
{
	assert_int_equal((uintptr_t)mem % 64, 0);
	for (uint64_t i = 0; i < bytes; i++)
		assert_int_equal(mem[i], 0);
}

/* Tables of many blocks do not overlap: each is zero when it is taken, after
 * the others have been written. */
static void take__zeros_beside_others(void **state)
{
	struct sw_sim_arena a = {0};
	uint8_t *large;

	for (uint32_t i = 0; i < MANY; i++) {
		uint8_t *mem = sw_sim_arena_take(&a, TABLE + i);

		assert_zeros(mem, TABLE + i);
		memset(mem, 0xff, TABLE + i);
	}
	large = sw_sim_arena_take(&a, LARGE);
	assert_zeros(large, LARGE);
	sw_sim_arena_put(&a, large, LARGE);
	sw_sim_arena_put(&a, NULL, TABLE);
	sw_sim_arena_close(&a);
}

static void take__returned_memory(void **state)
{
	struct sw_sim_arena a = {0};
	uint8_t *small = sw_sim_arena_take(&a, 100);
	uint8_t *table = sw_sim_arena_take(&a, TABLE), *last;

	memset(table, 0xff, TABLE);
	memset(small, 0xff, 100);
	sw_sim_arena_put(&a, table, TABLE);
	sw_sim_arena_put(&a, small, 100);
	last = sw_sim_arena_take(&a, 200);
	assert_true(last > table);
	assert_ptr_equal(sw_sim_arena_take(&a, TABLE), table);
	assert_zeros(table, TABLE);
	assert_ptr_equal(sw_sim_arena_take(&a, 100), small);
	assert_zeros(small, 100);
	sw_sim_arena_close(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(take__zeros_beside_others),
		cmocka_unit_test(take__returned_memory)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
