/* daemon_stats.c - counters of a daemon's lcores, engine and ports.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "apps/node/daemon.h"

static const char *const steering_names[SW_STEER_KINDS] = {
	[SW_STEER_RULES] = "rules",
	[SW_STEER_RSS] = "rss",
	[SW_STEER_HANDOFF] = "handoff"};

void sw_daemon_add_stats(const struct sw_daemon *d, struct sw_stats *sum)
{
	for (uint32_t i = 0; i < d->n_lcores; i++)
		sw_stats_add(sum, sw_loop_stats(&d->pollers[i].loop));
	sw_handoff_add_stats(&d->handoff, sum);
}

static void put_times(const struct sw_stats *st, const char *prefix,
	void (*put)(void *out, const char *name, uint64_t value), void *out)
{
	uint32_t n;
	const struct sw_stat_times *rows = sw_stats_times(&n);
	char name[128];

	for (uint32_t i = 0; i < n; i++) {
		const struct sw_histogram *h =
			(const void *)((const char *)st + rows[i].offset);

		for (uint32_t k = 0; k < SW_HISTOGRAM_BUCKETS; k++) {
			snprintf(name, sizeof(name), "%s%s.bucket%u", prefix,
				rows[i].name, k);
			put(out, name, h->n[k]);
		}
		snprintf(name, sizeof(name), "%s%s.sum", prefix, rows[i].name);
		put(out, name, h->sum_ns);
	}
}

void sw_daemon_put_engine(const struct sw_stats *st, const char *prefix,
	void (*put)(void *out, const char *name, uint64_t value), void *out)
{
	uint32_t n;
	const struct sw_stat_row *rows = sw_stats_rows(&n);
	char name[128];

	for (uint32_t i = 0; i < n; i++) {
		const uint64_t *value =
			(const void *)((const char *)st + rows[i].offset);

		snprintf(name, sizeof(name), "%s%s", prefix, rows[i].name);
		if (!rows[i].is_by_class)
			put(out, name, *value);
		for (uint32_t c = 0; rows[i].is_by_class && c < SW_N_CLASSES;
			c++) {
			snprintf(name, sizeof(name), "%sclass%u.%s", prefix, c,
				rows[i].name);
			put(out, name, value[c]);
		}
	}
	put_times(st, prefix, put, out);
}

struct device_out {
	const char *label; /* label of the port */
	void (*put)(void *out, const char *name, uint64_t value);
	void *out;
};

static void put_device(void *out, const char *counter, uint64_t value)
{
	const struct device_out *o = out;
	char name[128];

	snprintf(name, sizeof(name), "port.%s.device.%s", o->label, counter);
	o->put(o->out, name, value);
}

/* Put the counters of each queue pair, their sums, and how the device steers
 * frames (enum sw_steering). */
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
		for (uint32_t k = 0; k < SW_DPDK_N_COUNTERS; k++) {
			sums[k] += value[k];
			snprintf(name, sizeof(name), "port.%s.queue%u.%s",
				label, q, sw_dpdk_counters[k].name);
			put(out, name, value[k]);
		}
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
	sw_dpdk_port_xstats(d->queues[0][i], put_device,
		&(struct device_out){label, put, out});
}

static void put_cpu_wait(const struct sw_poller *p, const char *prefix,
	void (*put)(void *out, const char *name, uint64_t value), void *out)
{
	char name[64];
	uint64_t ns;

	if (!sw_cpu_wait_read(
		    atomic_load_explicit(&p->tid, memory_order_relaxed), &ns))
		return;
	snprintf(name, sizeof(name), "%scpu_wait_ns", prefix);
	put(out, name, ns);
}

void sw_daemon_put_stats(const struct sw_daemon *d, const struct sw_stats *st,
	void (*put)(void *out, const char *name, uint64_t value), void *out)
{
	char prefix[24];

	sw_daemon_put_engine(st, "", put, out);
	sw_daemon_put_topology(d, put, out);
	for (uint32_t i = 0; i < d->n_lcores; i++) {
		snprintf(prefix, sizeof(prefix), "lcore%u.", i);
		sw_turns_put(&d->pollers[i].turns, prefix, put, out);
		put_cpu_wait(&d->pollers[i], prefix, put, out);
	}
	for (uint32_t i = 0; i < d->n_dpdk_ports; i++)
		put_port(d, i, put, out);
}
