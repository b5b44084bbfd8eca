/* unit_args.c - the option parser of subcommands.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "apps/cli/args.h"
#include "engine/base/error.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* One option of each type, and the output of the parse. */
struct fixture {
	bool flag;
	uint32_t u32, low;
	uint64_t u64, bytes, time_ns, rate_bps;
	double real;
	const char *text;
	enum sw_dtype dtype;
	struct sw_arg_list list, files;
	char printed[4096];
};

/* Parse @argv and collect in @f->printed what the parser writes to @fd. */
static int parse(struct fixture *f, int fd, int argc, const char *const *argv)
{
	const struct sw_arg rows[] = {
		{"--flag", SW_ARG_FLAG, {.flag = &f->flag}, 0, 0, "a flag"},
		{"--count", SW_ARG_U32, {.u32 = &f->u32}, 1, 100, "a count"},
		{"--seed", SW_ARG_U64, {.u64 = &f->u64}, 0, 0, "a seed"},
		{"--wide", SW_ARG_U32, {.u32 = &f->u32}, 0, 0, "unbounded"},
		{"-z, --size", SW_ARG_BYTES, {.u64 = &f->bytes}, 4, 1 << 30,
			"a size"},
		{"--low", SW_ARG_U32, {.u32 = &f->low}, 1, 8,
			"a low one [default 2]"},
		{"--time", SW_ARG_TIME, {.u64 = &f->time_ns}, 0, 0, "a time"},
		{"--rate", SW_ARG_RATE, {.u64 = &f->rate_bps}, 0, 0, "a rate"},
		{"--real", SW_ARG_DOUBLE, {.real = &f->real}, 0, 1, "a real"},
		{"--text", SW_ARG_STRING, {.string = &f->text}, 0, 0,
			"a text whose help is too long for the first of the "
			"lines that a terminal of 80 columns shows of it"},
		{"--path", SW_ARG_PATH, {.string = &f->text}, 0, 0, "a path"},
		{"--dtype", SW_ARG_DTYPE, {.dtype = &f->dtype}, 0, 0,
			"a dtype"},
		{"--item", SW_ARG_LIST, {.list = &f->list}, 0, 0, "an item"},
	};
	const struct sw_args args = {
		.name = "test",
		.summary = "try the parser",
		.rows = rows,
		.n_rows = ARRAY_SIZE(rows),
		.positional = "FILE",
		.max_positionals = 2,
		.positionals = &f->files,
	};
	FILE *out = tmpfile();
	int kept = dup(fd), err;
	ssize_t n;

	*f = (struct fixture){.bytes = 4096};
	fflush(NULL);
	dup2(fileno(out), fd);
	err = sw_args_parse(&args, argc, (char **)argv);
	fflush(NULL);
	dup2(kept, fd);
	close(kept);
	n = pread(fileno(out), f->printed, sizeof(f->printed) - 1, 0);
	f->printed[n > 0 ? n : 0] = '\0';
	fclose(out);
	return err;
}

static void args_parse__all_types(void **state)
{
	static const char *const argv[] = {"test", "--flag", "--count", "7",
		"--seed=18446744073709551615", "--size", "64KiB", "--time=20us",
		"--rate", "10Gb/s", "--real", "0.25", "--text", "--odd",
		"--dtype", "bf16", "--item", "a", "--item=b", "f1", "--",
		"--f2"};
	struct fixture f;

	assert_int_equal(parse(&f, 2, ARRAY_SIZE(argv), argv), 0);
	assert_true(f.flag);
	assert_int_equal(f.u32, 7);
	assert_int_equal(f.u64, UINT64_MAX);
	assert_int_equal(f.bytes, 65536);
	assert_int_equal(f.time_ns, 20000);
	assert_int_equal(f.rate_bps, 10000000000);
	assert_true(f.real == 0.25);
	assert_string_equal(f.text, "--odd");
	assert_int_equal(f.dtype, SW_BF16);
	assert_int_equal(f.list.n, 2);
	assert_string_equal(f.list.items[1], "b");
	assert_int_equal(f.files.n, 2);
	assert_string_equal(f.files.items[1], "--f2");
	assert_string_equal(f.printed, "");
}

static void args_parse__nothing(void **state)
{
	static const char *const argv[] = {"test"};
	struct fixture f;

	assert_int_equal(parse(&f, 2, 1, argv), 0);
	assert_int_equal(f.bytes, 4096);
}

