/* daemon_system.c - a daemon's signals, runtime folder, users and limits.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <linux/capability.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "apps/cli/clock.h"
#include "apps/cli/signals.h"
#include "apps/node/daemon.h"
#include "engine/base/error.h"
#include "pmd/client/folder.h"
#include "pmd/client/user.h"
#include "pmd/host/notify.h"

#define ROOTS_DIR "/run/sumwire"

enum {
	DESCRIPTORS = 65536, /* more than any daemon opens */
	/* Map larger blocks separately: they are zero.  Without a fixed value
	 * glibc raises the threshold, and an lcore that opens a job would have
	 * to zero its tables. */
	MAPPED_BYTES = 128 << 10,
	/* Bits of coredump_filter: private memory, file headers, huge pages.
	 */
	UNSHARED = 1 << 0 | 1 << 2 | 1 << 4 | 1 << 5 | 1 << 7,
};

/* Set @set to the signals that end a daemon in order.  It includes SIGHUP,
 * which reloads instead if a service manager has started the daemon. */
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
	/* a log file at its size limit must not end the daemon */
	signal(SIGXFSZ, SIG_IGN);
}

/* Return the number of a signal that ends or reloads a daemon; 0: none arrived
 * within @ms. */
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
	sw_log(&d->log, SW_LOG_WARN,
		"received a second signal, stopping at once");
	return true;
}

/* Give the folder to [node] user if root has just made it.  An older folder
 * must belong to that user, who removes the sockets at the end. */
static int give_runtime_dir(struct sw_daemon *d)
{
	const struct sw_confine *c = &d->confine;
	struct stat st;

	if (!c->has_user)
		return 0;
	if (d->owns_runtime_dir && chown(d->runtime_dir, c->uid, c->gid))
		goto fail;
	if (stat(d->runtime_dir, &st))
		goto fail;
	if (st.st_uid == c->uid)
		return 0;
	sw_log(&d->log, SW_LOG_ERROR,
		"runtime folder %s belongs to user %u: [node] user could not "
		"remove its sockets there; change its owner, or set [node] "
		"runtime_dir",
		d->runtime_dir, st.st_uid);
	return SW_ECONF;
fail:
	sw_log(&d->log, SW_LOG_ERROR, "runtime folder %s: %s", d->runtime_dir,
		strerror(errno));
	return SW_EIO;
}

/* Make root's default folder for good: it outlives the daemon. */
static void give_default_dir(const struct sw_daemon *d)
{
	const struct sw_confine *c = &d->confine;

	if (c->has_user && !mkdir(ROOTS_DIR, 0755))
		(void)!chown(ROOTS_DIR, c->uid, c->gid);
}

/* Choose the folder of the file, else the one that a service manager made
 * (systemd.exec, RuntimeDirectory=), else the user's own folder, which
 * stays. */
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
		give_default_dir(d);
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

/* Turn a bare name into a path in the runtime folder. */
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

	/* a server has no such socket */
	if (d->conf.node.role != SW_ROLE_SERVER)
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

/* Look up [node] user.  Only root's daemons can become another user. */
static int find_user(struct sw_daemon *d)
{
	struct sw_confine *c = &d->confine;
	const char *name = d->conf.node.user;

	if (!name[0])
		return 0;
	if (!sw_user_find(name, &c->uid)) {
		sw_log(&d->log, SW_LOG_ERROR,
			"[node] user: unknown user \"%s\"", name);
		return SW_ECONF;
	}
	if (geteuid() && geteuid() != c->uid) {
		sw_log(&d->log, SW_LOG_ERROR,
			"[node] user: only root's daemons can become \"%s\", "
			"and user %u has started this one",
			name, geteuid());
		return SW_ECONF;
	}
	c->gid = sw_user_group(c->uid);
	c->has_user = !geteuid() && c->uid;
	if (c->has_user && d->trusted_uid == UINT32_MAX)
		d->trusted_uid = c->uid; /* for the user's other daemons */
	return 0;
}

/* Return the smallest number of descriptors that the daemon needs: for DPDK,
 * pipes of lcores, rings and sockets of ports, and attached processes of all
 * local ranks. */
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

