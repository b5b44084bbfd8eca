/* unit_host_fault.c - let each system call fail in turn.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/host/host_raw.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Replacements for the C library's functions. While armed, call number n_left
 * fails. The state is global because these calls have no room for a handle. */
static atomic_int n_left;
static atomic_int n_failed;

static bool must_fail(int err)
{
	if (atomic_load(&n_left) <= 0 || atomic_fetch_sub(&n_left, 1) != 1)
		return false;
	atomic_fetch_add(&n_failed, 1);
	errno = err;
	return true;
}

int memfd_create(const char *name, unsigned flags)
{
	return must_fail(EMFILE) ? -1
				 : (int)syscall(SYS_memfd_create, name, flags);
}

int ftruncate(int fd, off_t bytes)
{
	return must_fail(ENOMEM) ? -1 : (int)syscall(SYS_ftruncate, fd, bytes);
}

int fallocate(int fd, int mode, off_t at, off_t bytes)
{
	return must_fail(ENOSPC)
		       ? -1
		       : (int)syscall(SYS_fallocate, fd, mode, at, bytes);
}

int socket(int domain, int type, int protocol)
{
	return must_fail(EMFILE)
		       ? -1
		       : (int)syscall(SYS_socket, domain, type, protocol);
}

int socketpair(int domain, int type, int protocol, int fds[2])
{
	return must_fail(EMFILE) ? -1
				 : (int)syscall(SYS_socketpair, domain, type,
					   protocol, fds);
}

int eventfd(unsigned count, int flags)
{
	return must_fail(EMFILE) ? -1
				 : (int)syscall(SYS_eventfd2, count, flags);
}

int listen(int fd, int backlog)
{
	return must_fail(EADDRINUSE) ? -1
				     : (int)syscall(SYS_listen, fd, backlog);
}

/* The host calls pidfd_open by syscall. */
long syscall(long number, ...)
{
	long (*real)(long, ...) = dlsym(RTLD_NEXT, "syscall");
	long a[6];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_pidfd_open && must_fail(EMFILE))
		return -1;
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int fstat(int fd, struct stat *st)
{
	return must_fail(EIO) ? -1 : (int)syscall(SYS_fstat, fd, st);
}

/* While set, accept4 fails. */
static atomic_bool is_out;
static atomic_int n_refused;

int accept4(int fd, struct sockaddr *a, socklen_t *len, int flags)
{
	if (!atomic_load(&is_out))
		return (int)syscall(SYS_accept4, fd, a, len, flags);
	atomic_fetch_add(&n_refused, 1);
	errno = EMFILE;
	return -1;
}

static void push_once(struct sw_client *c, struct sw_tensor *t)
{
	uint64_t h;

	*(float *)sw_tensor_data(t) = 3;
	assert_int_equal(sw_push_pull(c, t, 0, &h), 0);
	assert_int_equal(sw_wait(c, h), 0);
	assert_true(*(float *)sw_tensor_data(t) == 6);
}

/* Run a whole life with call @n failing: each step works, or returns an error
 * with a message. A push that was possible works. */
static void live(int n)
{
	struct rig *r = rig_new(NULL);
	struct sw_settings s = rig_settings(r);
	struct sw_tensor_desc d = RIG_DESC("w", 5000, SW_F32, 0);
	struct sw_client *c = NULL;
	struct sw_tensor *t = NULL;
	int err;

	s.open_timeout_s = 2;
	atomic_store(&n_left, n);
	err = rig_try_start(r);
	assert_true(err == 0 || r->lines[0]);
	if (!err) {
		err = sw_open(&s, &c);
		assert_true(err == 0 || sw_last_error(NULL)[0]);
	}
	if (!err) {
		err = sw_declare(c, &d, 1, &t);
		assert_true(err == 0 || sw_last_error(c)[0]);
	}
	if (!err)
		push_once(c, t);
	atomic_store(&n_left, 0);
	sw_close(&c);
	rig_close(r);
}

static void every_call__may_fail(void **state)
{
	uint32_t n_fds = n_open_fds();
	int n_runs = 0;

	do {
		atomic_store(&n_failed, 0);
		live(++n_runs);
		assert_int_equal(n_open_fds(), n_fds);
	} while (atomic_load(&n_failed));
	assert_in_range(n_runs, 12, 100);
}

static uint32_t n_said(const struct rig *r)
{
	uint32_t n = 0;

	for (const char *at = r->lines; (at = strstr(at, "LimitNOFILE=")); at++)
		n++;
	return n;
}

/* Wait until accept4 has failed a few times for a waiting client. */
static void await_refusals(void)
{
	atomic_store(&n_refused, 0);
	for (int i = 0; i < RIG_WAIT_MS && atomic_load(&n_refused) < 5; i++)
		usleep(1000);
	assert_true(atomic_load(&n_refused) >= 5);
}

/* The agent logs the lack of descriptors once per episode, and recovers by
 * itself. */
static void accept__no_descriptor_left(void **state)
{
	struct rig *r = rig_open(NULL);

	for (uint32_t i = 1; i <= 2; i++) {
		struct raw w, other;

		atomic_store(&is_out, true);
		raw_connect(&w, r);
		await_refusals();
		assert_int_equal(n_said(r), i);
		assert_non_null(strstr(r->lines, r->path));
		atomic_store(&is_out, false);
		raw_open(&other, r); /* behind the first client */
		raw_close(&w);
		raw_close(&other);
	}
	rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accept__no_descriptor_left),
		cmocka_unit_test(every_call__may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
