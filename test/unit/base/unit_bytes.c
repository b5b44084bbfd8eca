/* unit_bytes.c - little-endian loads and stores at any alignment.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

static void load__any_alignment(void **state)
{
	uint8_t bytes[16];

	for (uint32_t at = 0; at < 8; at++) {
		memset(bytes, 0xee, sizeof(bytes));
		sw_store32(bytes + at, 0x04030201);
		assert_int_equal(bytes[at], 1);
		assert_int_equal(bytes[at + 3], 4);
		assert_int_equal(bytes[at + 4], 0xee);
		assert_int_equal(sw_load32(bytes + at), 0x04030201);
	}
}

static void min_max__both_orders(void **state)
{
	assert_true(sw_min64(1, UINT64_MAX) == 1);
	assert_true(sw_min64(UINT64_MAX, 1) == 1);
	assert_true(sw_max64(1, UINT64_MAX) == UINT64_MAX);
	assert_true(sw_max64(UINT64_MAX, 1) == UINT64_MAX);
	assert_true(sw_max64(5, 5) == 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(load__any_alignment),
		cmocka_unit_test(min_max__both_orders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
