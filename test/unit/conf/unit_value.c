/* unit_value.c - numbers with units, and the nearest name.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "conf/value.h"
#include "engine/base/error.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static void value_parse__good(void **state)
{
	static const struct {
		const char *text;
		enum sw_unit unit;
		uint64_t value;
	} rows[] = {
		{"0", SW_UNIT_NONE, 0},
		{"18446744073709551615", SW_UNIT_NONE, UINT64_MAX},
		{"0", SW_UNIT_TIME, 0},
		{"0", SW_UNIT_PERCENT, 0},
		{"8192", SW_UNIT_BYTES, 8192},
		{"64KB", SW_UNIT_BYTES, 64000},
		{"64KiB", SW_UNIT_BYTES, 65536},
		{"64 KiB", SW_UNIT_BYTES, 65536},
		{"1.5GiB", SW_UNIT_BYTES, UINT64_C(3) << 29},
		{"20us", SW_UNIT_TIME, 20000},
		{"1.5ms", SW_UNIT_TIME, 1500000},
		{"2min", SW_UNIT_TIME, UINT64_C(120000000000)},
		{"0.000000001s", SW_UNIT_TIME, 1},
		{"2.5Gb/s", SW_UNIT_RATE, UINT64_C(2500000000)},
		{"0.5%", SW_UNIT_PERCENT, 5000},
	};
	char why[256];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t value = 1;

		assert_int_equal(sw_value_parse(rows[i].text, rows[i].unit,
					 &value, why, sizeof(why)),
			0);
		assert_int_equal(value, rows[i].value);
	}
}

static void value_parse__bad(void **state)
{
	static const struct {
		const char *text;
		enum sw_unit unit;
		const char *why; /* part of the reason */
	} rows[] = {
		{"", SW_UNIT_NONE, "empty"},
		{"x", SW_UNIT_NONE, "not a number"},
		{" 1", SW_UNIT_NONE, "not a number"},
		{"-1", SW_UNIT_NONE, "sign"},
		{"+1", SW_UNIT_NONE, "sign"},
		{"042", SW_UNIT_NONE, "leading zero"},
		{"00", SW_UNIT_NONE, "leading zero"},
		{"0x10", SW_UNIT_NONE, "\"x10\" follows"},
		{"1x", SW_UNIT_NONE, "\"x\" follows"},
		{"1 ", SW_UNIT_NONE, "follows"},
		{"1 ", SW_UNIT_TIME, "unknown unit"},
		{"0 ", SW_UNIT_TIME, "unknown unit"},
		{"1 2", SW_UNIT_NONE, "\"2\" follows"},
		{"18446744073709551616", SW_UNIT_NONE, "too large"},
		{"99999999999999999GiB", SW_UNIT_BYTES, "too large"},
		{"1.5", SW_UNIT_NONE, "smallest unit"},
		{"1.5B", SW_UNIT_BYTES, "smallest unit"},
		{"1.", SW_UNIT_NONE, "digits should follow"},
		{"1.0000000000s", SW_UNIT_TIME, "digits should follow"},
		{"64k", SW_UNIT_BYTES, "unknown unit \"k\""},
		{"64kb", SW_UNIT_BYTES, "unknown unit \"kb\""},
		{"5", SW_UNIT_TIME, "no unit"},
		{"5sec", SW_UNIT_TIME, "ns us ms s min"},
		{"5", SW_UNIT_PERCENT, "no unit"},
		{"10", SW_UNIT_RATE, "Mb/s Gb/s"},
		{"1GiB", SW_UNIT_RATE, "unknown unit"},
	};
	char why[256];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t value = 7;

		assert_int_equal(sw_value_parse(rows[i].text, rows[i].unit,
					 &value, why, sizeof(why)),
			SW_EINVAL);
		assert_int_equal(value, 7);
		if (!strstr(why, rows[i].why))
			fail_msg("\"%s\": \"%s\" does not say \"%s\"",
				rows[i].text, why, rows[i].why);
	}
}

static void value_real_parse__strict(void **state)
{
	static const char *const bad[] = {"", "-1", "+1", "0x1p3", "inf", "nan",
		".5", "1e", "1e999", "1.0.0", " 1", "1 "};
	char why[256];
	double value = 7;

	assert_int_equal(
		sw_value_real_parse("2.5e-1", &value, why, sizeof(why)), 0);
	assert_true(value == 0.25);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(
			sw_value_real_parse(bad[i], &value, why, sizeof(why)),
			SW_EINVAL);
	assert_true(value == 0.25);
}

static void value_format__reads_back(void **state)
{
	static const enum sw_unit units[] = {
		SW_UNIT_NONE, SW_UNIT_BYTES, SW_UNIT_TIME, SW_UNIT_PERCENT};
	static const uint64_t values[] = {0, 1, 999, 1000, 1024, 5000, 12345,
		65536, 1000000, 60000000000, 100000000};
	char text[32], why[256];

	for (size_t u = 0; u < ARRAY_SIZE(units); u++)
		for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
			uint64_t value = 7;

			sw_value_format(
				values[i], units[u], text, sizeof(text));
			assert_int_equal(sw_value_parse(text, units[u], &value,
						 why, sizeof(why)),
				0);
			assert_int_equal(value, values[i]);
		}
}

static void value_format__largest_unit(void **state)
{
	char text[32];

	assert_string_equal(sw_value_format(UINT64_C(4) << 30, SW_UNIT_BYTES,
				    text, sizeof(text)),
		"4GiB");
	assert_string_equal(
		sw_value_format(90000000000, SW_UNIT_TIME, text, sizeof(text)),
		"90s");
	assert_string_equal(
		sw_value_format(5000, SW_UNIT_PERCENT, text, sizeof(text)),
		"0.5%");
}

static void nearest_add__closest(void **state)
{
	struct sw_nearest n;

	sw_nearest_init(&n, "quotta");
	sw_nearest_add(&n, "quit");
	sw_nearest_add(&n, "quota");
	sw_nearest_add(&n, "socket");
	assert_string_equal(n.best, "quota");
}

static void nearest_add__nothing_close(void **state)
{
	struct sw_nearest n;
	char longest[300];

	sw_nearest_init(&n, "xyz");
	sw_nearest_add(&n, "socket");
	assert_null(n.best);
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	sw_nearest_init(&n, longest);
	sw_nearest_add(&n, "");
	assert_null(n.best);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(value_parse__good),
		cmocka_unit_test(value_parse__bad),
		cmocka_unit_test(value_real_parse__strict),
		cmocka_unit_test(value_format__reads_back),
		cmocka_unit_test(value_format__largest_unit),
		cmocka_unit_test(nearest_add__closest),
		cmocka_unit_test(nearest_add__nothing_close),
	};

	return cmocka_run_group_tests_name("value", tests, NULL, NULL);
}
