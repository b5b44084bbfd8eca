/* unit_text.c - which texts from outside are safe to keep and show.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <stdio.h>

#include "engine/base/log.h"
#include "engine/base/bytes.h"
#include "engine/base/text.h"

/* Bytes that a name may contain and a log must not. */
static const char *const bad[] = {"\n", "\t", "\x1b[31m", "\x7f",
	"\x80", /* invalid UTF-8 */
	"\x9b"
	"31m",      /* CSI in one byte, for a Latin-1 terminal */
	"\xc2\x80", /* C1 */
	"\xc2\x9b"
	"31m",          /* CSI */
	"\xc2\x9f",     /* the last C1 character */
	"\xd8\x9c",     /* U+061C */
	"\xe2\x80\x8e", /* U+200E */
	"\xe2\x80\x8f", /* U+200F */
	"\xe2\x80\xa8", /* U+2028, line separator */
	"\xe2\x80\xa9", /* U+2029 */
	"\xe2\x80\xaa", /* U+202A */
	"\xe2\x80\xae", /* U+202E, right to left */
	"\xe2\x81\xa6", /* U+2066 */
	"\xe2\x81\xa9", /* U+2069 */
	"\xc3",         /* the first of two bytes */
	"\xe2\x82",     /* two of three bytes */
	"\xf0\x9f\x98", /* three of four bytes */
	"\xc0\xaf",     /* overlong */
	"\xc1\xbf", "\xe0\x80\xaf", "\xf0\x80\x80\xaf",
	"\xed\xa0\x80",     /* a surrogate */
	"\xf4\x90\x80\x80", /* above U+10FFFF */
	"\xf8\x88\x80\x80\x80", "\xff"};

static const char *const good[] = {"gpu-7.rack_2", "a b~", "\xc2\xa0",
	"k\xc3\xbc"
	"bel",
	"\xd8\x9b", "\xe2\x80\x8d", "\xe2\x80\x90", "\xe2\x80\xaf",
	"\xe2\x81\xa5", "\xe2\x81\xaa", "\xed\x9f\xbf", "\xee\x80\x80",
	"\xe6\xa2\xaf\xe5\xba\xa6", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"};

static void good__prints(void **state)
{
	char text[64];

	for (size_t i = 0; i < SW_ARRAY_SIZE(good); i++) {
		assert_true(sw_text_is_good(good[i], 64));
		strcpy(text, good[i]);
		sw_text_clean(text, sizeof(text));
		assert_string_equal(text, good[i]);
	}
}

static void good__not(void **state)
{
	char text[64];

	for (size_t i = 0; i < SW_ARRAY_SIZE(bad); i++) {
		snprintf(text, sizeof(text), "node%s", bad[i]);
		assert_false(sw_text_is_good(text, sizeof(text)));
		snprintf(text, sizeof(text), "%sx", bad[i]);
		assert_false(sw_text_is_good(text, sizeof(text)));
	}
}

static void good__ends_within_its_room(void **state)
{
	assert_false(sw_text_is_good("", 8));
	assert_false(sw_text_is_good("abcd", 4));
	assert_true(sw_text_is_good("abcd", 5));
	/* a character that the buffer cuts is not read beyond the buffer */
	assert_false(sw_text_is_good("ab\xc3\xbc", 3));
}

/* Each bad byte becomes one '?', so lengths stay and later text stays
 * readable. */
static void clean__each_byte(void **state)
{
	char text[64];

	for (size_t i = 0; i < SW_ARRAY_SIZE(bad); i++) {
		snprintf(text, sizeof(text), "%s|ok", bad[i]);
		sw_text_clean(text, sizeof(text));
		assert_true(sw_text_is_good(text, sizeof(text)));
		assert_true(text[0] == '?');
		assert_int_equal(strlen(text), strlen(bad[i]) + 3);
		assert_string_equal(text + strlen(bad[i]), "|ok");
	}
}

static void clean__ends(void **state)
{
	char text[8];

	memset(text, 'x', sizeof(text));
	sw_text_clean(text, sizeof(text));
	assert_string_equal(text, "xxxxxxx");
	text[0] = 0;
	sw_text_clean(text, sizeof(text));
	assert_string_equal(text, "");
}

static void keep(void *ctx, enum sw_log_level level, const char *text)
{
	(void)level;
	snprintf(ctx, 600, "%s", text);
}

/* The log cleans a line that is cut inside a character, and a name in it that
 * was cut. */
static void log__is_text(void **state)
{
	char line[600];
	struct sw_log log = {keep, line, SW_LOG_INFO};

	sw_log(&log, SW_LOG_INFO, "%.2s %s", "a\xc3\xbc",
		"\xc2\x9b"
		"2J");
	assert_string_equal(line, "a? ??2J");
	sw_log(&log, SW_LOG_INFO, "%0510d\xc3\xbc", 7);
	assert_int_equal(strlen(line), 511);
	assert_true(sw_text_is_good(line, sizeof(line)));
}

static void expect_runs(uint32_t room, uint64_t low, uint64_t high, uint32_t n,
	uint32_t count, const char *want)
{
	uint64_t set[] = {low, high};
	char text[64];

	memset(text, '?', sizeof(text));
	assert_int_equal(sw_text_runs(text, room, set, n), count);
	assert_string_equal(text, want);
}

static void runs__of_numbers(void **state)
{
	expect_runs(64, 0, 0, 128, 0, "");
	expect_runs(64, 1, 0, 1, 1, "0");
	expect_runs(64, 0xf2, 0, 128, 5, "1, 4-7");
	expect_runs(64, 0x3, 0, 1, 1, "0"); /* only bits below n */
	expect_runs(64, 0x3, 0, 128, 2, "0, 1");
	expect_runs(64, 3ULL << 62, 3, 128, 4, "62-65");
	expect_runs(64, 0, ~0ULL, 128, 64, "64-127");
	/* "..." stands for the omitted runs */
	expect_runs(24, 0x555, 0, 128, 6, "0, 2, 4, ...");
	expect_runs(6, 0x5, 0, 128, 2, ", ...");
}

static void list__of_numbers(void **state)
{
	uint32_t out[8] = {0};

	assert_int_equal(sw_text_list("7", 8, out, 8), 1);
	assert_int_equal(out[0], 7);
	assert_int_equal(sw_text_list("7,2-4,0", 8, out, 5), 5);
	assert_int_equal(out[0], 7);
	assert_int_equal(out[1], 2);
	assert_int_equal(out[3], 4);
	assert_int_equal(out[4], 0);
	assert_int_equal(sw_text_list("3-3", 8, out, 8), 1);
}

static void list__not(void **state)
{
	static const char *const texts[] = {"", ",", "1,", ",1", "1-", "-1",
		"1 ", " 1", "01", "8", "2-8", "3-2", "1,1", "1-3,2", "1--2",
		"99999999999", "1-2-3", "a"};
	uint32_t out[8];

	for (size_t i = 0; i < SW_ARRAY_SIZE(texts); i++)
		assert_int_equal(sw_text_list(texts[i], 8, out, 8), 0);
	/* out is too small */
	assert_int_equal(sw_text_list("1-5", 8, out, 4), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good__prints),
		cmocka_unit_test(good__not),
		cmocka_unit_test(good__ends_within_its_room),
		cmocka_unit_test(clean__each_byte),
		cmocka_unit_test(clean__ends),
		cmocka_unit_test(log__is_text),
		cmocka_unit_test(runs__of_numbers),
		cmocka_unit_test(list__of_numbers),
		cmocka_unit_test(list__not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
