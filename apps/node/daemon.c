/* daemon.c - code that server and agent share: configuration, start, end.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/node/daemon.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/cli/args.h"
#include "apps/cli/params.h"
#include "apps/cli/scratch.h"
#include "conf/options.h"
#include "engine/base/error.h"
#include "pmd/host/notify.h"
#include "pmd/host/stale.h"
#include "sum/sum.h"

enum {
	WRONG_CONFIGURATION = 78, /* EX_CONFIG of sysexits.h */
	/* after this the log names what the start waits for */
	SLOW_START_MS = 10000,
};

static uint64_t env_random(void *ctx)
{
	uint64_t v = 0;

	(void)ctx;
	/* Never fails for 8 bytes once the kernel's pool is ready. */
	while (getentropy(&v, sizeof(v)) && errno == EINTR)
		;
	return v;
}

/* Choose the vector kernels of @level.  If the CPU lacks it, fail: never
 * replace a requested level silently. */
static int choose_kernels(struct sw_daemon *d, const char *level)
{
	static const char *const names[] = {[SW_LEVEL_AUTO] = "auto",
		[SW_LEVEL_SCALAR] = "scalar",
		[SW_LEVEL_AVX2] = "avx2",
		[SW_LEVEL_AVX512] = "avx512"};
	const struct sw_sum *sum;
	char text[64] = "auto";
	bool runs;

	if (!level)
		level = names[d->conf.sum.level];
	d->env.sum = sw_sum_find(level);
	if (d->env.sum) {
		sw_log(&d->log, SW_LOG_INFO, "summation kernels: %s",
			d->env.sum->name);
		return 0;
	}
	for (uint32_t i = 0; (sum = sw_sum_row(i, &runs)); i++)
		if (runs)
			snprintf(text + strlen(text),
				sizeof(text) - strlen(text), ", %s", sum->name);
	sw_log(&d->log, SW_LOG_ERROR,
		"summation kernels: level \"%s\" is not available; this CPU "
		"runs %s",
		level, text);
	return SW_ECONF;
}

static void fill_params(struct sw_daemon *d)
{
	const struct sw_conf *c = &d->conf;

	sw_params_of_conf(&d->params, &c->job, &c->agent, &c->node);
	if (c->node.role == SW_ROLE_BOTH) /* a server's engine and a worker's */
		d->params.queue_bytes /= 2;
	d->env =
		(struct sw_env){.log = &d->log, .ctx = d, .random = env_random};
}

/* Name a node without a configured name after its machine. */
static void name_node(struct sw_daemon *d)
{
	char host[SW_CONF_NAME_BYTES] = "", *name = d->conf.node.name;

	if (*name)
		return;
	(void)!gethostname(host, sizeof(host) - 1); /* may truncate */
	strcpy(name, sw_label_is_good(host) ? host : "node");
}

/* Start DPDK in a scratch folder: if DPDK is killed at its start, it leaves
 * files behind. */
static int open_dpdk(struct sw_daemon *d)
{
	struct sw_dpdk_params p;
	struct sw_scratch *scratch = &d->telemetry.scratch;
	int err;

	sw_dpdk_params_init(&p);
	p.name = d->conf.node.name;
	p.runtime_dir = scratch->path;
	p.has_telemetry = d->conf.node.telemetry;
	p.cpus = d->conf.lcore.cpus;
	p.n_lcores = d->n_lcores;
	p.log = &d->log;
	for (uint32_t i = 0; i < d->conf.n_ports; i++) {
		struct sw_dpdk_port_params port =
			sw_daemon_port_params(d, &d->conf.ports[i]);

		p.ports_bytes += sw_dpdk_port_bytes(&port);
		p.has_nics |= port.type == SW_DPDK_PCI;
	}
	if (sw_scratch_open(scratch, d->runtime_dir, "dpdk")) {
		sw_log(&d->log, SW_LOG_ERROR, "runtime folder %s: %s",
			d->runtime_dir, strerror(errno));
		return SW_EIO;
	}
	err = sw_dpdk_open(&p, &d->dpdk);
	if (err || !p.has_telemetry)
		sw_scratch_close(scratch);
	else
		sw_telemetry_open(d);
	return err;
}

