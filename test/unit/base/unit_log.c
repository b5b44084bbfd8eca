/* unit_log.c - one log line.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include "engine/base/log.h"

struct seen {
	int n;
	enum sw_log_level level;
	char text[1024];
};

static void line(void *ctx, enum sw_log_level level, const char *text)
{
	struct seen *s = ctx;

	s->n++;
	s->level = level;
	assert_true(strlen(text) < sizeof(s->text));
	strcpy(s->text, text);
}

static void log__formats(void **state)
{
	struct seen s = {0};
	struct sw_log log = {line, &s, SW_LOG_INFO};

	sw_log(&log, SW_LOG_WARN, "rank %d, %s", 3, "late");
	assert_int_equal(s.n, 1);
	assert_int_equal(s.level, SW_LOG_WARN);
	assert_string_equal(s.text, "rank 3, late");
}

static void log__level(void **state)
{
	struct seen s = {0};
	struct sw_log log = {line, &s, SW_LOG_WARN};

	sw_log(&log, SW_LOG_INFO, "no");
	sw_log(&log, SW_LOG_DEBUG, "no");
	assert_int_equal(s.n, 0);
	sw_log(&log, SW_LOG_WARN, "yes");
	sw_log(&log, SW_LOG_ERROR, "yes");
	assert_int_equal(s.n, 2);
}

static void log__nowhere(void **state)
{
	struct sw_log log = {NULL, NULL, SW_LOG_DEBUG};

	sw_log(NULL, SW_LOG_ERROR, "lost");
	sw_log(&log, SW_LOG_ERROR, "lost");
}

static void log__long_line_is_cut(void **state)
{
	struct seen s = {0};
	struct sw_log log = {line, &s, SW_LOG_INFO};

	sw_log(&log, SW_LOG_INFO, "%0900d", 7);
	assert_int_equal(strlen(s.text), 511);
}

static void ranks__as_text(void **state)
{
	static const struct {
		uint64_t ranks;
		const char *text;
	} rows[] = {{1, "agent 0"}, {1ULL << 63, "agent 63"},
		{5, "agents 0, 2"}, {3, "agents 0, 1"}, {7, "agents 0-2"},
		{0xf2, "agents 1, 4-7"}, {~0ULL, "agents 0-63"},
		{~0ULL << 62, "agents 62, 63"}};
	char out[SW_AGENTS_TEXT];

	for (size_t i = 0; i < SW_ARRAY_SIZE(rows); i++)
		assert_string_equal(
			sw_agents_text(rows[i].ranks, out), rows[i].text);
	/* the longest text */
	sw_agents_text(0x6db6db6db6db6db6, out);
	assert_true(strlen(out) < SW_AGENTS_TEXT - 1);
	assert_non_null(strstr(out, ", 61, 62"));
	sw_agents_text(0xaaaaaaaaaaaaaaaa, out);
	assert_non_null(strstr(out, ", 61, 63"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(log__formats),
		cmocka_unit_test(log__level),
		cmocka_unit_test(log__nowhere),
		cmocka_unit_test(log__long_line_is_cut),
		cmocka_unit_test(ranks__as_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
