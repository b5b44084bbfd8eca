/* telemetry.c - serve this daemon's counters to dpdk-telemetry.py.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A DPDK thread answers.  It reads the stats socket as every other reader does,
 * so only the control thread owns the counters.
 */
#include "apps/node/telemetry.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/cli/counters.h"
#include "apps/node/daemon.h"
#include "engine/base/error.h"
#include "pmd/dpdk/telemetry.h"
#include "pmd/host/stats_read.h"

enum command { COUNTERS, PORTS, QUEUES, LCORES, TIMES, COMMANDS };

static const struct sw_dpdk_command commands[COMMANDS] = {
	[COUNTERS] = {"/sumwire/counters",
		"Counters of the engine and the daemon. Parameter: a prefix "
		"of their names"},
	[PORTS] = {"/sumwire/ports",
		"Counters of the ports. Parameter: the name of a [port]"},
	[QUEUES] = {"/sumwire/queues",
		"Counters of the ports' queues, 256 at most. Parameter: a "
		"prefix of their names, such as lan.queue1"},
	[LCORES] = {"/sumwire/lcores", "Turns of the polling cores"},
	[TIMES] = {"/sumwire/times",
		"Histograms of times. Parameter: a prefix of their names"},
};

struct answer {
	enum command command;
	const char *params;
	sw_dpdk_put_fn put;
	void *out;
};

static enum command command_of(const char *name)
{
	static const char queue[] = "port.P.queueN.";
	struct sw_counter c;
	bool is_known = sw_counter_find(name, &c);

	if (is_known && !strncmp(c.name, queue, sizeof(queue) - 1))
		return QUEUES;
	if (!strncmp(name, "port.", 5))
		return PORTS;
	if (!strncmp(name, "lcore", 5) && strchr(name, '.'))
		return LCORES;
	return is_known && c.kind == SW_COUNTER_TIMES ? TIMES : COUNTERS;
}

static void each(void *ctx, const char *name, uint64_t value)
{
	const struct answer *a = ctx;
	const char *from = strncmp(name, "port.", 5) ? name : name + 5;

	if (command_of(name) == a->command &&
		!strncmp(from, a->params, strlen(a->params)))
		a->put(a->out, name, value);
}

static int answer(void *ctx, uint32_t i, const char *params, sw_dpdk_put_fn put,
	void *out)
{
	const struct sw_daemon *d = ctx;
	struct answer a = {(enum command)i, params, put, out};

	return sw_stats_read(sw_stats_serve_path(d->stats), each, &a);
}

/* Link the folder at RUNTIME_DIR/dpdk/NAME, where dpdk-telemetry.py looks for
 * it.  Replaces a link that a killed daemon left. */
static int link_make(struct sw_daemon *d)
{
	struct sw_telemetry *t = &d->telemetry;
	char to[SW_CONF_PATH_BYTES], folder[SW_CONF_PATH_BYTES];

	if (snprintf(to, sizeof(to), "%s/dpdk/%s", t->scratch.path,
		    d->conf.node.name) >= (int)sizeof(to) ||
		snprintf(folder, sizeof(folder), "%s/dpdk", d->runtime_dir) >=
			(int)sizeof(folder) ||
		snprintf(t->link, sizeof(t->link), "%s/%s", folder,
			d->conf.node.name) >= (int)sizeof(t->link)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (mkdir(folder, 0755) && errno != EEXIST)
		return -1;
	if (access(t->link, F_OK) && errno == ENOENT)
		unlink(t->link);
	return symlink(to, t->link);
}

void sw_telemetry_open(struct sw_daemon *d)
{
	struct sw_telemetry *t = &d->telemetry;
	int err;

	if (!d->conf.node.telemetry)
		return;
	err = sw_dpdk_telemetry_open(
		commands, COMMANDS, answer, d, &t->commands);
	if (err || link_make(d)) {
		sw_log(&d->log, SW_LOG_WARN, "telemetry: %s",
			err ? sw_error_text(err) : strerror(errno));
		t->link[0] = '\0';
		return;
	}
	sw_log(&d->log, SW_LOG_INFO,
		"telemetry: RUNTIME_DIRECTORY=%s dpdk-telemetry.py -f %s",
		d->runtime_dir, d->conf.node.name);
}

void sw_telemetry_give(const struct sw_daemon *d)
{
	const struct sw_telemetry *t = &d->telemetry;
	const char *const below[][3] = {{"", "", ""}, {"/dpdk", "", ""},
		{"/dpdk/", d->conf.node.name, ""},
		{"/dpdk/", d->conf.node.name, "/dpdk_telemetry.v2"}};
	char path[SW_CONF_PATH_BYTES + 64];

	if (!t->link[0])
		return;
	for (size_t i = 0; i < SW_ARRAY_SIZE(below); i++) {
		snprintf(path, sizeof(path), "%s%s%s%s", t->scratch.path,
			below[i][0], below[i][1], below[i][2]);
		(void)!lchown(path, d->confine.uid, d->confine.gid);
	}
	snprintf(path, sizeof(path), "%s/dpdk", d->runtime_dir);
	(void)!lchown(path, d->confine.uid, d->confine.gid);
}

void sw_telemetry_close(struct sw_daemon *d)
{
	struct sw_telemetry *t = &d->telemetry;

	sw_dpdk_telemetry_close(&t->commands);
	if (t->link[0]) {
		unlink(t->link);
		*strrchr(t->link, '/') = '\0';
		rmdir(t->link); /* fails if other daemons have links there */
	}
	sw_scratch_close(&t->scratch);
}
