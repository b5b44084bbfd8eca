/* unit_start_watch.c - a start that is slow says what it waits for.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "apps/node/start_watch.h"
#include "test/support/unit.h"

enum { EVERY_MS = 20, LIMIT_MS = 60000 };

struct sink {
	int ends[2];
	char text[256];
};

static void take(void *ctx, enum sw_log_level level, const char *text)
{
	const struct sink *s = ctx;

	(void)level;
	(void)!write(s->ends[1], text, strlen(text));
}

static void watch__says_what_is_not_open(void **state)
{
	struct sink s = {.text = ""};
	struct sw_log log = {take, &s, SW_LOG_INFO};
	struct sw_start_watch w;
	struct pollfd f;

	(void)state;
	assert_int_equal(pipe(s.ends), 0);
	f = (struct pollfd){.fd = s.ends[0], .events = POLLIN};
	sw_start_watch_open(&w, EVERY_MS, &log);
	sw_start_watch_say(&w, "port", "lan");
	assert_int_equal(poll(&f, 1, LIMIT_MS), 1);
	sw_start_watch_close(&w);
	assert_true(read(s.ends[0], s.text, sizeof(s.text) - 1) > 0);
	assert_contains(
		s.text, "still starting after 0 s: port lan is not open");
	close(s.ends[0]);
	close(s.ends[1]);
}

static void watch__is_silent_in_time(void **state)
{
	struct sink s = {.text = ""};
	struct sw_log log = {take, &s, SW_LOG_INFO};
	struct sw_start_watch w;
	struct pollfd f;

	(void)state;
	assert_int_equal(pipe(s.ends), 0);
	f = (struct pollfd){.fd = s.ends[0], .events = POLLIN};
	sw_start_watch_open(&w, LIMIT_MS, &log);
	sw_start_watch_close(&w); /* at once */
	assert_int_equal(poll(&f, 1, 0), 0);
	close(s.ends[0]);
	close(s.ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(watch__says_what_is_not_open),
		cmocka_unit_test(watch__is_silent_in_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