int sw_daemon_parse(struct sw_daemon_options *o, const char *name,
	const char *summary, int argc, char **argv)
{
	const char *format = "auto";
	char program[32], help[112];
	const struct sw_arg rows[] = {
		{"--config", SW_ARG_PATH, {.string = &o->config}, 0, 0, help},
		{"--log-format", SW_ARG_STRING, {.string = &format}, 0, 0,
			"form of log lines: text, json (one object per line), "
			"journal, or auto (journal if stderr is the journal, "
			"else text)"},
		{"--level", SW_ARG_STRING, {.string = &o->level}, 0, 0,
			"summation kernels to use instead of [sum] level: "
			"scalar, avx2, avx512 or auto"},
	};
	const struct sw_args args = {.name = program,
		.summary = summary,
		.rows = rows,
		.n_rows = sizeof(rows) / sizeof(rows[0])};
	int err;

	*o = (struct sw_daemon_options){0};
	snprintf(o->path, sizeof(o->path), "/etc/sumwire/%s.ini", name);
	snprintf(help, sizeof(help), "configuration file (INI) [default %s]",
		o->path);
	snprintf(program, sizeof(program), "sumwire %s", name);
	err = sw_args_parse(&args, argc, argv);
	if (err)
		return err;
	if (sw_log_format_parse(format, &o->format)) {
		fprintf(stderr,
			"sumwire %s: --log-format %s: text, json, journal or "
			"auto\n",
			name, format);
		return SW_EINVAL;
	}
	if (o->config)
		return 0;
	o->config = o->path;
	if (!access(o->path, F_OK))
		return 0;
	fprintf(stderr,
		"sumwire %s: --config FILE is missing, and there is no %s "
		"(conf/loopback-%s.ini is an example)\n",
		name, o->path, name);
	return SW_EINVAL;
}

int sw_daemon_exit_code(int err)
{
	if (!err)
		return 0;
	return err == SW_ECONF || err == SW_ENOENT ? WRONG_CONFIGURATION : 1;
}

int sw_daemon_open(struct sw_daemon *d, const struct sw_daemon_options *o,
	enum sw_conf_role role)
{
	int err;

	memset(d, 0, sizeof(*d));
	/* first, so that signals end the daemon in order */
	sw_daemon_block_signals();
	sw_log_sink_open(&d->log_sink);
	sw_log_sink_format(&d->log_sink, o->format);
	sw_log_init(&d->log, &d->log_sink, SW_LOG_INFO);
	err = sw_conf_load(o->config, &d->conf, &d->log);
	if (err)
		return err;
	d->path = o->config;
	d->file = malloc(sizeof(*d->file));
	if (!d->file)
		return SW_ENOMEM;
	*d->file = d->conf;
	d->has_reload = sw_notify_is_wanted();
	d->log.level = (enum sw_log_level)d->conf.log.level;
	name_node(d);
	if ((d->conf.node.role == SW_ROLE_SERVER) != (role == SW_ROLE_SERVER)) {
		sw_log(&d->log, SW_LOG_ERROR, "%s: [node] role is not %s",
			o->config,
			role == SW_ROLE_SERVER ? "server" : "agent or both");
		return SW_ECONF;
	}
	d->n_lcores = sw_conf_n_lcores(&d->conf);
	fill_params(d);
	sw_daemon_plan_memory(d);
	err = choose_kernels(d, o->level);
	for (uint32_t i = 0; i < d->n_lcores && !err; i++)
		err = sw_lines_open(&d->lines[i], &d->log);
	if (!err)
		err = sw_secrets_open(
			&d->secrets, &d->conf, NULL, sw_now_ns(), &d->log);
	if (!err)
		sw_secrets_log(d->secrets, &d->conf, &d->log);
	return err ? err : sw_daemon_open_system(d);
}

