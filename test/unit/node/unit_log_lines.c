/* unit_log_lines.c - log lines of an lcore.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/node/log_lines.h"
#include "engine/base/error.h"
#include "test/support/alloc.h"
#include "test/support/unit.h"

#include <stdio.h>
#include <string.h>

enum { MANY = 1000 };

struct written {
	uint32_t n;
	enum sw_log_level level;
	char first[512], last[512], lost[512];
};

static void line(void *ctx, enum sw_log_level level, const char *text)
{
	struct written *w = ctx;

	w->level = level;
	strcpy(w->n++ ? w->last : w->first, text);
	if (strstr(text, "were dropped"))
		strcpy(w->lost, text);
}

/* The lcore writes nothing; the control thread writes all lines in order. */
static void write__in_order(void **state)
{
	struct written w = {0};
	struct sw_log to = {.line = line, .ctx = &w, .level = SW_LOG_INFO};
	struct sw_lines *l;

	(void)state;
	assert_int_equal(sw_lines_open(&l, &to), 0);
	sw_log(sw_lines_log(l), SW_LOG_INFO, "job %s: opened", "a");
	sw_log(sw_lines_log(l), SW_LOG_DEBUG, "too much");
	sw_log(sw_lines_log(l), SW_LOG_WARN, "rank %u is silent", 3);
	assert_int_equal(w.n, 0);
	sw_lines_write(l);
	assert_int_equal(w.n, 2);
	assert_string_equal(w.first, "job a: opened");
	assert_string_equal(w.last, "rank 3 is silent");
	assert_int_equal(w.level, SW_LOG_WARN);
	sw_log(sw_lines_log(l), SW_LOG_INFO, "the last");
	sw_lines_close(l);
	assert_string_equal(w.last, "the last");
}

/* If no line is written for a while, the lcore continues, and lost lines are
 * counted. */
static void write__late(void **state)
{
	struct written w = {0};
	struct sw_log to = {.line = line, .ctx = &w, .level = SW_LOG_INFO};
	struct sw_lines *l;
	char text[64];

	(void)state;
	assert_int_equal(sw_lines_open(&l, &to), 0);
	for (uint32_t i = 0; i < MANY; i++)
		sw_log(sw_lines_log(l), SW_LOG_INFO, "line %u", i);
	sw_lines_write(l);
	assert_string_equal(w.first, "line 0");
	snprintf(text, sizeof(text), "line %u", w.n - 1);
	assert_string_equal(w.last, text);
	snprintf(text, sizeof(text), "%u log lines", MANY - w.n);
	sw_log(sw_lines_log(l), SW_LOG_INFO, "after");
	sw_lines_write(l);
	assert_int_equal(strncmp(w.lost, text, strlen(text)), 0);
	assert_string_equal(w.last, "after");
	sw_lines_close(l);
	sw_lines_close(NULL);
}

static void open__without_memory(void **state)
{
	struct sw_log to = {.line = line};
	struct sw_lines *l;

	(void)state;
	alloc_fail_at(1);
	assert_int_equal(sw_lines_open(&l, &to), SW_ENOMEM);
	alloc_fail_at(0);
	assert_null(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write__in_order),
		cmocka_unit_test(write__late),
		cmocka_unit_test(open__without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
