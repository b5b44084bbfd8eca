/* unit_stats_serve.c - serve a daemon's counters to readers.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "pmd/host/stats_read.h"
#include "pmd/host/stats_serve.h"

enum { COUNTERS = 1200 /* a daemon with 32 ports, and some more */ };

struct scene {
	char dir[32], path[64], said[512];
	struct sw_log log;
	struct sw_stats_serve *serve;
	atomic_bool stop;
	uint64_t n_seen;
};

static void line(void *ctx, enum sw_log_level level, const char *text)
{
	struct scene *s = ctx;

	snprintf(s->said, sizeof(s->said), "%s", text);
}

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	s->log = (struct sw_log){.line = line, .ctx = s, .level = SW_LOG_DEBUG};
	strcpy(s->dir, "/tmp/unit_stats.XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	snprintf(s->path, sizeof(s->path), "%s/stats", s->dir);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	sw_stats_serve_close(&s->serve);
	assert_int_equal(rmdir(s->dir), 0);
	free(s);
	return 0;
}

static void fill(void *ctx,
	void (*put)(void *out, const char *name, uint64_t value), void *out)
{
	char name[64];

	for (uint32_t i = 0; i < COUNTERS; i++) {
		snprintf(name, sizeof(name), "port.link%u.counter", i);
		put(out, name, UINT64_MAX - i);
	}
}

static int serve_open(struct scene *s)
{
	return sw_stats_serve_open(s->path, fill, s, &s->log, &s->serve);
}

static void *serve(void *arg)
{
	struct scene *s = arg;

	while (!atomic_load(&s->stop)) {
		sw_stats_serve_poll(s->serve);
		usleep(1000);
	}
	return NULL;
}

static void each(void *ctx, const char *name, uint64_t value)
{
	struct scene *s = ctx;
	char want[64];

	snprintf(
		want, sizeof(want), "port.link%u.counter", (uint32_t)s->n_seen);
	assert_string_equal(name, want);
	assert_int_equal(value, UINT64_MAX - s->n_seen);
	s->n_seen++;
}

static void poll__all_counters_however_many(void **state)
{
	struct scene *s = *state;
	pthread_t thread;

	assert_int_equal(serve_open(s), 0);
	assert_int_equal(pthread_create(&thread, NULL, serve, s), 0);
	assert_int_equal(sw_stats_read(s->path, each, s), 0);
	atomic_store(&s->stop, true);
	pthread_join(thread, NULL);
	assert_int_equal(s->n_seen, COUNTERS);
}

static void open__leaves_what_is_no_socket(void **state)
{
	struct scene *s = *state;
	FILE *f = fopen(s->path, "w");

	assert_non_null(f);
	fclose(f);
	assert_int_equal(serve_open(s), SW_EINVAL);
	assert_non_null(strstr(s->said, "exists and is not a socket"));
	assert_int_equal(unlink(s->path), 0); /* the file still exists */
}

/* Bind a socket of @type to the path; after its close the file remains. */
static int bound(const struct scene *s, int type)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type, 0);

	strcpy(a.sun_path, s->path);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static void open__leaves_a_listener_of_any_type(void **state)
{
	static const int types[] = {SOCK_STREAM, SOCK_SEQPACKET};
	struct scene *s = *state;

	for (uint32_t i = 0; i < 2; i++) {
		int fd = bound(s, types[i]);

		assert_int_equal(listen(fd, 1), 0);
		assert_int_equal(serve_open(s), SW_EBUSY);
		assert_non_null(strstr(s->said, "another process listens"));
		close(fd);
		assert_int_equal(unlink(s->path), 0);
	}
}

static void open__replaces_a_stale_socket(void **state)
{
	struct scene *s = *state;

	close(bound(s, SOCK_STREAM));
	assert_int_equal(serve_open(s), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			poll__all_counters_however_many, setup, teardown),
		cmocka_unit_test_setup_teardown(
			open__leaves_what_is_no_socket, setup, teardown),
		cmocka_unit_test_setup_teardown(
			open__leaves_a_listener_of_any_type, setup, teardown),
		cmocka_unit_test_setup_teardown(
			open__replaces_a_stale_socket, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