/* Raise the limit of descriptors: DPDK ends the process when it has none
 * left. */
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

/* Exclude shared memory from core dumps (core(5)): it holds tensors and frames,
 * even where a driver maps it.  Best effort. */
static void shrink_dumps(void)
{
	FILE *f = fopen("/proc/self/coredump_filter", "r+");
	unsigned int kinds;

	if (!f)
		return;
	if (fscanf(f, "%x", &kinds) == 1) {
		rewind(f);
		fprintf(f, "0x%x\n", kinds & UNSHARED);
	}
	fclose(f);
}

int sw_daemon_open_system(struct sw_daemon *d)
{
	int err = raise_descriptors(d);

	shrink_dumps();
	mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES);
	if (!err)
		err = find_trusted(d);
	if (!err)
		err = find_user(d);
	if (!err)
		err = make_runtime_dir(d);
	if (!err)
		err = give_runtime_dir(d);
	return err ? err : place_sockets(d);
}

/* Return the capabilities that ports need to close, and to reopen when their
 * interface comes back.  In some containers, loading the program of an AF_XDP
 * port takes CAP_SYS_ADMIN. */
static uint64_t caps_of_ports(const struct sw_conf *c)
{
	const uint64_t nic = 1ull << CAP_NET_RAW | 1ull << CAP_NET_ADMIN |
			     1ull << CAP_BPF | 1ull << CAP_IPC_LOCK |
			     1ull << CAP_SYS_RAWIO;
	uint64_t kept = 0;

	for (uint32_t i = 0; i < c->n_ports; i++) {
		enum sw_conf_port_type type = c->ports[i].type;

		if (type != SW_PORT_UDP && type != SW_PORT_MEMIF)
			kept |= nic;
		if (type == SW_PORT_AF_XDP)
			kept |= 1ull << CAP_SYS_ADMIN;
	}
	return kept;
}

/* Give a socket that root has opened to [node] user. */
static int give_path(const struct sw_daemon *d, const char *path)
{
	if (!lchown(path, d->confine.uid, d->confine.gid))
		return 0;
	sw_log(&d->log, SW_LOG_ERROR, "socket %s: %s", path, strerror(errno));
	return SW_EIO;
}

/* Give the sockets to [node] user, also those of memif ports: its other daemons
 * connect to them. */
static int give_sockets(const struct sw_daemon *d)
{
	int err = give_path(d, sw_stats_serve_path(d->stats));

	for (uint32_t i = 0; i < d->conf.n_ports && !err; i++) {
		const struct sw_conf_port *p = &d->conf.ports[i];

		if (p->type == SW_PORT_MEMIF && p->side == SW_SIDE_LISTEN)
			err = give_path(d, p->socket_path);
	}
	if (!err && *sw_tell_path(&d->about.tell))
		err = give_path(d, sw_tell_path(&d->about.tell));
	if (!err && *sw_feed_path(&d->trace.feed))
		err = give_path(d, sw_feed_path(&d->trace.feed));
	sw_telemetry_give(d);
	return err;
}

int sw_daemon_confine(struct sw_daemon *d)
{
	struct sw_confine *c = &d->confine;
	char who[SW_USER_BYTES];
	int err = 0;
	bool has_filter = false;

	c->kept = d->conf.node.confine ? caps_of_ports(&d->conf) : UINT64_MAX;
	if (c->has_user)
		err = give_sockets(d);
	if (!err && (c->has_user || d->conf.node.confine))
		err = sw_confine_threads(c, &d->log);
	/* confinement by default: run without it */
	if (err == SW_EPERM && !c->has_user) {
		c->kept = UINT64_MAX;
		err = 0;
	}
	if (!err && d->conf.node.confine)
		has_filter = sw_confine_calls(caps_of_ports(&d->conf) != 0);
	if (!err)
		sw_log(&d->log, SW_LOG_INFO,
			"user %s, %s capabilities, system calls %sfiltered",
			sw_user_text(geteuid(), who),
			c->kept == UINT64_MAX ? "all"
			: c->kept             ? "only the ports'"
					      : "no",
			has_filter ? "" : "not ");
	return err;
}
