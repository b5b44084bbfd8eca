/* daemon.c - what server and agent share: start, ports, counters, the end.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/node/daemon.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/cli/args.h"
#include "apps/cli/scratch.h"
#include "conf/options.h"
#include "engine/base/error.h"
#include "engine/sched/policy.h"
#include "pmd/host/stale.h"
#include "sum/sum.h"

static const char *const steering_names[SW_STEER_KINDS] = {
	[SW_STEER_RULES] = "rules",
	[SW_STEER_RSS] = "rss",
	[SW_STEER_HANDOFF] = "handoff"};

static uint64_t env_random(void *ctx)
{
	uint64_t v = 0;

	(void)ctx;
	/* Never fails for 8 bytes once the kernel's pool is ready. */
	while (getentropy(&v, sizeof(v)) && errno == EINTR)
		;
	return v;
}

/* A level that was asked for is never replaced by another in silence. */
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

	sw_params_init(&d->params);
	d->params.dead_after = c->job.dead_after_ns;
	d->params.stall_warn = c->job.stall_warn_ns;
	d->params.stall_limit = c->job.stall_limit_ns;
	d->params.join_timeout = c->job.join_timeout_ns;
	d->params.has_crc = c->job.crc;
	d->params.is_async = c->job.mode;
	d->params.policy = sw_policy_at((uint32_t)c->job.policy);
	d->params.credit_bytes = c->job.credit_bytes;
	d->params.part_bytes = c->agent.part_bytes;
	d->env =
		(struct sw_env){.log = &d->log, .ctx = d, .random = env_random};
}

/* A node without a name in the file is called like its machine. */
static void name_node(struct sw_daemon *d)
{
	char host[SW_CONF_NAME_BYTES] = "", *name = d->conf.node.name;

	if (*name)
		return;
	(void)!gethostname(host, sizeof(host) - 1); /* perhaps cut */
	strcpy(name, sw_label_is_good(host) ? host : "node");
}

static struct sw_dpdk_port_params port_params(
	const struct sw_daemon *d, const struct sw_conf_port *c)
{
	static const enum sw_dpdk_type types[] = {
		[SW_PORT_MEMIF] = SW_DPDK_MEMIF,
		[SW_PORT_AF_PACKET] = SW_DPDK_AF_PACKET,
		[SW_PORT_AF_XDP] = SW_DPDK_AF_XDP,
		[SW_PORT_PCI] = SW_DPDK_PCI,
		[SW_PORT_VDEV] = SW_DPDK_VDEV,
		[SW_PORT_UDP] = SW_DPDK_UDP};
	struct sw_dpdk_port_params p;

	sw_dpdk_port_params_init(&p);
	p.name = c->label;
	p.type = types[c->type];
	p.ip = c->subnet.ip;
	p.prefix_bits = c->subnet.bits;
	p.gateway = c->gateway;
	p.vlan = (uint16_t)c->vlan;
	p.device = c->device;
	p.args = c->args;
	p.mtu = c->mtu;
	p.udp = (uint16_t)d->conf.serve.udp_port;
	p.n_udp = (uint16_t)sw_conf_n_udp(&d->conf);
	p.n_ways = (uint16_t)sw_conf_n_ways(&d->conf);
	p.n_queues = (uint16_t)d->n_lcores;
	p.steering = (enum sw_steering)c->steering;
	for (uint32_t e = 0; e < p.n_udp; e++)
		p.owners[e] = (uint8_t)sw_daemon_owner(d, e);
	if (d->conf.job.payload_bytes)
		p.payload_bytes = d->conf.job.payload_bytes;
	p.ring_slots = c->ring;
	p.burst = c->burst;
	p.socket_path = c->socket;
	p.memif_id = c->id;
	p.trusted_uid = d->trusted_uid;
	p.n_link_queues = (uint16_t)c->queues;
	p.is_listener = c->side == SW_SIDE_LISTEN;
	p.faults.drop_percent = c->fault_loss_ppm / 1e4;
	p.faults.duplicate_percent = c->fault_dup_ppm / 1e4;
	p.faults.reorder_percent = c->fault_reorder_ppm / 1e4;
	p.faults.seed = c->fault_seed;
	return p;
}

/* DPDK leaves its files behind when it is killed at its start. */
static int open_dpdk(struct sw_daemon *d)
{
	struct sw_dpdk_params p;
	struct sw_scratch scratch;
	int err;

	sw_dpdk_params_init(&p);
	p.name = d->conf.node.name;
	p.runtime_dir = scratch.path;
	p.cpus = d->conf.lcore.cpus;
	p.n_lcores = d->n_lcores;
	p.log = &d->log;
	for (uint32_t i = 0; i < d->conf.n_ports; i++) {
		struct sw_dpdk_port_params port =
			port_params(d, &d->conf.ports[i]);

		p.ports_bytes += sw_dpdk_port_bytes(&port);
		p.has_nics |= port.type == SW_DPDK_PCI;
	}
	if (sw_scratch_open(&scratch, d->runtime_dir, "dpdk")) {
		sw_log(&d->log, SW_LOG_ERROR, "runtime folder %s: %s",
			d->runtime_dir, strerror(errno));
		return SW_EIO;
	}
	err = sw_dpdk_open(&p, &d->dpdk);
	sw_scratch_close(&scratch);
	return err;
}

