/* confine.c - give up rights that a daemon no longer needs.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/host/confine.h"

#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/error.h"

enum {
	ANSWER_MS = 2000, /* limit for all threads to handle the signal */
	LOOK_MS = 1,
};

/* An order to all threads. Capabilities belong to a thread, so each thread
 * obeys the order in its own signal handler. */
struct order {
	bool is_first; /* keep permitted capabilities when the user changes */
	uint64_t kept;
	sem_t done; /* counts threads that have obeyed */
	int err;
};

/* Drop all capabilities of this thread except @kept. Returns 0 or errno. */
static int caps_keep(uint64_t kept)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[2];

	if (syscall(SYS_capget, &head, sets))
		return errno;
	for (uint32_t i = 0; i < 2; i++) {
		sets[i].permitted &= (uint32_t)(kept >> (32 * i));
		sets[i].effective = sets[i].permitted;
		sets[i].inheritable = 0;
	}
	(void)!prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capset, &head, sets))
		return errno;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? errno : 0;
}

static int obey(const struct order *o)
{
	if (o->is_first)
		return prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) ? errno : 0;
	return caps_keep(o->kept);
}

static void on_order(int number, siginfo_t *info, void *context)
{
	struct order *o = info->si_value.sival_ptr;
	int own = errno, err;

	(void)number;
	(void)context;
	if (info->si_code != SI_QUEUE || info->si_pid != getpid())
		return;
	err = obey(o);
	if (err)
		__atomic_store_n(&o->err, err, __ATOMIC_RELAXED);
	sem_post(&o->done);
	errno = own;
}

/* Send the order to thread @tid; return whether the thread exists. */
static bool order_send(struct order *o, pid_t tid)
{
	siginfo_t info = {.si_signo = SIGRTMAX, .si_code = SI_QUEUE};

	info.si_pid = getpid();
	info.si_uid = getuid();
	info.si_value.sival_ptr = o;
	return !syscall(SYS_rt_tgsigqueueinfo, getpid(), tid, SIGRTMAX, &info);
}

/* Send the order to all other threads and await each; returns 0 or errno. */
static int order_others(struct order *o)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *e;
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000};
	uint32_t n = 0;

	if (!tasks)
		return errno;
	while ((e = readdir(tasks))) {
		pid_t tid = atoi(e->d_name);

		if (tid && tid != (pid_t)syscall(SYS_gettid))
			n += order_send(o, tid);
	}
	closedir(tasks);
	/* Poll, because a timed wait of glibc 2.28 uses the wall clock. */
	for (int ms = 0; n && ms < ANSWER_MS; ms += LOOK_MS) {
		while (n && !sem_trywait(&o->done))
			n--;
		if (n)
			nanosleep(&pause, NULL);
	}
	if (n)
		return ETIMEDOUT;
	return __atomic_load_n(&o->err, __ATOMIC_RELAXED);
}

/* Make all threads obey the order. After an error, a late thread may still read
 * @o, so the caller must not free it. */
static int order_all(struct order *o)
{
	struct sigaction old, act = {.sa_sigaction = on_order,
				      .sa_flags = SA_SIGINFO | SA_RESTART};
	int err;

	sigaction(SIGRTMAX, &act, &old);
	err = order_others(o);
	if (err)
		return err;
	sigaction(SIGRTMAX, &old, NULL);
	return obey(o);
}

/* Become the user of @c; glibc changes all threads. Without PR_SET_DUMPABLE,
 * /proc/self would belong to root. */
static int user_become(const struct sw_confine *c)
{
	if (setgroups(0, NULL) || setresgid(c->gid, c->gid, c->gid) ||
		setresuid(c->uid, c->uid, c->uid) ||
		prctl(PR_SET_DUMPABLE, 1, 0, 0, 0))
		return errno;
	return 0;
}

int sw_confine_threads(const struct sw_confine *c, const struct sw_log *log)
{
	struct order *o = calloc(2, sizeof(*o));
	bool has_user = c->has_user && !geteuid();
	int err;

	if (!o)
		return SW_ENOMEM;
	o[0].is_first = true;
	o[1].kept = c->kept;
	sem_init(&o[0].done, 0, 0);
	sem_init(&o[1].done, 0, 0);
	err = has_user ? order_all(&o[0]) : 0;
	if (!err && has_user)
		err = user_become(c);
	if (!err)
		err = order_all(&o[1]);
	if (!err) {
		free(o);
		return 0;
	}
	if (has_user)
		sw_log(log, SW_LOG_ERROR,
			"cannot give up rights and become [node] user: %s",
			strerror(err));
	else
		sw_log(log, SW_LOG_WARN,
			"not all threads could give up capabilities: %s",
			strerror(err));
	return SW_EPERM;
}
