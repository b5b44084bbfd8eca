/* nodes.h - place memory on the NUMA node of the CPU and port that use it.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A node is the kernel's number, from 0; SW_NUMA_ANY: unknown or irrelevant. A
 * machine with one node has a trivial plan.
 */
#ifndef SW_PMD_HOST_NODES_H
#define SW_PMD_HOST_NODES_H

#include <stdint.h>

enum { SW_NUMA_ANY = -1, SW_NUMA_LCORES = 16, SW_NUMA_PORTS = 32 };

/* Nodes of lcores and ports. */
struct sw_numa_facts {
	uint32_t n_nodes;
	uint32_t n_lcores, n_ports;
	int lcores[SW_NUMA_LCORES]; /* nodes */
	int ports[SW_NUMA_PORTS];
};

/* Nodes for memory. */
struct sw_numa_plan {
	int home;                   /* node of the ports' buffers */
	int lcores[SW_NUMA_LCORES]; /* node of each lcore's own memory */
	/* By lcore: bits of the ports that are on another node. */
	uint32_t far[SW_NUMA_LCORES];
};

/* sw_numa_make_plan - apply the rule: an lcore's memory lies on its node, or on
 * the ports' node if it floats. The ports' buffers lie on lcore 0's node, or if
 * that floats, on the first known node of a port. No system call. */
void sw_numa_make_plan(const struct sw_numa_facts *f, struct sw_numa_plan *out);

/* sw_numa_nodes - return the number of nodes of this machine; 1 if unknown. */
uint32_t sw_numa_nodes(void);

/* sw_numa_of_cpu, sw_numa_of_device - return the node of a CPU, or of a network
 * interface or PCI address. */
int sw_numa_of_cpu(int cpu);
int sw_numa_of_device(const char *name);

/* sw_numa_bind - take the pages of @mem, none of which is present yet, from
 * @node as long as it has free pages; for shared memory this holds in all
 * processes. Does nothing for SW_NUMA_ANY. Errors: SW_EIO the kernel refuses.
 */
int sw_numa_bind(void *mem, uint64_t bytes, int node);

/* sw_numa_prefer - do the same for all memory that this thread, and threads
 * that it creates, touch first from now on; SW_NUMA_ANY: undo it. Errors:
 * SW_EIO. */
int sw_numa_prefer(int node);

#endif
