/* unit_digits.c - the reader of handwritten digits.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/examples/digits.h"
#include "engine/base/error.h"

enum { ROOM = 4096 };

/* Write a line of 64 pixels with the value @pixel and the digit @label. */
static void line(char *to, const char *pixel, const char *label)
{
	*to = 0;
	for (int i = 0; i < SW_DIGIT_PIXELS; i++) {
		strcat(to, pixel);
		strcat(to, ",");
	}
	strcat(to, label);
}

static void parse_fails(const char *text, const char *want)
{
	struct sw_digits d = {.n = 77};
	struct sw_digits_error e;

	assert_int_equal(
		sw_digits_parse("x.csv", text, strlen(text), &d, &e), SW_ECONF);
	assert_string_equal(e.text, want);
	assert_int_equal(d.n, 77);
}

static void parse__two_lines(void **state)
{
	char text[ROOM], second[ROOM];
	struct sw_digits d;
	struct sw_digits_error e;

	line(text, "16", "9\n");
	line(second, "4", "0");
	strcat(text, second);
	assert_int_equal(sw_digits_parse("x", text, strlen(text), &d, &e), 0);
	assert_int_equal(d.n, 2);
	assert_true(d.pixels[0] == 1 && d.pixels[64] == 0.25f);
	assert_int_equal(d.labels[0], 9);
	assert_int_equal(d.labels[1], 0);
	sw_digits_fini(&d);
}

static void parse__pixel_out_of_range(void **state)
{
	char text[ROOM], bad[ROOM];

	line(text, "3", "1\n");
	line(bad, "17", "1\n");
	strcat(text, bad);
	parse_fails(text, "x.csv:2: column 1: number above 16");
	line(text, "99999999999999999999", "1\n");
	parse_fails(text, "x.csv:1: column 1: number above 16");
}

static void parse__label_out_of_range(void **state)
{
	char text[ROOM];

	line(text, "3", "10\n");
	parse_fails(text, "x.csv:1: column 65: number above 9");
}

static void parse__not_a_number(void **state)
{
	char text[ROOM];

	line(text, "3", "x\n");
	parse_fails(text,
		"x.csv:1: column 65: expected a number 0 to 9, found 'x'");
	line(text, "3", "-1\n");
	parse_fails(text,
		"x.csv:1: column 65: expected a number 0 to 9, found '-'");
	line(text, " 3", "1\n");
	parse_fails(text, "x.csv:1: column 1: expected a number 0 to 16, found "
			  "byte 0x20");
}

static void parse__too_few_columns(void **state)
{
	parse_fails("1,2,3\n", "x.csv:1: column 3: expected a comma, found the "
			       "end of the line; a line has 64 pixels and a "
			       "digit");
	parse_fails("1,2,3", "x.csv:1: column 3: expected a comma, found the "
			     "end of the file; a line has 64 pixels and a "
			     "digit");
}

static void parse__too_many_columns(void **state)
{
	char text[ROOM];

	line(text, "3", "1,5\n");
	parse_fails(text, "x.csv:1: expected the end of the line after 65 "
			  "numbers, found ','");
	line(text, "3", "1\r\n");
	parse_fails(text, "x.csv:1: expected the end of the line after 65 "
			  "numbers, found byte 0x0d");
}

static void parse__empty(void **state)
{
	char text[ROOM];

	parse_fails("", "x.csv:1: empty; expected 1 to 1000000 images");
	line(text, "3", "1\n\n");
	parse_fails(text, "x.csv:2: column 1: expected a number 0 to 16, found "
			  "the end of the line");
}

/* A file with any one byte changed is refused, or its values are in range. */
static void parse__any_byte_changed(void **state)
{
	struct sw_digits_error e;
	struct sw_digits d;
	char text[ROOM];
	size_t n;

	line(text, "10", "1\n");
	n = strlen(text);
	for (size_t i = 0; i < n * 256; i++) {
		char was = text[i / 256];

		text[i / 256] = (char)(i % 256);
		if (!sw_digits_parse("x", text, n, &d, &e)) {
			assert_true(d.n == 1 && d.labels[0] < 10);
			for (int p = 0; p < 64; p++)
				assert_true(d.pixels[p] <= 1);
			sw_digits_fini(&d);
		}
		text[i / 256] = was;
	}
}

static void load__built_in(void **state)
{
	struct sw_digits_error e;
	struct sw_digits d;
	uint32_t counts[SW_DIGIT_CLASSES] = {0};

	assert_int_equal(sw_digits_load(NULL, &d, &e), 0);
	assert_int_equal(d.n, 1797);
	for (uint32_t i = 0; i < d.n; i++)
		counts[d.labels[i]]++;
	/* counts that the data's description gives */
	assert_int_equal(counts[0], 178);
	assert_int_equal(counts[3], 183);
	assert_int_equal(counts[8], 174);
	sw_digits_fini(&d);
}

static void load__no_file(void **state)
{
	struct sw_digits_error e;
	struct sw_digits d;

	assert_int_equal(sw_digits_load("/nowhere/x.csv", &d, &e), SW_EIO);
	assert_string_equal(e.text,
		"/nowhere/x.csv: cannot open: No such file or directory");
	assert_int_equal(sw_digits_load("/", &d, &e), SW_EIO);
	assert_string_equal(e.text, "/: cannot read: Is a directory");
}

static void load__file(void **state)
{
	char path[] = "/tmp/unit_digits.XXXXXX", text[ROOM];
	struct sw_digits_error e;
	struct sw_digits d;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	line(text, "8", "7\n");
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	assert_int_equal(sw_digits_load(path, &d, &e), 0);
	assert_true(d.n == 1 && d.labels[0] == 7 && d.pixels[63] == 0.5f);
	sw_digits_fini(&d);
	unlink(path);
}

static void split__every_fifth(void **state)
{
	char text[11 * 160] = "", one[ROOM], label[8];
	struct sw_digits all, train, test;
	struct sw_digits_error e;
	const uint8_t want[] = {0, 1, 2, 3, 5, 6, 7, 8, 0};

	for (int i = 0; i < 11; i++) {
		snprintf(label, sizeof(label), "%d\n", i % 10);
		line(one, "1", label);
		strcat(text, one);
	}
	assert_int_equal(sw_digits_parse("x", text, strlen(text), &all, &e), 0);
	assert_int_equal(sw_digits_split(&all, &train, &test), 0);
	assert_int_equal(train.n, 9);
	assert_memory_equal(train.labels, want, 9);
	assert_int_equal(test.n, 2);
	assert_true(test.labels[0] == 4 && test.labels[1] == 9);
	sw_digits_fini(&all);
	sw_digits_fini(&train);
	sw_digits_fini(&test);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse__two_lines),
		cmocka_unit_test(parse__pixel_out_of_range),
		cmocka_unit_test(parse__label_out_of_range),
		cmocka_unit_test(parse__not_a_number),
		cmocka_unit_test(parse__too_few_columns),
		cmocka_unit_test(parse__too_many_columns),
		cmocka_unit_test(parse__empty),
		cmocka_unit_test(parse__any_byte_changed),
		cmocka_unit_test(load__built_in),
		cmocka_unit_test(load__no_file),
		cmocka_unit_test(load__file),
		cmocka_unit_test(split__every_fifth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
