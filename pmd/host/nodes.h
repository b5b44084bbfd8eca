/* nodes.h - memory on the node of the CPU and the port that use it.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A node is a number of the kernel's from 0 on; SW_NUMA_ANY: it is not known,
 * or does not matter.  On a machine of one node the plan has no other. */
#ifndef SW_PMD_HOST_NODES_H
#define SW_PMD_HOST_NODES_H

#include <stdint.h>

enum { SW_NUMA_ANY = -1, SW_NUMA_LCORES = 16, SW_NUMA_PORTS = 32 };

/* What is where. */
struct sw_numa_facts {
	uint32_t n_nodes;
	uint32_t n_lcores, n_ports;
	int lcores[SW_NUMA_LCORES]; /* nodes */
	int ports[SW_NUMA_PORTS];
};

/* Where memory goes. */
struct sw_numa_plan {
	int home;                   /* of the ports' buffers */
	int lcores[SW_NUMA_LCORES]; /* of what each lcore works on */
	/* Ports (bits), by lcore, that are on another node than it. */
	uint32_t far[SW_NUMA_LCORES];
};

/* sw_numa_make_plan - the rule: what an lcore works on lies on its node, or if
 * it floats, on the ports'; the buffers of the ports on lcore 0's node, or if
 * that floats, on the first port's that is known.  No call of the kernel. */
void sw_numa_make_plan(const struct sw_numa_facts *f, struct sw_numa_plan *out);

/* sw_numa_nodes - of this machine; 1 also where the kernel does not say. */
uint32_t sw_numa_nodes(void);

/* sw_numa_of_cpu, sw_numa_of_device - the node of a CPU, of a network interface
 * or PCI address. */
int sw_numa_of_cpu(int cpu);
int sw_numa_of_device(const char *name);

/* sw_numa_bind - the pages of @mem, none of which is there yet, are to come
 * from @node as long as it has some.  Shared memory too, for all that map it.
 * Nothing for SW_NUMA_ANY.  Errors: SW_EIO the kernel refuses. */
int sw_numa_bind(void *mem, uint64_t bytes, int node);

/* sw_numa_prefer - the same for all that this thread, and threads that it
 * makes, touch first from now on; SW_NUMA_ANY: as at the start.
 * Errors: SW_EIO. */
int sw_numa_prefer(int node);

#endif
