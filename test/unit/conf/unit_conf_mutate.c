/* unit_conf_mutate.c - thousands of damaged configuration files.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "conf/conf.h"
#include "engine/base/error.h"

enum { N_MUTANTS = 4000, ROOM = 16384 };

static const char *root; /* the root of the source tree */

static uint32_t next(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(*seed >> 33);
}

static size_t seed_read(const char *name, char *text)
{
	char path[1024];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/conf/%s", root, name);
	f = fopen(path, "r");
	assert_non_null(f);
	n = fread(text, 1, ROOM / 2, f);
	fclose(f);
	assert_true(n > 0 && n < ROOM / 2);
	return n;
}

/* Insert @m bytes at @at. */
static size_t put(char *text, size_t n, size_t at, const char *what, size_t m)
{
	if (n + m > ROOM)
		return n;
	memmove(text + at + m, text + at, n - at);
	memcpy(text + at, what, m);
	return n + m;
}

/* Make one random change, as a person or a broken disk would. */
static size_t mutate(char *text, size_t n, uint64_t *seed)
{
	static const char *const words[] = {"[port a]\n", "[", "]", "=", ":",
		"\"", "'", ";", "#", "\\\n", "\\", "\n", " ", "0", "-", "9999",
		"99999999999999999999", "%", "GiB", "us", ".", ",", "/", "\r",
		"\t", "[job]\n", "ring = 64\n", "=\n", "both", "\xff", "%n%s"};
	char copy[256];
	size_t at = next(seed) % n, m;

	switch (next(seed) % 6) {
	case 0: /* change a byte */
		text[at] = (char)next(seed);
		return n;
	case 1: /* flip a bit */
		text[at] = (char)(text[at] ^ 1 << next(seed) % 7);
		return n;
	case 2: /* remove some bytes */
		m = 1 + next(seed) % 20;
		m = m < n - at ? m : n - at;
		memmove(text + at, text + at + m, n - at - m);
		return n - m ? n - m : 1;
	case 3: /* truncate */
		return next(seed) % 4 ? n : at + 1;
	case 4: /* repeat a piece */
		m = 1 + next(seed) % sizeof(copy);
		m = m < n - at ? m : n - at;
		memcpy(copy, text + at, m);
		return put(text, n, next(seed) % n, copy, m);
	default:
		m = next(seed) % (sizeof(words) / sizeof(words[0]));
		return put(text, n, at, words[m], strlen(words[m]));
	}
}

static void line_count(void *ctx, enum sw_log_level level, const char *text)
{
	uint32_t *n_lines = ctx;

	assert_int_equal(level, SW_LOG_ERROR);
	assert_true(strlen(text) > 0);
	++*n_lines;
}

/* Make a new file each time, because truncating an old one waits for the
 * disk. */
static FILE *file_create(const char *path)
{
	FILE *f;

	unlink(path);
	f = fopen(path, "wx");
	assert_non_null(f);
	return f;
}

/* An accepted file can be printed and loaded again, with the same result. */
static void printed_check(const struct sw_conf *conf, const char *path)
{
	struct sw_conf again;
	FILE *f = file_create(path);

	sw_conf_print(conf, NULL, f);
	fclose(f);
	assert_int_equal(sw_conf_load(path, &again, NULL), 0);
	assert_memory_equal(conf, &again, sizeof(again));
}

/* Load the mutant and return whether it was accepted. */
static bool mutant_load(const char *text, size_t n, const char *path)
{
	uint32_t n_lines = 0;
	struct sw_log log = {line_count, &n_lines, SW_LOG_DEBUG};
	struct sw_conf conf;
	FILE *f = file_create(path);
	int err;

	assert_int_equal(fwrite(text, 1, n, f), n);
	fclose(f);
	err = sw_conf_load(path, &conf, &log);
	/* Every error logs a line, and only an error does. */
	assert_true(err == 0 || err == SW_ECONF);
	assert_int_equal(err == 0, n_lines == 0);
	if (!err)
		printed_check(&conf, path);
	return !err;
}

static void conf_load__mutants(void **state)
{
	static const char *const names[] = {
		"loopback-server.ini", "loopback-agent.ini", "commented.ini"};
	char path[] = "/tmp/unit_conf_mutate_XXXXXX";
	char text[ROOM];
	uint32_t n_good = 0;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	for (uint32_t i = 0; i < N_MUTANTS; i++) {
		uint64_t seed = i;
		size_t n = seed_read(names[i % 3], text);

		for (uint32_t k = 1 + next(&seed) % 4; k; k--)
			n = mutate(text, n, &seed);
		n_good += mutant_load(text, n, path);
	}
	unlink(path);
	print_message("# %u of %u mutants are still good\n", n_good, N_MUTANTS);
	/* Mutants have both outcomes. */
	assert_in_range(n_good, N_MUTANTS / 50, N_MUTANTS / 2);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conf_load__mutants),
	};

	root = argc > 1 ? argv[1] : ".";
	return cmocka_run_group_tests_name("conf_mutate", tests, NULL, NULL);
}
