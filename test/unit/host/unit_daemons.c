/* unit_daemons.c - find daemons and read what they report about themselves.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pmd/host/daemons.h"
#include "pmd/host/tell.h"

enum { READERS = 200 };

static const struct sw_log quiet;

struct scene {
	char dir[32];
	struct sw_tell tell;
	atomic_bool stop;
};

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	strcpy(s->dir, "/tmp/unit_daemons.XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	sw_tell_close(&s->tell);
	assert_int_equal(rmdir(s->dir), 0);
	free(s);
	return 0;
}

static void say(void *ctx, FILE *to)
{
	(void)ctx;
	fprintf(to, "sumwire 1 9.9.9\nname gpu\nrole server\nstate up\n");
	sw_daemons_write_job(to, &(struct sw_daemon_job){.is_served = true,
					 .state = "running",
					 .n_here = 1,
					 .n_all = 2,
					 .n_ranks = 4,
					 .size = 8,
					 .age_s = 70,
					 .name = "a job"});
	fprintf(to, "missing agent 1\n");
}

static void *serve(void *arg)
{
	struct scene *s = arg;

	while (!atomic_load(&s->stop)) {
		sw_tell_poll(&s->tell, say, NULL);
		usleep(20000); /* daemons poll at this interval */
	}
	return NULL;
}

static void path_of(const struct scene *s, long pid, char path[108])
{
	snprintf(path, 108, "%s/" SW_DAEMON_PREFIX "%ld.sock", s->dir, pid);
}

static void tell_open(struct scene *s, long pid)
{
	char path[108];

	path_of(s, pid, path);
	assert_int_equal(sw_tell_open(&s->tell, path, "socket", &quiet), 0);
}

static void find__a_daemon_and_its_jobs(void **state)
{
	struct scene *s = *state;
	struct sw_found_daemons found = {0};
	const struct sw_found_daemon *d;
	pthread_t thread;

	tell_open(s, getpid());
	assert_int_equal(pthread_create(&thread, NULL, serve, s), 0);
	assert_int_equal(sw_daemons_find_in(s->dir, &found), 0);
	atomic_store(&s->stop, true);
	pthread_join(thread, NULL);
	assert_int_equal(found.n, 1);
	d = &found.all[0];
	assert_int_equal(d->found, SW_FOUND);
	assert_int_equal(d->pid, getpid());
	assert_string_equal(d->version, "9.9.9");
	assert_string_equal(d->name, "gpu");
	assert_null(d->stats);
	assert_int_equal(d->n_jobs, 1);
	assert_true(d->jobs[0].is_served);
	assert_string_equal(d->jobs[0].name, "a job");
	assert_string_equal(d->jobs[0].missing, "agent 1");
	assert_int_equal(d->jobs[0].size, 8);
	assert_int_equal(d->jobs[0].age_s, 70);
	sw_daemons_free(&found);
}

/* On a busy machine some of 200 readers may get no CPU within their timeout of
 * one second, so each reader retries. */
static int read_patiently(const char *dir)
{
	struct sw_found_daemons found = {0};
	bool has_found = false;

	for (int tries = 0; tries < 30 && !has_found; tries++) {
		sw_daemons_free(&found);
		has_found = !sw_daemons_find_in(dir, &found) && found.n == 1 &&
			    found.all[0].found == SW_FOUND;
	}
	return !has_found;
}