/* The lcores that have a queue pair share the port's rate equally. */
static int open_port(struct sw_daemon *d, uint32_t i)
{
	struct sw_dpdk_port_params p = port_params(d, &d->conf.ports[i]);
	struct sw_port *q;
	uint32_t n = 0;
	int err = sw_dpdk_port_open(&p, (uint16_t)i, &d->log, &d->queues[0][i]);

	if (err)
		return err;
	d->n_ports = ++d->n_dpdk_ports;
	while (n < d->n_lcores && (q = sw_dpdk_port_queue(d->queues[0][i], n)))
		d->queues[n++][i] = q;
	for (uint32_t k = 0; k < n; k++)
		d->queues[k][i]->rate_bit_s = d->conf.ports[i].rate_bit_s / n;
	return 0;
}

/* Each lcore has its own, so that what it sends to its own server stays. */
static int open_loopbacks(struct sw_daemon *d)
{
	d->loopbacks = malloc(d->n_lcores * sizeof(*d->loopbacks));
	if (!d->loopbacks)
		return SW_ENOMEM;
	for (uint32_t i = 0; i < d->n_lcores; i++) {
		sw_loopback_init(&d->loopbacks[i]);
		d->queues[i][d->n_ports] = &d->loopbacks[i].port;
	}
	d->n_ports++;
	return 0;
}

static int open_ports(struct sw_daemon *d)
{
	int err = 0;

	for (uint32_t i = 0; i < d->conf.n_ports && !err; i++)
		err = open_port(d, i);
	if (err)
		return err;
	if (d->conf.node.role == SW_ROLE_BOTH)
		err = open_loopbacks(d);
	return err ? err
		   : sw_handoff_open(&d->handoff, d->n_lcores, d->n_ports,
			     (struct sw_port *const(*)[SW_MAX_PORTS])d->queues);
}

/* The class that all ports carry; where one was asked for, that one. */
static int choose_payload(struct sw_daemon *d)
{
	uint32_t asked = d->conf.job.payload_bytes;

	d->params.payload = SW_PAYLOAD_MAX;
	for (uint32_t i = 0; i < d->n_dpdk_ports; i++) {
		uint32_t most = d->queues[0][i]->max_payload;

		if (most < d->params.payload)
			d->params.payload = most;
		if (asked <= most)
			continue;
		sw_log(&d->log, SW_LOG_ERROR,
			"port %s: [job] payload = %u does not fit the MTU of "
			"%s: at most %u; raise the MTU or use a smaller "
			"payload",
			d->conf.ports[i].label, asked, d->conf.ports[i].device,
			most);
		return SW_ECONF;
	}
	if (asked)
		d->params.payload = asked;
	sw_log(&d->log, SW_LOG_INFO, "payload class: %u B", d->params.payload);
	return 0;
}

int sw_daemon_parse(struct sw_daemon_options *o, const char *name,
	const char *summary, int argc, char **argv)
{
	const struct sw_arg rows[] = {
		{"--config", SW_ARG_PATH, {.string = &o->config}, 0, 0,
			"configuration file (INI)"},
		{"--level", SW_ARG_STRING, {.string = &o->level}, 0, 0,
			"summation kernels: scalar, avx2, avx512 or auto, "
			"instead of [sum] level"},
	};
	const struct sw_args args = {.name = name,
		.summary = summary,
		.rows = rows,
		.n_rows = sizeof(rows) / sizeof(rows[0])};
	int err;

	*o = (struct sw_daemon_options){0};
	err = sw_args_parse(&args, argc, argv);
	if (err || o->config)
		return err;
	fprintf(stderr,
		"sumwire %s: --config FILE is missing (conf/loopback-%s.ini "
		"is an example)\n",
		name, name);
	return SW_EINVAL;
}

int sw_daemon_open(struct sw_daemon *d, const struct sw_daemon_options *o,
	enum sw_conf_role role)
{
	int err;

	memset(d, 0, sizeof(*d));
	sw_daemon_block_signals(); /* first: from now on they end in order */
	sw_log_sink_open(&d->log_sink);
	sw_log_init(&d->log, &d->log_sink, SW_LOG_INFO);
	err = sw_conf_load(o->config, &d->conf, &d->log);
	if (err)
		return err;
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
	return err ? err : sw_daemon_open_system(d);
}

