/* unit_log_stderr.c - log lines to a stderr that is full or closed.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "apps/cli/log.h"

/* Stderr is a pipe while a test runs. */
struct fixture {
	int saved, out[2];
	struct sw_log_sink sink;
	struct sw_log log;
	char text[1 << 17];
};

static struct fixture *begin(void)
{
	static struct fixture x;

	x.saved = dup(STDERR_FILENO);
	assert_int_equal(pipe(x.out), 0);
	assert_int_equal(fcntl(x.out[0], F_SETFL, O_NONBLOCK), 0);
	assert_true(dup2(x.out[1], STDERR_FILENO) >= 0);
	sw_log_sink_open(&x.sink);
	sw_log_init(&x.log, &x.sink, SW_LOG_INFO);
	return &x;
}

static void end(struct fixture *x)
{
	sw_log_sink_close(&x->sink);
	dup2(x->saved, STDERR_FILENO);
	close(x->saved);
	close(x->out[0]);
	close(x->out[1]);
}

/* Read everything that is in the pipe. */
static const char *drain(struct fixture *x)
{
	size_t n = 0;
	ssize_t got;

	while ((got = read(x->out[0], x->text + n, sizeof(x->text) - 1 - n)) >
		0)
		n += (size_t)got;
	x->text[n] = 0;
	return x->text;
}

static void line__whole(void **state)
{
	struct fixture *x = begin();

	sw_log(&x->log, SW_LOG_WARN, "rank %d\nis late", 1);
	sw_log(&x->log, SW_LOG_DEBUG, "no");
	assert_non_null(strstr(drain(x), " warn rank 1?is late\n"));
	assert_null(strstr(x->text, "no"));
	end(x);
}

/* The longest text of sw_log fits even if every character is escaped. */
static void line__formats(void **state)
{
	struct fixture *x = begin();
	enum sw_log_format format;
	char quotes[512], want[1100] = "";

	memset(quotes, '"', 511);
	quotes[511] = 0;
	for (uint32_t i = 0; i < 511; i++)
		strcat(want, "\\\"");
	strcat(want, "\"}\n");
	x->sink.format = SW_LOG_JSON;
	sw_log(&x->log, SW_LOG_WARN, "a\\b");
	sw_log(&x->log, SW_LOG_WARN, "%s", quotes);
	drain(x);
	assert_true(!strncmp(x->text, "{\"time\": \"20", 12));
	assert_contains(
		x->text, "Z\", \"level\": \"warn\", \"text\": \"a\\\\b\"}\n{");
	assert_contains(x->text, want);
	x->sink.format = SW_LOG_JOURNAL;
	sw_log(&x->log, SW_LOG_ERROR, "late");
	assert_string_equal(drain(x), "<3>late\n");
	assert_int_equal(sw_log_format_parse("xml", &format), SW_EINVAL);
	assert_int_equal(sw_log_format_parse("json", &format), 0);
	assert_int_equal(format, SW_LOG_JSON);
	setenv("JOURNAL_STREAM", "1:2", 1); /* not our stderr */
	assert_int_equal(sw_log_format_parse("auto", &format), 0);
	assert_int_equal(format, SW_LOG_TEXT);
	end(x);
}

/* Do not use time(): its clock lags by some milliseconds. */
static time_t now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec;
}

/* A line has its time in UTC, to the millisecond. */
static void line__says_when(void **state)
{
	struct fixture *x = begin();
	time_t before = now_s(), at;
	struct tm tm = {0};
	const char *rest;

	setenv("TZ", "Pacific/Kiritimati", 1);
	tzset();
	sw_log(&x->log, SW_LOG_INFO, "here");
	rest = strptime(drain(x), "%Y-%m-%dT%H:%M:%S.", &tm);
	assert_non_null(rest);
	at = timegm(&tm);
	assert_true(at >= before && at <= now_s());
	assert_int_equal(strspn(rest, "0123456789"), 3);
	assert_string_equal(rest + 3, "Z info here\n");
	end(x);
}

/* A full stderr does not block the logger. Other users of stderr keep their
 * blocking mode. When there is room again, the log reports how many lines are
 * missing. */
static void line__stderr_is_full(void **state)
{
	struct fixture *x = begin();
	uint32_t n = 0, lines = 0;

	while (!atomic_load(&x->sink.n_dropped) && n < 100000)
		sw_log(&x->log, SW_LOG_INFO, "line %u", n++);
	for (uint32_t i = 0; i < 9; i++)
		sw_log(&x->log, SW_LOG_INFO, "one more");
	assert_int_equal(x->sink.n_dropped, 10);
	assert_false(fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK);
	for (const char *at = drain(x); (at = strchr(at, '\n')); at++)
		lines++;
	assert_int_equal(lines, n - 1);
	sw_log(&x->log, SW_LOG_INFO, "again");
	assert_non_null(strstr(
		drain(x), " warn 10 log lines dropped: stderr was full\n20"));
	assert_non_null(strstr(x->text, " info again\n"));
	end(x);
}

/* A closed stderr does not end the process. */
static void line__stderr_is_closed(void **state)
{
	struct fixture *x = begin();

	signal(SIGPIPE, SIG_IGN); /* as the daemons do */
	close(x->out[0]);
	sw_log(&x->log, SW_LOG_INFO, "to nobody");
	assert_int_equal(x->sink.n_dropped, 1);
	x->out[0] = dup(x->out[1]);
	end(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line__whole),
		cmocka_unit_test(line__formats),
		cmocka_unit_test(line__says_when),
		cmocka_unit_test(line__stderr_is_full),
		cmocka_unit_test(line__stderr_is_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
