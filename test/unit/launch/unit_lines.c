/* unit_lines.c - pass on whole lines of another process's output.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "apps/launch/lines.h"
#include "engine/base/error.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

struct fixture {
	struct sw_lines lines;
	int in; /* the end that the test writes to */
	FILE *out;
	char text[4096];
};

static void setup(struct fixture *f)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	f->in = ends[1];
	f->out = tmpfile();
	sw_lines_init(&f->lines, ends[0], f->out, "[7] ");
}

static void teardown(struct fixture *f)
{
	sw_lines_fini(&f->lines);
	if (f->in >= 0)
		close(f->in);
	fclose(f->out);
}

static void say(struct fixture *f, const char *text)
{
	ssize_t n = (ssize_t)strlen(text);

	assert_int_equal(write(f->in, text, (size_t)n), n);
	assert_int_equal(sw_lines_move(&f->lines), 0);
}

static void hang_up(struct fixture *f)
{
	close(f->in);
	f->in = -1;
	assert_int_equal(sw_lines_move(&f->lines), 0);
	assert_int_equal(f->lines.fd, -1);
}

static const char *given(struct fixture *f)
{
	ssize_t n = pread(fileno(f->out), f->text, sizeof(f->text) - 1, 0);

	f->text[n > 0 ? n : 0] = '\0';
	return f->text;
}

static void lines_move__pieces_and_ends(void **state)
{
	static const struct {
		const char *pieces[3];
		const char *before_end, *after;
	} rows[] = {
		{{"a\nb\n"}, "[7] a\n[7] b\n", "[7] a\n[7] b\n"},
		{{"a", "b", "c\n"}, "[7] abc\n", "[7] abc\n"},
		{{"a\nb"}, "[7] a\n", "[7] a\n[7] b\n"},
		{{"\n\n"}, "[7] \n[7] \n", "[7] \n[7] \n"},
		{{"1%\r2%\r"}, "[7] 1%\r", "[7] 1%\r[7] 2%\r"},
		{{"1%\r", "2%\n"}, "[7] 1%\r[7] 2%\n", "[7] 1%\r[7] 2%\n"},
		{{"a\r\n"}, "[7] a\r\n", "[7] a\r\n"},
		{{"a\r", "\n"}, "[7] a\r\n", "[7] a\r\n"},
		{{""}, "", ""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct fixture f;

		setup(&f);
		for (int k = 0; k < 3 && rows[i].pieces[k]; k++)
			say(&f, rows[i].pieces[k]);
		assert_string_equal(given(&f), rows[i].before_end);
		hang_up(&f);
		assert_string_equal(given(&f), rows[i].after);
		teardown(&f);
	}
	(void)state;
}

/* Text from another writer may come between two lines, never inside one. */
static void lines_move__does_not_tear(void **state)
{
	struct fixture f;

	setup(&f);
	say(&f, "first ha");
	fputs("[8] other\n", f.out);
	say(&f, "lf\n");
	assert_string_equal(given(&f), "[8] other\n[7] first half\n");
	teardown(&f);
	(void)state;
}

static void lines_move__longest_line(void **state)
{
	const size_t n = SW_LINES_MAX + 1000;
	struct fixture f;
	char *piece = malloc(1000);
	long size;

	memset(piece, 'x', 999);
	piece[999] = '\0';
	setup(&f);
	for (size_t at = 0; at < n; at += 999)
		say(&f, piece);
	fseek(f.out, 0, SEEK_END);
	size = ftell(f.out);
	assert_int_equal(size, SW_LINES_MAX + strlen("[7] \n"));
	assert_int_equal(f.lines.room, SW_LINES_MAX);
	hang_up(&f);
	teardown(&f);
	free(piece);
	(void)state;
}

static void lines_move__nowhere_to_write(void **state)
{
	struct fixture f;
	FILE *full = fopen("/dev/full", "w");

	if (!full)
		skip();
	setup(&f);
	f.lines.to = full;
	assert_int_equal(write(f.in, "a\n", 2), 2);
	assert_int_equal(sw_lines_move(&f.lines), SW_EIO);
	teardown(&f);
	fclose(full);
	(void)state;
}

static void lines_fini__gives_the_rest(void **state)
{
	struct fixture f;

	setup(&f);
	say(&f, "no end");
	sw_lines_fini(&f.lines);
	assert_string_equal(given(&f), "[7] no end\n");
	teardown(&f);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_move__pieces_and_ends),
		cmocka_unit_test(lines_move__does_not_tear),
		cmocka_unit_test(lines_move__longest_line),
		cmocka_unit_test(lines_move__nowhere_to_write),
		cmocka_unit_test(lines_fini__gives_the_rest),
	};

	return cmocka_run_group_tests_name("lines", tests, NULL, NULL);
}
