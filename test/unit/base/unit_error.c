/* unit_error.c - the table of errors.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

static const int values[] = {
#define SW_ERROR(name, value, text) value,
#include "engine/base/errors.def"
#undef SW_ERROR
};

static void error_text__known(void **state)
{
	assert_string_equal(sw_error_text(0), "success");
	assert_string_equal(sw_error_text(SW_EINVAL), "invalid argument");
	assert_string_equal(sw_error_text(SW_ESERVER),
		"a server is silent or was restarted");
}

static void error_text__unknown(void **state)
{
	assert_string_equal(sw_error_text(1), "unknown error");
	assert_string_equal(sw_error_text(-32768), "unknown error");
	assert_string_equal(sw_error_name(1), "SW_E?");
}

static void error_name__known(void **state)
{
	assert_string_equal(sw_error_name(0), "SW_OK");
	assert_string_equal(sw_error_name(SW_EMISMATCH), "SW_EMISMATCH");
}

/* Error values fit into the 16 bits that the wire has, and are unique. */
static void table__values_are_negative_and_unique(void **state)
{
	for (size_t i = 0; i < SW_ARRAY_SIZE(values); i++) {
		assert_true(values[i] < 0 && values[i] > INT16_MIN);
		assert_string_not_equal(
			sw_error_text(values[i]), "unknown error");
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(values[i], values[j]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(error_text__known),
		cmocka_unit_test(error_text__unknown),
		cmocka_unit_test(error_name__known),
		cmocka_unit_test(table__values_are_negative_and_unique),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
