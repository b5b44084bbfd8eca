/* unit_suspects.c - the lines of sumwire status that name a cause.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/cli/suspects.h"
#include "engine/base/params.h"

enum { MEMBERS = 4 };

static struct sw_daemon_job *new_job(void)
{
	static const char *const nodes[MEMBERS] = {"g0", "g1", "g2", "g3"};
	struct sw_daemon_job *job = calloc(1, sizeof(*job));

	job->n_members = MEMBERS;
	for (uint32_t m = 0; m < MEMBERS; m++)
		job->members[m] = (struct sw_daemon_member){.state = "here",
			.n_ranks = m == 3 ? 4 : 1,
			.first = m,
			.node = nodes[m],
			.path = {.srtt_ns = SW_MS, .least_ns = SW_MS / 2}};
	return job;
}

static char *said(const struct sw_daemon_job *job)
{
	char *text;
	size_t n;
	FILE *to = open_memstream(&text, &n);

	sw_suspects_print(job, to);
	fclose(to);
	return text;
}

static void expect(const struct sw_daemon_job *job, const char *text)
{
	char *all = said(job);

	assert_string_equal(all, text);
	free(all);
}

static void print__nothing_of_equal_paths(void **state)
{
	struct sw_daemon_job *job = new_job();

	expect(job, "");
	for (uint32_t m = 0; m < MEMBERS; m++)
		job->members[m].path.srtt_ns = 100 * SW_MS;
	expect(job, "");
	free(job);
}

static void print__a_slow_path(void **state)
{
	struct sw_daemon_job *job = new_job();

	job->members[3].path.srtt_ns = 40 * SW_MS;
	expect(job, "  slow     ranks 3-6 (node g3): round trips of 40 ms, "
		    "others 1 ms, at best 0.5 ms: a slow or full link, or a "
		    "busy machine\n");
	job->n_members = 1; /* alone it is compared only with its own past */
	expect(job, "");
	job->members[0].path.srtt_ns = 26 * SW_MS;
	expect(job, "  slow     rank 0 (node g0): round trips of 26 ms, at "
		    "best 0.5 ms: a slow or full link, or a busy machine\n");
	job->members[0].path.srtt_ns = 2500 * SW_MS;
	expect(job, "  slow     rank 0 (node g0): round trips of 2.5 s, at "
		    "best 0.5 ms: a slow or full link, or a busy machine\n");
	free(job);
}

static void print__losses(void **state)
{
	struct sw_daemon_job *job = new_job();

	job->members[1].path.lost_part = 99;
	expect(job, "");
	job->members[1].path.missed_part = 250;
	expect(job, "  loses    rank 1 (node g1): 0.99 % of the frames to it, "
		    "and 2.5 % from it, were lost within 10 s\n");
	free(job);
}

static void print__a_small_payload(void **state)
{
	struct sw_daemon_job *job = new_job();

	job->payload = job->most_payload = 8192;
	expect(job, "");
	job->payload = 1408;
	job->members[0].path.payload = job->members[2].path.payload = 1408;
	job->members[1].path.payload = 8192;
	expect(job, "  payload  1408 B, though our ports carry 8192 B: no "
		    "larger frame "
		    "reaches rank 0 (node g0), rank 2 (node g2)\n");
	free(job);
}

static void print__a_stopped_process(void **state)
{
	struct sw_daemon_job *job = new_job();
	pid_t pid = fork();
	char text[128];
	int status;

	if (!pid)
		for (;;)
			pause();
	job->n_processes = 2;
	job->processes[0] = (struct sw_daemon_process){getpid(), 0};
	job->processes[1] = (struct sw_daemon_process){pid, 1};
	expect(job, "");
	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	snprintf(text, sizeof(text),
		"  process  %ld (local rank 1) is stopped: kill -CONT %ld lets "
		"it continue\n",
		(long)pid, (long)pid);
	expect(job, text);
	kill(pid, SIGKILL);
	waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT);
	snprintf(text, sizeof(text), "  process  %ld (local rank 1) is dead\n",
		(long)pid);
	expect(job, text);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	expect(job, ""); /* the agent reports this itself */
	free(job);
}

static void print__ports_and_cores(void **state)
{
	struct sw_found_daemon *d = calloc(1, sizeof(*d));
	char *text;
	size_t n;
	FILE *to = open_memstream(&text, &n);

	d->name = "s";
	d->n_ports = 2;
	d->ports[0] = (struct sw_daemon_port){3, 1500, "lan"};
	d->ports[1] = (struct sw_daemon_port){3, 601000, "old"};
	d->n_cores = 3;
	d->cores[0] = (struct sw_daemon_core){SW_S / 2, 2 * SW_S};
	d->cores[1] = (struct sw_daemon_core){SW_S, 2 * SW_S};
	sw_suspects_print_daemon(d, to);
	fclose(to);
	assert_string_equal(text,
		"  link     port lan of s came up again 3 times, the last time "
		"1.5 s ago\n"
		"  cpu      polling core 1 of s had no CPU for 50 % of 2.0 s: "
		"other threads run there, or a CPU quota limits it\n");
	free(text);
	free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(print__nothing_of_equal_paths),
		cmocka_unit_test(print__a_slow_path),
		cmocka_unit_test(print__losses),
		cmocka_unit_test(print__a_small_payload),
		cmocka_unit_test(print__a_stopped_process),
		cmocka_unit_test(print__ports_and_cores),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
