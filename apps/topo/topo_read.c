/* topo_read.c - read a machine in a separate process.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * hwloc (2.9) trusts an XML file: a missing attribute ends its process.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/topo/topo.h"
#include "engine/base/error.h"

/* The child's answer, sent as bytes through a pipe. */
struct answer {
	int err;
	char why[256];
	struct sw_machine machine;
};

static void answer(const char *xml, int fd)
{
	struct answer a = {.err = 0};
	const char *at = (const char *)&a;
	size_t left = sizeof(a);

	setenv("HWLOC_HIDE_ERRORS", "2", 0); /* our messages are enough */
	a.err = sw_machine_read(&a.machine, xml, a.why, sizeof(a.why));
	while (left) {
		ssize_t n = write(fd, at, left);

		if (n < 0)
			_exit(1);
		at += n;
		left -= (size_t)n;
	}
	_exit(0);
}

/* Read until the answer is complete or the pipe ends.  Returns the bytes. */
static size_t listen_to(int fd, struct answer *a)
{
	size_t n = 0;
	ssize_t more;

	while (n < sizeof(*a) &&
		(more = read(fd, (char *)a + n, sizeof(*a) - n)) != 0) {
		if (more < 0 && errno != EINTR)
			break;
		n += more > 0 ? (size_t)more : 0;
	}
	return n;
}

int sw_topo_read(struct sw_machine *m, const char *xml, char *why, size_t size)
{
	struct answer a = {.err = 0};
	int ends[2] = {-1, -1}, status = 0;
	bool is_whole = false;
	pid_t pid = pipe(ends) ? -1 : fork();

	if (pid < 0) {
		snprintf(why, size, "no process to read it: %s",
			strerror(errno));
		return SW_EIO;
	}
	if (!pid) {
		close(ends[0]);
		answer(xml, ends[1]);
	}
	close(ends[1]);
	is_whole = listen_to(ends[0], &a) == sizeof(a);
	close(ends[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!is_whole) {
		snprintf(why, size,
			"hwloc cannot read the file (%s): its XML is damaged",
			WIFSIGNALED(status) ? strsignal(WTERMSIG(status))
					    : "without a signal");
		return SW_ECONF;
	}
	*m = a.machine;
	snprintf(why, size, "%s", a.why);
	return a.err;
}