/* All readers are connected before the daemon answers the first one. */
static void find__two_hundred_readers_at_once(void **state)
{
	struct scene *s = *state;
	pthread_t thread;
	int status;

	tell_open(s, getpid());
	for (int i = 0; i < READERS; i++)
		if (!fork())
			_exit(read_patiently(s->dir));
	usleep(200000);
	assert_int_equal(pthread_create(&thread, NULL, serve, s), 0);
	for (int i = 0; i < READERS; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	atomic_store(&s->stop, true);
	pthread_join(thread, NULL);
}

/* If daemons hang, the reader waits one second in total, for any number of
 * them. */
static void find__silent_daemons(void **state)
{
	struct scene *s = *state;
	struct sw_found_daemons found = {0};

	tell_open(s, getpid());
	assert_int_equal(sw_daemons_find_in(s->dir, &found), 0);
	assert_int_equal(found.n, 1);
	assert_int_equal(found.all[0].found, SW_FOUND_SILENT);
	assert_int_equal(found.all[0].pid, getpid());
	sw_daemons_free(&found);
}

/* A reader that stops reading cannot block the daemon or another reader. */
static void poll__a_reader_that_stops(void **state)
{
	struct scene *s = *state;
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct sw_found_daemons found = {0};
	pthread_t thread;
	int lazy = socket(AF_UNIX, SOCK_STREAM, 0);

	tell_open(s, getpid());
	path_of(s, getpid(), a.sun_path);
	assert_int_equal(connect(lazy, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(pthread_create(&thread, NULL, serve, s), 0);
	assert_int_equal(sw_daemons_find_in(s->dir, &found), 0);
	assert_int_equal(found.all[0].found, SW_FOUND);
	atomic_store(&s->stop, true);
	pthread_join(thread, NULL);
	close(lazy);
	sw_daemons_free(&found);
}

/* Return the pid of a process that has ended. */
static pid_t dead_pid(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

static void find__collects_sockets_of_the_dead(void **state)
{
	struct scene *s = *state;
	struct sw_found_daemons found = {0};
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	path_of(s, dead_pid(), a.sun_path);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	close(fd);
	assert_int_equal(sw_daemons_find_in(s->dir, &found), 0);
	assert_int_equal(found.n, 0);
	assert_int_equal(access(a.sun_path, F_OK), -1);
	sw_daemons_free(&found);
}

static bool parse(const char *text, struct sw_found_daemon *d, char *room)
{
	*d = (struct sw_found_daemon){0};
	return sw_daemons_parse(strcpy(room, text), d);
}

static void parse__what_is_no_daemon(void **state)
{
	static const char *const texts[] = {"", "\n", "x\n", "sumwire\n",
		"sumwire 1\n", "sumwire x 1.0\n", "sumwire 1 1.0", "rx 1\n"};
	struct sw_found_daemon d;
	char room[256];

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_false(parse(texts[i], &d, room));
}

static void parse__another_version(void **state)
{
	struct sw_found_daemon d;
	char room[256];

	assert_true(parse("sumwire 7 2.0\nnew thing\nname a\njob agent\n"
			  "job agent running 1 1 1 1 0 5 0 x\ncut",
		&d, room));
	assert_int_equal(d.format, 7);
	assert_string_equal(d.name, "a");
	assert_int_equal(d.n_jobs, 1);
	assert_null(d.role);
}

static void parse__odd_characters_and_numbers(void **state)
{
	struct sw_found_daemon d;
	char room[256];

	assert_true(parse("sumwire 1 1.0\nname a\x1b[2Jb\xff\n"
			  "job server running -1 1 1 1 0 5 0 x\n"
			  "job server running 4294967296 1 1 1 0 5 0 x\n"
			  "missing nobody\n",
		&d, room));
	assert_string_equal(d.name, "a?[2Jb?");
	assert_int_equal(d.n_jobs, 0);
}

/* A line with too few or too many fields is dropped; other lines still
 * count. */
static void parse__paths_ports_and_cores(void **state)
{
	struct sw_found_daemon d;
	const struct sw_daemon_job *job = d.jobs;
	char room[1024];

	assert_true(parse("sumwire 1 1.0\n"
			  "port 3 1500 lan 0\nport 3 lan\nport 1 1\n"
			  "core 9 10\ncore 9\n"
			  "path 1 2 3 4 5 6 7 8 9 10\n"
			  "job server running 2 2 2 2 0 5 9 x\n"
			  "path 1 2 3 4 5 6 7 8 9 10\n"
			  "payload 1408 8192\npayload 1\n"
			  "process 77 3\nprocess x 3\nprocess 4294967296 1\n"
			  "member here 1 0 a\n"
			  "path 11 12 13 14 15 16 17 18 19 20\n"
			  "path 1 2 3 4 5 6 7 8 9\n"
			  "moved 21 22 23 24 25 26\nmoved 1 2 3 4 5\n"
			  "sums 31 32\nsums 1\n"
			  "group 1 2 3 4 g h\ngroup 1 2 3 4\n",
		&d, room));
	assert_int_equal(d.n_ports, 1);
	assert_int_equal(d.ports[0].n_ups, 3);
	assert_int_equal(d.ports[0].ago_ms, 1500);
	assert_string_equal(d.ports[0].label, "lan 0");
	assert_int_equal(d.n_cores, 1);
	assert_int_equal(d.cores[0].waited_ns, 9);
	assert_int_equal(d.cores[0].period_ns, 10);
	assert_int_equal(job->payload, 1408);
	assert_int_equal(job->most_payload, 8192);
	assert_int_equal(job->n_processes, 1);
	assert_int_equal(job->processes[0].pid, 77);
	assert_int_equal(job->processes[0].local, 3);
	assert_int_equal(job->members[0].path.srtt_ns, 11);
	assert_int_equal(job->members[0].path.payload, 18);
	assert_int_equal(job->members[0].path.missed_part, 20);
	assert_int_equal(job->members[0].path.push_bytes, 21);
	assert_int_equal(job->members[0].path.result_bytes, 22);
	assert_int_equal(job->members[0].path.grant_ns, 23);
	assert_int_equal(job->members[0].path.window_ns, 24);
	assert_int_equal(job->members[0].path.flight_ns, 25);
	assert_int_equal(job->members[0].path.marked_part, 26);
	assert_int_equal(job->open_slots, 31);
	assert_int_equal(job->done_chunks, 32);
	assert_int_equal(job->n_groups, 1);
	assert_int_equal(job->groups[0].n_done, 2);
	assert_int_equal(job->groups[0].ns, 4);
	assert_string_equal(job->groups[0].name, "g h");
}

/* An agent's sessions also have paths. A line that lacks a number is
 * ignored. */
static void parse__sessions_of_an_agent(void **state)
{
	struct sw_found_daemon d;
	const struct sw_daemon_session *s = d.sessions;
	char room[1024];

	assert_true(parse("sumwire 1 1.0\n"
			  "job agent running 1 1 1 2 0 5 9 x\n"
			  "path 1 2 3 4 5 6 7 8 9 10\n"
			  "session open 0 sum1.0\n"
			  "path 11 12 13 14 15 16 17 18 19 20\n"
			  "moved 21 22 23 24 25 26\nlosses 31 32\nlosses 1\n"
			  "session closed 1 sum1.1\npath 1 2 3\n"
			  "session open x sum2\nsession open 2\n",
		&d, room));
	assert_int_equal(d.n_sessions, 2);
	assert_true(s[0].is_open);
	assert_string_equal(s[0].server, "sum1.0");
	assert_int_equal(s[0].path.srtt_ns, 11);
	assert_int_equal(s[0].path.push_bytes, 21);
	assert_int_equal(s[0].path.marked_part, 26);
	assert_int_equal(s[0].path.queued, 31);
	assert_int_equal(s[0].path.timeouts, 32);
	assert_false(s[1].is_open);
	assert_int_equal(s[1].lane, 1);
	assert_int_equal(s[1].path.srtt_ns, 0);
}

/* A line about a member or a wait belongs to the member or wait above it. If
 * there is none, the line is ignored. */
static void parse__who_is_late(void **state)
{
	struct sw_found_daemon d;
	const struct sw_daemon_job *job = d.jobs;
	char room[512];

	assert_true(parse("sumwire 1 1.0\n"
			  "job server running 2 2 2 2 0 5 9 x\n"
			  "last 9 9\nstill 9 9 nothing\n"
			  "member here 1 0 a\n"
			  "member here 1 1 b\nlast 20 3000\nlast x 1\n"
			  "late 1 2 3\n" /* too few numbers */
			  "wait stream 3 2 g\nstill 1500 7 all_reduce\n"
			  "for ranks 4-7 of 8\n"
			  "wait tensor 4 1 w\nstill 1 -1 push_pull\n",
		&d, room));
	assert_int_equal(job->n_members, 2);
	assert_int_equal(job->members[0].n_last, 0);
	assert_int_equal(job->members[1].n_last, 20);
	assert_int_equal(job->members[1].late_ns, 3000);
	assert_int_equal(job->members[1].late[1], 0);
	assert_int_equal(job->n_waits, 2);
	assert_int_equal(job->waits[0].still_ms, 1500);
	assert_int_equal(job->waits[0].number, 7);
	assert_string_equal(job->waits[0].kind, "all_reduce");
	assert_string_equal(job->waits[0].who, "ranks 4-7 of 8");
	assert_null(job->waits[1].kind);
	assert_null(job->waits[1].who);
}

static void match__name_then_pid_then_job(void **state)
{
	struct sw_found_daemon all[] = {
		{.pid = 7, .name = "a"},
		{.pid = 8, .name = "7", .n_jobs = 1, .jobs = {{.name = "j"}}},
		{.pid = 9, .name = "b", .n_jobs = 1, .jobs = {{.name = "j"}}},
		{.pid = 10},
	};
	const struct sw_found_daemons found = {.n = 4, .all = all};
	uint32_t at;

	assert_int_equal(sw_daemons_match(&found, "b", &at), 1);
	assert_int_equal(at, 2);
	assert_int_equal(sw_daemons_match(&found, "7", &at), 1);
	assert_int_equal(at, 1);
	assert_int_equal(sw_daemons_match(&found, "10", &at), 1);
	assert_int_equal(at, 3);
	assert_int_equal(sw_daemons_match(&found, "j", &at), 2);
	assert_int_equal(at, 1);
	assert_int_equal(sw_daemons_match(&found, "", &at), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			find__a_daemon_and_its_jobs, setup, teardown),
		cmocka_unit_test_setup_teardown(
			find__two_hundred_readers_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(
			find__silent_daemons, setup, teardown),
		cmocka_unit_test_setup_teardown(
			poll__a_reader_that_stops, setup, teardown),
		cmocka_unit_test_setup_teardown(
			find__collects_sockets_of_the_dead, setup, teardown),
		cmocka_unit_test(parse__what_is_no_daemon),
		cmocka_unit_test(parse__another_version),
		cmocka_unit_test(parse__odd_characters_and_numbers),
		cmocka_unit_test(parse__sessions_of_an_agent),
		cmocka_unit_test(parse__who_is_late),
		cmocka_unit_test(parse__paths_ports_and_cores),
		cmocka_unit_test(match__name_then_pid_then_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
