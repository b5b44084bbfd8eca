/* confine_calls.c - the system calls that a daemon may make after its start.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A seccomp filter allows these calls and refuses all others with EPERM. An
 * allowed call still needs its usual rights.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pmd/host/confine.h"

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_ARCH AUDIT_ARCH_AARCH64
#endif

/* Sanitizers start processes, to find leaks and to resolve symbols, so they run
 * without the filter. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#undef OWN_ARCH
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#undef OWN_ARCH
#endif
#endif

#ifdef OWN_ARCH

/* Allowed calls, a row each. Calls of the packet path come first. */
static const uint16_t calls[] = {
#define CALL(name) SYS_##name,
#include "pmd/host/confine_calls.def"
#undef CALL
};

enum {
	N_CALLS = sizeof(calls) / sizeof(calls[0]),
	N_RULES = 64, /* room for the rest of the filter */
};

struct filter {
	struct sock_filter ops[2 * N_CALLS + N_RULES];
	uint16_t n;
};

static void op(
	struct filter *f, uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
	f->ops[f->n++] = (struct sock_filter){code, yes, no, k};
}

static void answer(struct filter *f, uint32_t k)
{
	op(f, BPF_RET | BPF_K, k, 0, 0);
}

/* Load the low half of argument @i, from 0; both architectures are
 * little-endian. */
static void load_arg(struct filter *f, uint32_t i)
{
	op(f, BPF_LD | BPF_W | BPF_ABS,
		(uint32_t)offsetof(struct seccomp_data, args) + 8 * i, 0, 0);
}

/* Answer @k to the loaded call if it is @call. */
static void if_call(struct filter *f, uint32_t call, uint32_t k)
{
	op(f, BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1);
	answer(f, k);
}

/* Allow @call if its argument @i has all bits of @mask (@is_set) or lacks at
 * least one (not @is_set); otherwise refuse it. */
static void if_bits(
	struct filter *f, uint32_t call, uint32_t i, uint32_t mask, bool is_set)
{
	op(f, BPF_JMP | BPF_JEQ | BPF_K, call, 0, 5);
	load_arg(f, i);
	op(f, BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
	op(f, BPF_JMP | BPF_JEQ | BPF_K, mask, is_set ? 0 : 1, is_set ? 1 : 0);
	answer(f, SECCOMP_RET_ALLOW);
	answer(f, SECCOMP_RET_ERRNO | EPERM);
}

/* Refuse @call if its argument @i equals @value (@is_equal) or differs from it
 * (not @is_equal); otherwise continue. */
static void refuse_value(struct filter *f, uint32_t call, uint32_t i,
	uint32_t value, bool is_equal)
{
	op(f, BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4);
	load_arg(f, i);
	op(f, BPF_JMP | BPF_JEQ | BPF_K, value, is_equal ? 0 : 1,
		is_equal ? 1 : 0);
	answer(f, SECCOMP_RET_ERRNO | EPERM);
	op(f, BPF_LD | BPF_W | BPF_ABS,
		(uint32_t)offsetof(struct seccomp_data, nr), 0, 0);
}

static void filter_write(struct filter *f, bool has_nics)
{
	op(f, BPF_LD | BPF_W | BPF_ABS,
		(uint32_t)offsetof(struct seccomp_data, arch), 0, 0);
	op(f, BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCH, 1, 0);
	answer(f, SECCOMP_RET_ERRNO | ENOSYS);
	op(f, BPF_LD | BPF_W | BPF_ABS,
		(uint32_t)offsetof(struct seccomp_data, nr), 0, 0);
	for (uint32_t i = 0; i < N_CALLS; i++)
		if_call(f, calls[i], SECCOMP_RET_ALLOW);
	if (has_nics)
		if_call(f, SYS_bpf, SECCOMP_RET_ALLOW);
	/* ENOSYS makes glibc fall back to clone, whose flags the filter
	 * sees. */
	if_call(f, SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
	if_bits(f, SYS_clone, 0, CLONE_THREAD, true);
	/* Memory that was writable must never become executable. */
	if_bits(f, SYS_mmap, 2, PROT_WRITE | PROT_EXEC, false);
	if_bits(f, SYS_mprotect, 2, PROT_EXEC, false);
	/* kill may only probe whether a process exists (signal 0); tgkill may
	 * only signal our own threads. */
	refuse_value(f, SYS_kill, 1, 0, false);
	if_call(f, SYS_kill, SECCOMP_RET_ALLOW);
	refuse_value(f, SYS_tgkill, 0, (uint32_t)getpid(), false);
	if_call(f, SYS_tgkill, SECCOMP_RET_ALLOW);
	/* TIOCSTI would type commands into a terminal. */
	refuse_value(f, SYS_ioctl, 1, TIOCSTI, true);
	if_call(f, SYS_ioctl, SECCOMP_RET_ALLOW);
	if (!has_nics)
		refuse_value(f, SYS_socket, 0, AF_PACKET, true);
	if_call(f, SYS_socket, SECCOMP_RET_ALLOW);
	answer(f, SECCOMP_RET_ERRNO | EPERM);
}

bool sw_confine_calls(bool has_nics)
{
	struct filter f = {.n = 0};
	struct sock_fprog prog = {.filter = f.ops};

	filter_write(&f, has_nics);
	prog.len = f.n;
	/* Without CAP_SYS_ADMIN, a filter requires PR_SET_NO_NEW_PRIVS. */
	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		       SECCOMP_FILTER_FLAG_TSYNC, &prog);
}

#else

bool sw_confine_calls(bool has_nics)
{
	(void)has_nics;
	return false;
}

#endif
