/* daemon_system.c - what a daemon has of its system: signals, folder, users.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "apps/cli/clock.h"
#include "apps/cli/signals.h"
#include "apps/node/daemon.h"
#include "engine/base/error.h"
#include "pmd/client/folder.h"
#include "pmd/client/user.h"
#include "pmd/host/notify.h"

enum {
	DESCRIPTORS = 65536, /* more than any daemon opens */
	/* Larger blocks get a mapping of their own, which is zero.  Without a
	 * fixed value glibc raises this threshold, and an lcore that opens a
	 * job then has to zero its tables. */
	MAPPED_BYTES = 128 << 10,
};

/* Set the signals that end a daemon in order.  SIGHUP does so unless a service
 * manager has started it: then it means to reload. */
static void ends_list(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGQUIT);
	sw_hangup_add(set);
}

void sw_daemon_block_signals(void)
{
	sigset_t set;

	ends_list(&set);
	sw_signals_ignored(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGXFSZ, SIG_IGN); /* a log file at its limit ends nobody */
}

/* The number of a signal that ends a daemon, 0 if none comes within @ms. */
static int take_signal(uint32_t ms)
{
	struct timespec t = {
		.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
	sigset_t set;
	int number;

	ends_list(&set);
	number = sigtimedwait(&set, NULL, &t);
	return number > 0 ? number : 0;
}

static void begin_drain(struct sw_daemon *d, int number)
{
	uint64_t drain_ns = number == SIGQUIT ? 0 : d->conf.node.drain_ns;
	bool is_first = !d->drained_ns;

	if (is_first || number == SIGQUIT)
		d->drained_ns = sw_now_ns() + drain_ns;
	if (is_first && drain_ns)
		sw_log(&d->log, SW_LOG_INFO,
			"signal %d (%s): draining attached processes and open "
			"jobs (up to %.0f s)",
			number, strsignal(number), (double)drain_ns / 1e9);
	if (is_first && drain_ns)
		sw_notify("STATUS=draining attached processes and open jobs");
}

void sw_daemon_is_ready(struct sw_daemon *d)
{
	d->watchdog_ns = sw_notify_watchdog_ns() / 2;
	sw_notify("READY=1\nSTATUS=serving");
}

void sw_daemon_is_alive(struct sw_daemon *d)
{
	uint64_t now_ns;

	if (!d->watchdog_ns)
		return;
	now_ns = sw_now_ns();
	if (now_ns < d->alive_at_ns)
		return;
	d->alive_at_ns = now_ns + d->watchdog_ns;
	sw_notify("WATCHDOG=1");
}

void sw_daemon_is_ending(struct sw_daemon *d)
{
	d->watchdog_ns = 0;
	sw_notify("STOPPING=1\nSTATUS=draining open requests");
}

void sw_daemon_await_signal(struct sw_daemon *d, uint32_t ms)
{
	int number = take_signal(ms);

	if (number == SIGHUP && d->has_reload)
		sw_daemon_reload(d);
	else if (number)
		begin_drain(d, number);
}

bool sw_daemon_must_end(const struct sw_daemon *d, bool is_idle)
{
	return d->drained_ns && (is_idle || sw_now_ns() >= d->drained_ns);
}

void sw_daemon_write_lines(const struct sw_daemon *d)
{
	for (uint32_t i = 0; i < d->n_lcores; i++)
		sw_lines_write(d->lines[i]);
}

bool sw_daemon_hurried(const struct sw_daemon *d, uint32_t ms)
{
	int number;

	sw_daemon_write_lines(d);
	number = take_signal(ms);
	if (!number || (number == SIGHUP && d->has_reload))
		return false;
	sw_log(&d->log, SW_LOG_WARN, "stopping at once: a second signal came");
	return true;
}

/* The one of the file, else the one that a service manager made for us
 * (systemd.exec, RuntimeDirectory=), else the user's own, which stays. */
static int make_runtime_dir(struct sw_daemon *d)
{
	const char *env = getenv("RUNTIME_DIRECTORY");
	const char *dir = d->conf.node.runtime_dir;
	char why[SW_FOLDER_WHY_BYTES];
	int err;

	if (!dir[0] && env && env[0] == '/' &&
		strlen(env) < sizeof(d->runtime_dir))
		dir = env;
	if (!dir[0]) {
		err = sw_folder_make(d->runtime_dir, why);
		if (err)
			sw_log(&d->log, SW_LOG_ERROR, "runtime folder: %s",
				why);
		return err;
	}
	snprintf(d->runtime_dir, sizeof(d->runtime_dir), "%s", dir);
	d->owns_runtime_dir = !mkdir(d->runtime_dir, 0700);
	if (d->owns_runtime_dir || errno == EEXIST)
		return 0;
	sw_log(&d->log, SW_LOG_ERROR, "runtime folder %s: %s", d->runtime_dir,
		strerror(errno));
	return SW_EIO;
}

/* A name alone becomes a path. */
static int place_socket(
	const struct sw_daemon *d, char path[SW_CONF_PATH_BYTES])
{
	char name[SW_CONF_PATH_BYTES];

	if (!path[0] || path[0] == '/')
		return 0;
	strcpy(name, path);
	if (snprintf(path, SW_CONF_PATH_BYTES, "%s/%s", d->runtime_dir, name) <
		SW_CONF_PATH_BYTES)
		return 0;
	sw_log(&d->log, SW_LOG_ERROR,
		"socket %s: its path in %s would have more than %d bytes: give "
		"a shorter one",
		name, d->runtime_dir, SW_CONF_PATH_BYTES - 1);
	return SW_ECONF;
}

static int place_sockets(struct sw_daemon *d)
{
	int err = 0;

	if (d->conf.node.role != SW_ROLE_SERVER) /* which has none */
		err = place_socket(d, d->conf.agent.socket);
	if (!err)
		err = place_socket(d, d->conf.stats.socket);
	for (uint32_t i = 0; i < d->conf.n_ports && !err; i++)
		err = place_socket(d, d->conf.ports[i].socket_path);
	return err;
}

static int find_trusted(struct sw_daemon *d)
{
	const char *name = d->conf.node.trust;

	d->trusted_uid = UINT32_MAX;
	if (!name[0] || sw_user_find(name, &d->trusted_uid))
		return 0;
	sw_log(&d->log, SW_LOG_ERROR, "[node] trust: unknown user \"%s\"",
		name);
	return SW_ECONF;
}

/* Return the number of descriptors that the daemon always needs: for DPDK, the
 * pipes of its lcores, rings and sockets of ports, and the attached processes
 * of all local ranks. */
static uint64_t descriptors_least(const struct sw_daemon *d)
{
	const struct sw_conf *c = &d->conf;
	uint64_t n = 24 + 4 * d->n_lcores;

	for (uint32_t i = 0; i < c->n_ports; i++)
		n += 4 + 2 * (c->ports[i].type == SW_PORT_MEMIF
					     ? c->ports[i].n_link_queues
					     : d->n_lcores);
	return c->node.role == SW_ROLE_SERVER ? n
					      : n + 6 * c->agent.local_ranks;
}

/* DPDK ends the process where it has none left. */
static int raise_descriptors(const struct sw_daemon *d)
{
	uint64_t least = descriptors_least(d), most;
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r))
		return 0;
	most = r.rlim_max < DESCRIPTORS ? r.rlim_max : DESCRIPTORS;
	if (r.rlim_cur < most) {
		r.rlim_cur = most;
		(void)!setrlimit(RLIMIT_NOFILE, &r);
	}
	if (r.rlim_max >= least)
		return 0;
	sw_log(&d->log, SW_LOG_ERROR,
		"%llu open files are allowed, and this configuration needs at "
		"least %llu: raise the limit (ulimit -n, LimitNOFILE= of a "
		"unit)",
		(unsigned long long)r.rlim_max, (unsigned long long)least);
	return SW_ECONF;
}

int sw_daemon_open_system(struct sw_daemon *d)
{
	int err = raise_descriptors(d);

	mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES);
	if (!err)
		err = find_trusted(d);
	if (!err)
		err = make_runtime_dir(d);
	return err ? err : place_sockets(d);
}
