/* nodes.c - place memory on the NUMA node of the CPU and port that use it.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/host/nodes.h"

#include <numa.h>
#include <numaif.h>
#include <stdio.h>

#include "engine/base/error.h"

static int home_of(const struct sw_numa_facts *f)
{
	int home = f->n_lcores ? f->lcores[0] : SW_NUMA_ANY;

	for (uint32_t i = 0; i < f->n_ports && home == SW_NUMA_ANY; i++)
		home = f->ports[i];
	return home;
}

void sw_numa_make_plan(const struct sw_numa_facts *f, struct sw_numa_plan *out)
{
	int home = f->n_nodes > 1 ? home_of(f) : SW_NUMA_ANY;

	*out = (struct sw_numa_plan){.home = home};
	for (uint32_t i = 0; i < SW_NUMA_LCORES; i++) {
		int node = i < f->n_lcores && f->n_nodes > 1 ? f->lcores[i]
							     : SW_NUMA_ANY;

		out->lcores[i] = node == SW_NUMA_ANY ? home : node;
		for (uint32_t p = 0; p < f->n_ports; p++)
			if (node != SW_NUMA_ANY && f->ports[p] != SW_NUMA_ANY &&
				f->ports[p] != node)
				out->far[i] |= 1u << p;
	}
}

uint32_t sw_numa_nodes(void)
{
	/* -1 also if a container forbids the call */
	int n = numa_available() < 0 ? 1 : numa_num_configured_nodes();

	return n > 1 ? (uint32_t)n : 1;
}

int sw_numa_of_cpu(int cpu)
{
	int node = numa_available() < 0 ? -1 : numa_node_of_cpu(cpu);

	return node < 0 ? SW_NUMA_ANY : node;
}

static int read_node(const char *path)
{
	FILE *f = fopen(path, "r");
	int node = SW_NUMA_ANY;

	if (!f)
		return SW_NUMA_ANY;
	if (fscanf(f, "%d", &node) != 1 || node < 0)
		node = SW_NUMA_ANY;
	fclose(f);
	return node;
}

int sw_numa_of_device(const char *name)
{
	static const char *const folders[] = {
		"/sys/class/net/%s/device/numa_node",
		"/sys/bus/pci/devices/%s/numa_node"};
	int node = SW_NUMA_ANY;
	char path[256];

	for (uint32_t i = 0; i < 2 && node == SW_NUMA_ANY && *name; i++) {
		snprintf(path, sizeof(path), folders[i], name);
		node = read_node(path);
	}
	return node;
}

/* Bits of a node mask; these calls refuse larger nodes. The kernel reads one
 * bit less than MAX_NODE says. */
enum { MASK_BITS = 64, MAX_NODE = MASK_BITS + 1 };

int sw_numa_bind(void *mem, uint64_t bytes, int node)
{
	unsigned long mask;

	if (node == SW_NUMA_ANY)
		return 0;
	if (node < 0 || node >= MASK_BITS)
		return SW_EIO;
	mask = 1ul << node;
	return mbind(mem, bytes, MPOL_PREFERRED, &mask, MAX_NODE, 0) ? SW_EIO
								     : 0;
}

int sw_numa_prefer(int node)
{
	unsigned long mask;

	if (node >= MASK_BITS)
		return SW_EIO;
	mask = node == SW_NUMA_ANY ? 0 : 1ul << node;
	return set_mempolicy(
		       node == SW_NUMA_ANY ? MPOL_DEFAULT : MPOL_PREFERRED,
		       &mask, MAX_NODE)
		       ? SW_EIO
		       : 0;
}