void sw_daemon_env(const struct sw_daemon *d, uint32_t i, struct sw_reserve *r,
	struct sw_env *env)
{
	*env = d->env;
	env->log = sw_lines_log(d->lines[i]);
	sw_reserve_env(r, env);
}

int sw_daemon_start(struct sw_daemon *d)
{
	int err;

	sw_start_watch_open(&d->start_watch, SLOW_START_MS, &d->log);
	sw_start_watch_say(&d->start_watch, "DPDK", "");
	/* Here DPDK first touches its memory and the memory of its lcores. */
	(void)!sw_numa_prefer(d->numa.home);
	err = open_dpdk(d);
	if (!err)
		err = sw_daemon_open_ports(d);
	(void)!sw_numa_prefer(SW_NUMA_ANY);
	sw_start_watch_close(&d->start_watch);
	for (uint32_t i = 0; i < d->n_lcores && !err; i++)
		err = sw_poller_open(&d->pollers[i], d, i);
	return err;
}

int sw_daemon_launch(struct sw_daemon *d)
{
	int err = sw_daemon_confine(d);

	for (uint32_t i = 0; i < d->n_lcores && !err; i++)
		err = sw_dpdk_launch(d->dpdk, i, sw_poller_run, &d->pollers[i]);
	return err;
}

int sw_daemon_join(struct sw_daemon *d)
{
	int worst = 0;

	for (uint32_t i = 0; i < d->n_lcores; i++)
		atomic_store(&d->pollers[i].stop, true);
	for (uint32_t i = 0; i < d->n_lcores; i++) {
		int err = sw_dpdk_join(d->dpdk, i);

		worst = worst ? worst : err;
	}
	return worst;
}

int sw_daemon_serve_stats(struct sw_daemon *d, sw_stats_fill_fn fill, void *ctx)
{
	char path[SW_CONF_PATH_BYTES + 32];

	if (d->conf.stats.socket[0]) {
		snprintf(path, sizeof(path), "%s", d->conf.stats.socket);
	} else {
		sw_stale_sweep(d->runtime_dir, "stats-");
		snprintf(path, sizeof(path), "%s/stats-%ld.sock",
			d->runtime_dir, (long)getpid());
	}
	sw_log(&d->log, SW_LOG_INFO, "counters: sumwire stats %s", path);
	return sw_stats_serve_open(path, fill, ctx, &d->log, &d->stats);
}

void sw_daemon_close(struct sw_daemon *d)
{
	sw_telemetry_close(d);
	sw_tell_close(&d->about.tell);
	sw_trace_close(d);
	sw_stats_serve_close(&d->stats);
	sw_handoff_close(&d->handoff);
	for (uint32_t i = 0; i < d->n_dpdk_ports; i++)
		sw_dpdk_port_close(&d->queues[0][i]);
	for (uint32_t i = 0; i < SW_MAX_LCORES; i++) {
		sw_poller_close(&d->pollers[i]);
		sw_loopback_close(d->loopbacks[i]);
		sw_reserve_close(&d->reserves[i]);
		sw_reserve_close(&d->lane_reserves[i]);
	}
	sw_dpdk_close(&d->dpdk);
	for (uint32_t i = 0; i < SW_MAX_LCORES; i++)
		sw_lines_close(d->lines[i]);
	if (d->owns_runtime_dir && rmdir(d->runtime_dir))
		sw_log(&d->log, SW_LOG_WARN, "runtime folder %s: %s",
			d->runtime_dir, strerror(errno));
	if (d->secrets)
		sw_daemon_drop_secrets(d);
	sw_secrets_close(d->secrets);
	sw_log_sink_close(&d->log_sink);
	free(d->file);
}
