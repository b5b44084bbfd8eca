/* patience.c - run checks with a time limit, in case the kernel blocks.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A thread that waits for a kernel lock, such as rtnl's, takes no signal and
 * obeys no timeout.  So a child process runs the checks, and writes into a
 * shared report.  At the limit this process abandons the child.
 */
#include "apps/doctor/patience.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/error.h"

struct shared {
	struct sw_doctor_report report;
	uint32_t at; /* the running check */
};

struct child {
	pid_t pid;
	int done; /* a byte for each finished check, then end of file */
};

static void run_from(const struct sw_doctor_check *rows,
	const struct sw_eyes *e, struct shared *s, int done)
{
	for (; rows[s->at].name; s->at++) {
		rows[s->at].run(e, rows[s->at].name, &s->report);
		(void)!write(done, "", 1);
	}
	_exit(0);
}

static int child_begin(struct child *c, const struct sw_doctor_check *rows,
	const struct sw_eyes *e, struct shared *s)
{
	int ends[2];

	if (pipe(ends))
		return SW_EIO;
	c->pid = fork();
	if (c->pid == 0)
		run_from(rows, e, s, ends[1]);
	close(ends[1]);
	c->done = ends[0];
	return c->pid < 0 ? SW_EIO : 0;
}

/* Wait for the child.  Returns false if a check exceeds the limit. */
static bool child_await(const struct child *c, uint32_t limit_ms)
{
	struct pollfd f = {.fd = c->done, .events = POLLIN};
	char byte;

	for (;;) {
		if (poll(&f, 1, (int)limit_ms) <= 0)
			return false;
		if (read(c->done, &byte, 1) <= 0)
			return true;
	}
}

static void say_late(struct shared *s, const char *check, pid_t pid,
	const struct sw_eyes *e, uint32_t limit_ms)
{
	char path[64], at[64] = "";

	snprintf(path, sizeof(path), "/proc/%ld/wchan", (long)pid);
	if (*e->root || !sw_eyes_read(e, path, at, sizeof(at)) ||
		!strcmp(at, "0"))
		strcpy(at, "its network configuration");
	sw_doctor_wrong(&s->report, check,
		"the ports of a daemon may wait as long when they open",
		"wait for programs that make or remove interfaces or "
		"namespaces: ps -eo stat,wchan:24,args | grep rtnl",
		"the kernel has not answered for %g s (%s)",
		(double)limit_ms / 1000, at);
}

static int run_shared(const struct sw_doctor_check *rows,
	const struct sw_eyes *e, struct shared *s, uint32_t limit_ms)
{
	while (rows[s->at].name) {
		struct child c;
		bool is_late;

		if (child_begin(&c, rows, e, s))
			return SW_EIO;
		is_late = !child_await(&c, limit_ms);
		close(c.done);
		if (is_late) {
			say_late(s, rows[s->at].name, c.pid, e, limit_ms);
			kill(c.pid, SIGKILL);
		} else if (rows[s->at].name) {
			sw_doctor_wrong(&s->report, rows[s->at].name,
				"not known", "report this as a bug",
				"the check has failed");
		}
		waitpid(c.pid, NULL, is_late ? WNOHANG : 0);
		s->at += rows[s->at].name != NULL;
	}
	return 0;
}

int sw_doctor_run(const struct sw_doctor_check *rows, const struct sw_eyes *e,
	struct sw_doctor_report *r, uint32_t limit_ms)
{
	struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int err;

	if (s == MAP_FAILED)
		return SW_ENOMEM;
	s->report = *r;
	err = run_shared(rows, e, s, limit_ms);
	*r = s->report;
	munmap(s, sizeof(*s));
	return err;
}
