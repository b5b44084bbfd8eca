/* listen.c - the answering end of a path.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/doctor/listen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "apps/cli/clock.h"
#include "apps/cli/signals.h"
#include "apps/doctor/echo.h"

enum { TURN_MS = 1000, BURST = 64 };

/* Answer the received datagrams, at most a burst. */
static void answer(int fd, struct sw_echo_limits *limits, uint64_t *n_answers)
{
	uint8_t datagram[SW_ECHO_MOST + 1];

	for (uint32_t i = 0; i < BURST; i++) {
		union sw_echo_address from;
		socklen_t size = sizeof(from);
		ssize_t n;
		uint32_t back;

		memset(&from, 0, sizeof(from));
		n = recvfrom(
			fd, datagram, sizeof(datagram), 0, &from.any, &size);
		if (n < 0)
			return;
		back = sw_echo_judge(
			limits, &from, sw_now_ns(), datagram, (uint32_t)n);
		if (back && sendto(fd, datagram, back, 0, &from.any, size) > 0)
			++*n_answers;
	}
}

static void serve(int fd, int ends, uint64_t end_ns)
{
	struct sw_echo_limits *limits = calloc(1, sizeof(*limits));
	struct pollfd fds[2] = {
		{.fd = fd, .events = POLLIN}, {.fd = ends, .events = POLLIN}};
	uint64_t n_answers = 0;

	while (limits && sw_now_ns() < end_ns) {
		if (poll(fds, 2, TURN_MS) < 0 && errno != EINTR)
			break;
		if (fds[1].revents)
			break;
		if (fds[0].revents)
			answer(fd, limits, &n_answers);
	}
	free(limits);
	fprintf(stderr, "sumwire doctor: %llu answers\n",
		(unsigned long long)n_answers);
}

int sw_doctor_listen(const char *address, uint64_t limit_ns)
{
	union sw_echo_address at;
	char why[400];
	socklen_t n = sw_echo_address(address, 0, &at, why, sizeof(why));
	sigset_t set;
	int fd, ends;

	if (!n) {
		fprintf(stderr, "sumwire doctor: --listen %s\n", why);
		return 2;
	}
	fd = sw_echo_socket(at.any.sa_family);
	if (fd < 0 && !strchr(address, ':')) { /* the kernel has no IPv6 */
		at.v4 = (struct sockaddr_in){
			.sin_family = AF_INET, .sin_port = at.v6.sin6_port};
		n = sizeof(at.v4);
		fd = sw_echo_socket(AF_INET);
	}
	if (fd < 0 || bind(fd, &at.any, n)) {
		fprintf(stderr, "sumwire doctor: --listen %s: %s%s\n", address,
			strerror(errno),
			errno == EADDRINUSE
				? "; if a daemon has it, ask that one"
				: "");
		if (fd >= 0)
			close(fd);
		return 1;
	}
	sw_signals_take_ends(&set);
	ends = signalfd(-1, &set, SFD_CLOEXEC);
	fprintf(stderr,
		"sumwire doctor: answering at %s for %.0f s; on the other "
		"machine: sumwire doctor PEER[:PORT]\n",
		address, (double)limit_ns / 1e9);
	serve(fd, ends, sw_now_ns() + limit_ns);
	close(ends);
	close(fd);
	return 0;
}