int sw_daemon_start(struct sw_daemon *d)
{
	int err;

	/* DPDK's memory, and its lcores' own, is touched first in here. */
	(void)!sw_numa_prefer(d->numa.home);
	err = open_dpdk(d);
	if (!err)
		err = open_ports(d);
	(void)!sw_numa_prefer(SW_NUMA_ANY);
	if (!err)
		err = choose_payload(d);
	for (uint32_t i = 0; i < d->n_lcores && !err; i++)
		sw_poller_init(&d->pollers[i], d, i);
	return err;
}

int sw_daemon_launch(struct sw_daemon *d)
{
	int err = 0;

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

uint32_t sw_daemon_owner(const struct sw_daemon *d, uint32_t endpoint)
{
	uint32_t first = sw_daemon_endpoint(d, 0);

	return endpoint < first ? endpoint : endpoint - first;
}

uint32_t sw_daemon_endpoint(const struct sw_daemon *d, uint32_t lcore)
{
	return (d->conf.node.role == SW_ROLE_AGENT ? 0 : d->conf.serve.lcores) +
	       lcore;
}

bool sw_daemon_let_go(struct sw_daemon *d, uint32_t lcore)
{
	for (uint32_t i = 0; i < d->n_dpdk_ports; i++)
		if (d->queues[lcore][i] &&
			!sw_dpdk_port_let_go(d->queues[lcore][i]))
			return false;
	/* Its frames are taken in the next turn, none needs to be dropped. */
	return !d->loopbacks || sw_loopback_is_drained(&d->loopbacks[lcore]);
}

void sw_daemon_add_stats(const struct sw_daemon *d, struct sw_stats *sum)
{
	for (uint32_t i = 0; i < d->n_lcores; i++)
		sw_stats_add(sum, &d->pollers[i].loop.stats);
	sw_handoff_add_stats(&d->handoff, sum);
}

void sw_daemon_put_engine(const struct sw_stats *st, const char *prefix,
	void (*put)(void *out, const char *name, uint64_t value), void *out)
{
	uint32_t n;
	const struct sw_stat_row *rows = sw_stats_rows(&n);
	char name[128];

	for (uint32_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%s%s", prefix, rows[i].name);
		put(out, name,
			*(const uint64_t *)((const char *)st + rows[i].offset));
	}
}

/* Sums over the queue pairs; of several, what each received; how frames come
 * to them (enum sw_steering). */
static void put_port(const struct sw_daemon *d, uint32_t i,
	void (*put)(void *out, const char *name, uint64_t value), void *out)
{
	const char *label = d->conf.ports[i].label;
	uint64_t sums[SW_DPDK_N_COUNTERS] = {0};
	struct sw_dpdk_port_stats ps;
	char name[128];

	for (uint32_t q = 0; q < d->n_lcores && d->queues[q][i]; q++) {
		const uint64_t *value = (const uint64_t *)&ps;

		sw_dpdk_port_stats_get(d->queues[q][i], &ps);
		for (uint32_t k = 0; k < SW_DPDK_N_COUNTERS; k++)
			sums[k] += value[k];
		if (d->n_lcores == 1)
			continue;
		snprintf(name, sizeof(name), "port.%s.queue%u.rx_frames", label,
			q);
		put(out, name, ps.rx_frames);
	}
	for (uint32_t k = 0; k < SW_DPDK_N_COUNTERS; k++) {
		snprintf(name, sizeof(name), "port.%s.%s", label,
			sw_dpdk_counters[k].name);
		put(out, name, sums[k]);
	}
	for (uint32_t k = 0; k < SW_STEER_KINDS && d->n_lcores > 1; k++) {
		snprintf(name, sizeof(name), "port.%s.steering_%s", label,
			steering_names[k]);
		if (k != SW_STEER_ONE)
			put(out, name, d->queues[0][i]->steering == k);
	}
}

void sw_daemon_put_stats(const struct sw_daemon *d, const struct sw_stats *st,
	void (*put)(void *out, const char *name, uint64_t value), void *out)
{
	sw_daemon_put_engine(st, "", put, out);
	sw_daemon_put_topology(d, put, out);
	for (uint32_t i = 0; i < d->n_dpdk_ports; i++)
		put_port(d, i, put, out);
}

void sw_daemon_close(struct sw_daemon *d)
{
	sw_stats_serve_close(&d->stats);
	sw_handoff_close(&d->handoff);
	for (uint32_t i = 0; i < d->n_dpdk_ports; i++)
		sw_dpdk_port_close(&d->queues[0][i]);
	free(d->loopbacks);
	for (uint32_t i = 0; i < SW_MAX_LCORES; i++) {
		sw_reserve_close(&d->reserves[i]);
		sw_reserve_close(&d->lane_reserves[i]);
	}
	sw_dpdk_close(&d->dpdk);
	if (d->owns_runtime_dir && rmdir(d->runtime_dir))
		sw_log(&d->log, SW_LOG_WARN, "runtime folder %s: %s",
			d->runtime_dir, strerror(errno));
	sw_log_sink_close(&d->log_sink);
}
