/* unit_confine.c - a confined process works, and other system calls fail.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/unit.h"

#include <errno.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pmd/host/confine.h"

enum { NO_FILTER = 77 };

static void *add_one(void *arg)
{
	(*(int *)arg)++;
	return NULL;
}

static bool is_refused(long result)
{
	return result == -1 && errno == EPERM;
}

/* Check that a confined process works; return the number of the first failed
 * expectation, or 0. */
static int works(void)
{
	struct passwd pw, *found;
	char text[4096];
	pthread_t thread;
	int n = 0;
	FILE *f;
	void *p;

	if (pthread_create(&thread, NULL, add_one, &n) ||
		pthread_join(thread, NULL) || n != 1)
		return 1;
	p = malloc(1 << 22);
	if (!p)
		return 2;
	free(p);
	f = fopen("/proc/self/statm", "r");
	if (!f || fclose(f))
		return 3;
	if (getpwuid_r(0, &pw, text, sizeof(text), &found) || !found)
		return 4;
	n = socket(AF_INET, SOCK_DGRAM, 0);
	if (n < 0 || close(n))
		return 5;
	if (kill(getppid(), 0) || raise(SIGWINCH))
		return 6;
	return 0;
}

static int refuses(bool has_nics)
{
	char *const args[] = {"true", NULL};
	const int rwx = PROT_READ | PROT_WRITE | PROT_EXEC;

	if (!is_refused(execv("/bin/true", args)))
		return 11;
	if (!is_refused(fork()))
		return 12;
	if (!is_refused((long)mmap(
		    NULL, 4096, rwx, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)))
		return 13;
	if (!is_refused(ptrace(PTRACE_TRACEME, 0, NULL, NULL)))
		return 14;
	if (!is_refused(ioctl(0, TIOCSTI, "x")))
		return 15;
	if (!has_nics && !is_refused(socket(AF_PACKET, SOCK_RAW, 0)))
		return 16;
	if (!is_refused(kill(getppid(), SIGWINCH)))
		return 17;
	if (!is_refused(setresuid(0, 0, 0)))
		return 18;
	return 0;
}

/* Run in a child, because a filter cannot be removed. */
static int confined(bool has_nics)
{
	int status, code;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		if (!sw_confine_calls(has_nics))
			_exit(NO_FILTER);
		code = works();
		_exit(code ? code : refuses(has_nics));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	/* Builds with sanitizers and some kernels have no filter. */
	return WEXITSTATUS(status) == NO_FILTER ? 0 : WEXITSTATUS(status);
}

static void calls__others_are_refused(void **state)
{
	assert_int_equal(confined(false), 0);
	assert_int_equal(confined(true), 0);
}

/* --- capabilities and user, in a process with a second thread --- */

static void *sleep_on(void *arg)
{
	for (;;)
		pause();
	return NULL;
}

/* Return the number of threads that have @line in their status. */
static int threads_with(const char *line)
{
	char command[160];
	FILE *p;
	int n = -1;

	snprintf(command, sizeof(command),
		"cat /proc/%ld/task/*/status | grep -c '%s'", (long)getpid(),
		line);
	p = popen(command, "r");
	if (!p || fscanf(p, "%d", &n) != 1)
		return -1;
	pclose(p);
	return n;
}

static int drops(const struct sw_confine *c)
{
	struct sw_log log = {.level = SW_LOG_ERROR};
	pthread_t thread;

	if (pthread_create(&thread, NULL, sleep_on, NULL))
		return 1;
	if (sw_confine_threads(c, &log))
		return 2;
	if (threads_with(c->kept ? "CapPrm:.*00002000$"
				 : "CapPrm:.*0000000000000000$") != 2)
		return 3;
	if (threads_with("NoNewPrivs:.*1$") != 2)
		return 4;
	if (c->has_user && threads_with("Uid:.*65534.*65534.*65534") != 2)
		return 5;
	return 0;
}

static void drop_in_child(const struct sw_confine *c)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(drops(c));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void threads__all_give_up_capabilities(void **state)
{
	if (geteuid()) /* only root has privileges to drop */
		return;
	drop_in_child(&(struct sw_confine){.kept = 0});
	/* keep CAP_NET_RAW */
	drop_in_child(&(struct sw_confine){.kept = 1 << 13});
}

static void threads__all_become_the_user(void **state)
{
	struct sw_confine c = {.has_user = true, .uid = 65534, .gid = 65534};

	if (geteuid()) /* only root has privileges to drop */
		return;
	drop_in_child(&c);
	c.kept = 1 << 13;
	drop_in_child(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls__others_are_refused),
		cmocka_unit_test(threads__all_give_up_capabilities),
		cmocka_unit_test(threads__all_become_the_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
