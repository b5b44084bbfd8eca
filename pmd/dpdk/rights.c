/* rights.c - find out why the kernel refuses sockets to this process.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/dpdk/rights.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HOW " (others: AmbientCapabilities= of systemd, setcap)"

static bool has_capability(uint32_t bit)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}};

	return !syscall(SYS_capget, &head, data) &&
	       data[bit / 32].effective & 1u << bit % 32;
}

/* Return 0 if this process can open a raw socket of @family, otherwise the
 * errno. */
static int socket_errno(int family)
{
	int fd = socket(family, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

/* Return 0 if this process can load the smallest XDP program (return XDP_PASS),
 * otherwise the errno. In a user namespace a process may have the capability
 * but not the right. */
static int program_errno(void)
{
	static const struct bpf_insn code[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = XDP_PASS},
		{.code = BPF_JMP | BPF_EXIT},
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_XDP,
		.insn_cnt = sizeof(code) / sizeof(code[0]),
		.insns = (uintptr_t)code,
		.license = (uintptr_t) "BSD",
	};
	int fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static void add(char *out, size_t size, const char *what)
{
	size_t at = strlen(out);

	snprintf(out + at, size - at, "%s%s", at ? ", " : "it needs ", what);
}

static void add_memory(uint64_t bytes, char *out, size_t size)
{
	struct rlimit most = {0};
	char text[128];

	if (getrlimit(RLIMIT_MEMLOCK, &most) || most.rlim_cur >= bytes)
		return;
	snprintf(text, sizeof(text),
		"%llu KiB of locked memory (ulimit -l says %llu) or "
		"CAP_IPC_LOCK",
		(unsigned long long)bytes >> 10,
		(unsigned long long)most.rlim_cur >> 10);
	add(out, size, text);
}

void sw_rights_packet(uint64_t bytes, char *out, size_t size)
{
	out[0] = '\0';
	if (socket_errno(AF_PACKET) == EPERM)
		add(out, size, "CAP_NET_RAW" HOW);
	else
		add_memory(bytes, out, size);
}

void sw_rights_xdp(uint64_t bytes, char *out, size_t size)
{
	int err = socket_errno(AF_XDP);

	out[0] = '\0';
	if (err == EAFNOSUPPORT)
		add(out, size, "a kernel with CONFIG_XDP_SOCKETS");
	if (err == EPERM)
		add(out, size, "CAP_NET_RAW");
	if (!has_capability(CAP_NET_ADMIN))
		add(out, size, "CAP_NET_ADMIN");
	if (program_errno() == EPERM)
		add(out, size,
			"CAP_BPF (that of a user namespace does not count)");
	if (*out && err != EAFNOSUPPORT)
		add(out, size, "all of which root has" HOW);
	if (!has_capability(CAP_IPC_LOCK))
		add_memory(bytes, out, size);
	if (!*out)
		add(out, size,
			"an interface whose driver takes XDP and that has no "
			"XDP program yet (ip link shows it)");
}
