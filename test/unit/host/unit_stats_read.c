/* unit_stats_read.c - read a daemon's counters.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "pmd/host/stats_read.h"

/* A daemon that sends @text to its first client. */
struct daemon {
	char dir[32], path[64];
	const char *text;
	int sock;
	pthread_t thread;
};

struct seen {
	char text[256];
};

static void *answer(void *arg)
{
	struct daemon *d = arg;
	int sock = accept(d->sock, NULL, NULL);

	assert_int_equal(
		write(sock, d->text, strlen(d->text)), strlen(d->text));
	close(sock);
	return NULL;
}

static void listen_as(struct daemon *d, int type)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	strcpy(d->dir, "/tmp/unit_stats.XXXXXX");
	assert_non_null(mkdtemp(d->dir));
	snprintf(d->path, sizeof(d->path), "%s/s", d->dir);
	strcpy(a.sun_path, d->path);
	d->sock = socket(AF_UNIX, type, 0);
	assert_int_equal(bind(d->sock, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(d->sock, 1), 0);
}

static void start(struct daemon *d, const char *text)
{
	listen_as(d, SOCK_STREAM);
	d->text = text;
	assert_int_equal(pthread_create(&d->thread, NULL, answer, d), 0);
}

static void remove_socket(struct daemon *d)
{
	close(d->sock);
	unlink(d->path);
	rmdir(d->dir);
}

static void stop(struct daemon *d)
{
	pthread_join(d->thread, NULL);
	remove_socket(d);
}

static void each(void *ctx, const char *name, uint64_t value)
{
	struct seen *s = ctx;
	size_t at = strlen(s->text);

	snprintf(s->text + at, sizeof(s->text) - at, "%s=%llu;", name,
		(unsigned long long)value);
}

static void read_case(const char *text, int want_err, const char *want)
{
	struct seen s = {""};
	struct daemon d;

	start(&d, text);
	assert_int_equal(sw_stats_read(d.path, each, &s), want_err);
	assert_string_equal(s.text, want);
	stop(&d);
}

static void read__every_line(void **state)
{
	read_case("", 0, "");
	read_case("rx_frames 0\nlost 18446744073709551615\n", 0,
		"rx_frames=0;lost=18446744073709551615;");
}

static void read__bad_lines(void **state)
{
	read_case("a 1\nb\n", SW_EPROTO, "a=1;");
	read_case("a -1\n", SW_EPROTO, "");
	read_case("a 1x\n", SW_EPROTO, "");
	read_case(" 1\n", SW_EPROTO, "");
	read_case("a 18446744073709551616\n", SW_EPROTO, "");
	read_case("a 1", SW_EPROTO, "");
}

static void read__long_line(void **state)
{
	char text[400];

	memset(text, 'a', sizeof(text));
	strcpy(text + sizeof(text) - 4, " 1\n");
	read_case(text, SW_EPROTO, "");
}

static void read__nobody_there(void **state)
{
	char path[200];

	assert_int_equal(
		sw_stats_read("/tmp/nowhere/stats", each, NULL), SW_ECLOSED);
	memset(path, 'a', sizeof(path) - 1);
	path[sizeof(path) - 1] = 0;
	assert_int_equal(sw_stats_read(path, each, NULL), SW_EINVAL);
}

/* The socket belongs to an agent, for training processes. */
static void read__socket_of_another_kind(void **state)
{
	struct daemon d;

	listen_as(&d, SOCK_SEQPACKET);
	assert_int_equal(sw_stats_read(d.path, each, NULL), SW_EPROTO);
	remove_socket(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read__every_line),
		cmocka_unit_test(read__bad_lines),
		cmocka_unit_test(read__long_line),
		cmocka_unit_test(read__nobody_there),
		cmocka_unit_test(read__socket_of_another_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
