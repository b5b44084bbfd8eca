/* unit_start_watch.c - a slow start logs what it waits for.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "apps/node/start_watch.h"
#include "test/support/unit.h"

enum { EVERY_MS = 20, LIMIT_MS = 60000, LINES = 100 };

struct sink {
	int ends[2];
	struct sw_log log;
	struct pollfd f;
	struct sw_start_watch w;
};

static void take(void *ctx, enum sw_log_level level, const char *text)
{
	const struct sink *s = ctx;

	(void)level;
	(void)!write(s->ends[1], text, strlen(text));
}

static void sink_open(struct sink *s, uint32_t every_ms)
{
	assert_int_equal(pipe(s->ends), 0);
	s->log = (struct sw_log){take, s, SW_LOG_INFO};
	s->f = (struct pollfd){.fd = s->ends[0], .events = POLLIN};
	sw_start_watch_open(&s->w, every_ms, &s->log);
}

static void sink_close(const struct sink *s)
{
	close(s->ends[0]);
	close(s->ends[1]);
}

static void watch__says_what_is_not_open(void **state)
{
	char text[256] = "";
	struct sink s;

	(void)state;
	sink_open(&s, EVERY_MS);
	sw_start_watch_say(&s.w, "port", "lan");
	/* The first lines may precede the call. */
	for (uint32_t i = 0; i < LINES && !strstr(text, "port lan"); i++) {
		assert_int_equal(poll(&s.f, 1, LIMIT_MS), 1);
		memset(text, 0, sizeof(text));
		assert_true(read(s.ends[0], text, sizeof(text) - 1) > 0);
	}
	assert_contains(text, " s: port lan is not open");
	sw_start_watch_close(&s.w);
	sink_close(&s);
}

static void watch__is_silent_in_time(void **state)
{
	struct sink s;

	(void)state;
	sink_open(&s, LIMIT_MS);
	sw_start_watch_close(&s.w); /* before the first line is due */
	assert_int_equal(poll(&s.f, 1, 0), 0);
	sink_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(watch__says_what_is_not_open),
		cmocka_unit_test(watch__is_silent_in_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
