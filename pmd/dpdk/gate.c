/* gate.c - system calls of DPDK's drivers, made safe; a build option (gate).
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Each function names the bug that it works around and how to reproduce it in a
 * build with -Dgate=disabled. meson.build lists the affected versions. */
#include "pmd/dpdk/gate.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <rte_interrupts.h>

struct sw_gate sw_gates[RTE_MAX_LCORE];

void sw_gate_drain(void)
{
	/* An lcore that enters from here on sees the caller's earlier writes
	 * (link down). */
	atomic_thread_fence(memory_order_seq_cst);
	for (uint32_t i = 0; i < RTE_MAX_LCORE; i++)
		while (atomic_load_explicit(
			&sw_gates[i].is_inside, memory_order_acquire))
			sched_yield();
}

/* memif (memif_disconnect, memif_free_regions) unmaps rings that an lcore is
 * using. To reproduce: test/proc/proc_port_kill 100; a survivor dies by SIGSEGV
 * (2 of 58 kills). Every library of the process, including the driver, finds
 * this munmap before libc's. */
__attribute__((visibility("default"))) int munmap(void *at, size_t bytes)
{
	sw_gate_drain();
	return (int)syscall(SYS_munmap, at, bytes);
}

/* If a peer dies before memif has greeted it (memif_listener_handler), the
 * driver closes the socket but leaves it among the sockets that DPDK polls, and
 * DPDK then ends the process. To reproduce: run proc_death repeatedly; when an
 * agent is killed while it connects, the server ends (23 of 142).
 * Report the greeting as sent: the driver then reads the end of the connection
 * and handles it. Only the driver sends messages on the interrupt thread. */
__attribute__((visibility("default"))) ssize_t sendmsg(
	int fd, const struct msghdr *m, int flags)
{
	ssize_t n = syscall(SYS_sendmsg, fd, m, flags | MSG_NOSIGNAL);

	if (n >= 0 || (errno != EPIPE && errno != ECONNRESET) ||
		!rte_thread_is_intr())
		return n;
	n = 0;
	for (size_t i = 0; i < m->msg_iovlen; i++)
		n += (ssize_t)m->msg_iov[i].iov_len;
	return n;
}

/* The af_packet driver (eth_af_packet_tx) waits here without limit while its
 * ring is full, but an lcore must never wait inside a driver (rule I8). To
 * reproduce: strace -f -e trace=poll on an agent that fills the ring faster
 * than its NIC sends. veth returns frames at once and does not show the bug. */
__attribute__((visibility("default"))) int poll(
	struct pollfd *fds, nfds_t n, int ms)
{
	struct timespec t = {
		.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
	const struct sw_gate *g = &sw_gates[rte_lcore_id() % RTE_MAX_LCORE];
	bool is_lcore = rte_lcore_id() < RTE_MAX_LCORE;

	if (is_lcore &&
		atomic_load_explicit(&g->is_inside, memory_order_relaxed))
		t = (struct timespec){0};
	else if (ms < 0)
		return (int)syscall(SYS_ppoll, fds, n, NULL, NULL, 0);
	return (int)syscall(SYS_ppoll, fds, n, &t, NULL, 0);
}

/* The af_packet driver (rte_pmd_init_internals) joins its sockets to a fan-out
 * group, although one queue needs no group and our filters divide frames among
 * several. It derives the group's number from process and interface, so two
 * processes may get the same number, and the kernel refuses the second if their
 * interfaces differ (EINVAL). To reproduce: proc_lan; agents of one machine
 * fail with EPERM as if they lacked a right. */
__attribute__((visibility("default"))) int setsockopt(
	int fd, int level, int name, const void *value, socklen_t n)
{
	if (level == SOL_PACKET && name == PACKET_FANOUT)
		return 0;
	return (int)syscall(SYS_setsockopt, fd, level, name, value, n);
}

static bool listens_at(int fd, const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNSPEC};
	int is_listener = 0;
	socklen_t len = sizeof(is_listener);

	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listener, &len) ||
		!is_listener)
		return false;
	len = sizeof(a);
	return !getsockname(fd, (struct sockaddr *)&a, &len) &&
	       a.sun_family == AF_UNIX &&
	       len > offsetof(struct sockaddr_un, sun_path) &&
	       !strncmp(a.sun_path, path, sizeof(a.sun_path));
}

/* When the last device of a listener is removed, memif
 * (memif_socket_remove_device) frees the listener but neither closes its socket
 * nor removes it from the sockets that DPDK polls. If a peer dials then, DPDK
 * keeps calling a handler in freed memory. To reproduce: stop a server while
 * agents dial; it hangs (once in a full run of the tests under load). */
void sw_gate_silence(const char *path)
{
	int silent = eventfd(0, EFD_CLOEXEC);
	DIR *fds = access(path, F_OK) ? opendir("/proc/self/fd") : NULL;
	const struct dirent *e;

	while (fds && silent >= 0 && (e = readdir(fds)))
		if (listens_at(atoi(e->d_name), path))
			dup3(silent, atoi(e->d_name), O_CLOEXEC);
	if (fds)
		closedir(fds);
	if (silent >= 0)
		close(silent);
}
