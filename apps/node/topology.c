/* topology.c - find the NUMA nodes of a daemon's lcores, ports and memory.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "apps/node/daemon.h"
#include "pmd/dpdk/cpus.h"

_Static_assert((int)SW_NUMA_LCORES == SW_MAX_LCORES &&
		       (int)SW_NUMA_PORTS == SW_CONF_MANY_MAX,
	"all lcores and ports have a place in the plan");

static void find_out(const struct sw_daemon *d, struct sw_numa_facts *f)
{
	const struct sw_conf *c = &d->conf;

	*f = (struct sw_numa_facts){.n_nodes = sw_numa_nodes(),
		.n_lcores = d->n_lcores,
		.n_ports = c->n_ports};
	for (uint32_t i = 0; i < f->n_lcores; i++) {
		int cpu = sw_cpus_at(c->lcore.cpus, i);

		f->lcores[i] = cpu < 0 ? SW_NUMA_ANY : sw_numa_of_cpu(cpu);
	}
	for (uint32_t i = 0; i < f->n_ports; i++)
		f->ports[i] = sw_numa_of_device(c->ports[i].device);
}

static void say_far(const struct sw_daemon *d, const struct sw_numa_facts *f)
{
	for (uint32_t i = 0; i < f->n_lcores; i++)
		for (uint32_t p = 0; p < f->n_ports; p++)
			if (d->numa.far[i] >> p & 1)
				sw_log(&d->log, SW_LOG_WARN,
					"lcore %u is on NUMA node %d, port %s "
					"on node %d: its frames cross between "
					"them; give [lcore] cpus of node %d",
					i, f->lcores[i], d->conf.ports[p].label,
					f->ports[p], f->ports[p]);
}

void sw_daemon_plan_memory(struct sw_daemon *d)
{
	struct sw_numa_facts f;

	find_out(d, &f);
	sw_numa_make_plan(&f, &d->numa);
	d->n_nodes = f.n_nodes;
	for (uint32_t i = 0; i < SW_MAX_LCORES; i++)
		d->reserves[i].node = d->lane_reserves[i].node =
			d->numa.lcores[i];
	if (f.n_nodes == 1)
		sw_log(&d->log, SW_LOG_DEBUG,
			"NUMA: one node, nothing to bind");
	else if (d->numa.home == SW_NUMA_ANY)
		sw_log(&d->log, SW_LOG_WARN,
			"NUMA: %u nodes, and neither lcores nor ports are tied "
			"to one, so memory is not; give [lcore] cpus",
			f.n_nodes);
	else
		sw_log(&d->log, SW_LOG_INFO,
			"NUMA: %u nodes; ports' buffers and lcore 0's memory "
			"on node %d",
			f.n_nodes, d->numa.home);
	say_far(d, &f);
}

void sw_daemon_put_topology(const struct sw_daemon *d,
	void (*put)(void *out, const char *name, uint64_t value), void *out)
{
	char name[48];

	put(out, "numa_nodes", d->n_nodes);
	for (uint32_t i = 0; i < d->n_lcores; i++) {
		if (d->numa.lcores[i] == SW_NUMA_ANY)
			continue;
		snprintf(name, sizeof(name), "lcore%u.numa_node", i);
		put(out, name, (uint64_t)d->numa.lcores[i]);
	}
}
