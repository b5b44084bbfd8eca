/* edge.c - messages between a training process and its agent.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/client/edge.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, LINE = 64, MAX_FDS = 2 };

/* Return the six bits of @rank in reverse order: 0, 32, 16, 48, 8, … */
static uint32_t far_apart(uint32_t rank)
{
	uint32_t out = 0;

	for (uint32_t bit = 1; bit < SW_EDGE_RUNS; bit <<= 1, rank >>= 1)
		out = out << 1 | (rank & 1);
	return out;
}

uint64_t sw_edge_place(uint32_t local_rank, uint64_t bytes, uint64_t *end)
{
	uint64_t residue = far_apart(local_rank) * LINE, start = residue;

	if (*end > residue)
		start += (*end - residue + PAGE - 1) / PAGE * PAGE;
	*end = start + (bytes + LINE - 1) / LINE * LINE;
	return start;
}

int sw_edge_send(
	int sock, const void *msg, size_t bytes, const int *fds, uint32_t n_fds)
{
	union {
		char bytes[CMSG_SPACE(MAX_FDS * sizeof(int))];
		struct cmsghdr align;
	} room = {0};
	struct iovec iov = {(void *)msg, bytes};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	if (n_fds) {
		m.msg_control = room.bytes;
		m.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		room.align = (struct cmsghdr){
			.cmsg_len = CMSG_LEN(n_fds * sizeof(int)),
			.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(&room.align), fds, n_fds * sizeof(int));
	}
	while (sendmsg(sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		if (errno == EINTR)
			continue;
		return errno == EAGAIN || errno == ENOBUFS ? SW_EAGAIN
							   : SW_ECLOSED;
	}
	return 0;
}

/* Move the descriptors of a received message to @fds. */
static void collect_fds(struct msghdr *m, int *fds, uint32_t max_fds)
{
	uint32_t n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		size_t n_here = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n_here; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (n < max_fds)
				fds[n++] = fd;
			else
				close(fd);
		}
	}
}

/* If there is no room for received descriptors, the kernel closes them and sets
 * MSG_CTRUNC, so a client cannot fill this process's table of descriptors. */
int sw_edge_recv(int sock, void *msg, size_t bytes, int *fds, uint32_t max_fds)
{
	union {
		char bytes[CMSG_SPACE(MAX_FDS * sizeof(int))];
		struct cmsghdr align;
	} room = {0};
	struct iovec iov = {msg, bytes};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;
	bool is_reset = false;

	for (uint32_t i = 0; i < max_fds; i++)
		fds[i] = -1;
	if (max_fds) {
		m.msg_control = room.bytes;
		m.msg_controllen = CMSG_SPACE(max_fds * sizeof(int));
	}
	/* If a peer hangs up before it has read everything, recvmsg returns one
	 * ECONNRESET before the peer's last messages, which carry the reason.
	 */
	while ((n = recvmsg(sock, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC)) < 0) {
		if (errno != EINTR && (errno != ECONNRESET || is_reset))
			break;
		is_reset |= errno == ECONNRESET;
	}
	if (n < 0)
		return errno == EAGAIN ? SW_EAGAIN : SW_ECLOSED;
	collect_fds(&m, fds, max_fds);
	if (!(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return n ? (int)n : SW_ECLOSED;
	for (uint32_t i = 0; i < max_fds; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
	return SW_EPROTO;
}

void sw_edge_text(struct sw_edge_text *m, enum sw_edge_kind kind, int err,
	uint32_t batch, const char *text)
{
	*m = (struct sw_edge_text){.kind = kind, .err = err, .batch = batch};
	snprintf(m->text, sizeof(m->text), "%s", text);
}

void sw_edge_bell_write(int bell)
{
	while (send(bell, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
		errno == EINTR)
		;
}

bool sw_edge_bell_drain(int bell)
{
	char bytes[256];
	ssize_t n = recv(bell, bytes, sizeof(bytes), MSG_DONTWAIT);

	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

void sw_edge_word_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void sw_edge_word_wait(
	_Atomic uint32_t *word, uint32_t value, uint64_t until_ns)
{
	uint64_t now = sw_edge_now_ns();
	uint64_t left = until_ns > now ? until_ns - now : 0;
	struct timespec limit = {.tv_sec = (time_t)(left / 1000000000),
		.tv_nsec = (long)(left % 1000000000)};

	syscall(SYS_futex, word, FUTEX_WAIT, value, &limit, NULL, 0);
}

uint64_t sw_edge_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}