static void args_parse__bad(void **state)
{
	static const struct {
		const char *a, *b; /* one argument in up to two words */
		const char *why;
	} rows[] = {
		{"--szie", "4", "did you mean --size?"},
		{"--zzzzzzz", NULL, "unknown option --zzzzzzz ("},
		{"-s", NULL, "unknown option -s"},
		{"--count", NULL, "--count needs a value"},
		{"--count", "0", "out of range: 1 to 100"},
		{"--count", "101", "out of range: 1 to 100"},
		{"--count=", NULL, "is empty"},
		{"--count", "042", "leading zero"},
		{"--count", "7x", "\"x\" follows"},
		{"--count", "-1", "sign"},
		{"--wide", "4294967296", "too large"},
		{"--size", "64k", "unknown unit \"k\""},
		{"--size", "2GiB", "out of range: 4B to 1GiB"},
		{"--time", "10", "no unit"},
		{"--rate", "1", "no unit"},
		{"--real", "1.5", "out of range: 0 to 1"},
		{"--real", "nan", "not a number"},
		{"--dtype", "f33", "\"f33\", expected one of f32 f64 f16 u8"},
		{"--flag=yes", NULL, "takes no value"},
		{"--help=x", NULL, "unknown option --help"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *argv[] = {"test", rows[i].a, rows[i].b};
		struct fixture f;

		assert_int_equal(
			parse(&f, 2, rows[i].b ? 3 : 2, argv), SW_EINVAL);
		if (!strstr(f.printed, rows[i].why))
			fail_msg("%s: \"%s\" does not say \"%s\"", rows[i].a,
				f.printed, rows[i].why);
	}
}

/* The last value of an option wins, as shell aliases and wrappers assume. */
static void args_parse__the_last_counts(void **state)
{
	static const char *const argv[] = {"test", "--flag", "--count", "5",
		"-z", "1M", "--flag", "--count=7", "--size", "8K", "-z=4M"};
	struct fixture f;

	assert_int_equal(parse(&f, 2, 11, argv), 0);
	assert_true(f.flag);
	assert_int_equal(f.u32, 7);
	assert_int_equal(f.bytes, 4 << 20);
}

static void args_parse__short_and_long_names(void **state)
{
	static const char *const bad[] = {
		"-", "-S", "--siz", "-z,", "z", "-z, --size", "size", "-z1"};
	static const char *const help[] = {"test", "-h"};
	static const char *const version[] = {"test", "--flag", "-V"};
	struct fixture f;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const char *argv[] = {"test", bad[i], "4"};

		if (bad[i][0] == '-' && bad[i][1])
			assert_int_equal(parse(&f, 2, 3, argv), SW_EINVAL);
	}
	assert_int_equal(parse(&f, 1, 2, help), SW_ARGS_HELP);
	assert_non_null(strstr(f.printed, "-z, --size BYTES"));
	assert_non_null(strstr(f.printed, "-h, --help"));
	assert_int_equal(parse(&f, 1, 3, version), SW_ARGS_HELP);
	assert_memory_equal(f.printed, "test ", 5);
	assert_true(f.printed[5] >= '0' && f.printed[5] <= '9');
}

static void args_parse__too_many_files(void **state)
{
	static const char *const argv[] = {"test", "a", "b", "c"};
	struct fixture f;

	assert_int_equal(parse(&f, 2, 4, argv), SW_EINVAL);
	assert_non_null(strstr(f.printed, "at most 2"));
}

static void args_parse__too_many_items(void **state)
{
	const char *argv[SW_ARG_LIST_MAX + 2];
	struct fixture f;

	argv[0] = "test";
	for (int i = 1; i < SW_ARG_LIST_MAX + 2; i++)
		argv[i] = "--item=a";
	assert_int_equal(parse(&f, 2, SW_ARG_LIST_MAX + 1, argv), 0);
	assert_int_equal(parse(&f, 2, SW_ARG_LIST_MAX + 2, argv), SW_EINVAL);
}

static void args_parse__help(void **state)
{
	static const char *const argv[] = {"test", "--flag", "--help", "--bad"};
	struct fixture f;

	assert_int_equal(parse(&f, 1, 4, argv), SW_ARGS_HELP);
	assert_non_null(strstr(f.printed, "usage: test [options] "
					  "[FILE...]"));
	assert_non_null(strstr(f.printed, "--size BYTES"));
	assert_non_null(strstr(f.printed, "a size [4B to 1GiB, default 4KiB]"));
	/* 0 is not a valid value, so there is no default */
	assert_non_null(strstr(f.printed, "a count [1 to 100]\n"));
	assert_non_null(strstr(f.printed, "a low one [default 2, 1 to 8]\n"));
	assert_non_null(strstr(f.printed, "--path PATH "));
	assert_non_null(strstr(f.printed, "an item [may be repeated]"));
	for (const char *line = f.printed; *line; line += *line == '\n') {
		assert_in_range(strcspn(line, "\n"), 0, 80);
		line += strcspn(line, "\n");
	}
}

/* Words from the first non-option on belong to another command. */
static void args_parse__command(void **state)
{
	static const struct {
		const char *argv[5];
		int argc, err, at;
	} rows[] = {
		{{"test", "--flag", "cmd", "--flag", "x"}, 5, 0, 2},
		{{"test", "cmd"}, 2, 0, 1},
		{{"test", "--flag", "--", "--cmd"}, 4, 0, 3},
		{{"test", "--flag"}, 2, SW_EINVAL, -1},
		{{"test", "--", "--cmd", "--flag"}, 4, 0, 2},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		bool flag = false;
		int at = -1;
		const struct sw_arg flags[] = {{"--flag", SW_ARG_FLAG,
			{.flag = &flag}, 0, 0, "a flag"}};
		const struct sw_args args = {.name = "test",
			.summary = "try the parser",
			.rows = flags,
			.n_rows = 1,
			.positional = "CMD",
			.command_at = &at};

		assert_int_equal(sw_args_parse(&args, rows[i].argc,
					 (char **)rows[i].argv),
			rows[i].err);
		assert_int_equal(at, rows[i].at);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(args_parse__all_types),
		cmocka_unit_test(args_parse__nothing),
		cmocka_unit_test(args_parse__bad),
		cmocka_unit_test(args_parse__the_last_counts),
		cmocka_unit_test(args_parse__short_and_long_names),
		cmocka_unit_test(args_parse__too_many_files),
		cmocka_unit_test(args_parse__too_many_items),
		cmocka_unit_test(args_parse__help),
		cmocka_unit_test(args_parse__command),
	};

	return cmocka_run_group_tests_name("args", tests, NULL, NULL);
}
