/* machine.h - a machine: its NUMA nodes, PCIe switches, GPUs and NICs.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Bandwidths are bytes per second each way; 0: unknown.
 */
#ifndef SW_PMD_HOST_MACHINE_H
#define SW_PMD_HOST_MACHINE_H

#include <stddef.h>
#include <stdint.h>

enum {
	SW_MACHINE_MAX = 64,  /* NUMA nodes, switches, GPUs and NICs, each */
	SW_MACHINE_NAME = 32, /* including the NUL, as for all texts here */
	SW_MACHINE_CPUS = 96,
	SW_MACHINE_NONE = -1,
};

struct sw_machine_numa_node {
	uint32_t id;                /* the kernel's number */
	char cpus[SW_MACHINE_CPUS]; /* "0-15,32-47"; "": unknown */
};

/* A PCIe switch above GPUs or NICs; of nested switches, only the uppermost. */
struct sw_machine_switch {
	char bus[SW_MACHINE_NAME]; /* its upstream port; "": unknown */
	int numa_node;             /* id, or SW_MACHINE_NONE: unknown */
	double link;               /* bandwidth to its NUMA node */
};

struct sw_machine_device {
	char name[SW_MACHINE_NAME]; /* NIC: "eth0"; GPU: its model */
	char bus[SW_MACHINE_NAME];  /* "0000:04:00.0"; "": unknown */
	int switch_no; /* index, or SW_MACHINE_NONE: at a root port */
	int numa_node; /* as above; the same as its switch's */
	double link;   /* bandwidth to its switch or root port */
	double nvlink; /* GPU: NVLink to all other GPUs together; 0: none */
	double wire;   /* NIC: rate of its network port */
};

/* Devices in the order of their bus numbers. */
struct sw_machine {
	struct sw_machine_numa_node numa_nodes[SW_MACHINE_MAX];
	struct sw_machine_switch switches[SW_MACHINE_MAX];
	struct sw_machine_device gpus[SW_MACHINE_MAX], nics[SW_MACHINE_MAX];
	uint32_t n_numa_nodes, n_switches, n_gpus, n_nics;
};

/* sw_machine_read - read this machine through hwloc or, if @xml is not NULL,
 * the machine in that XML file of lstopo.
 * @why  on an error its reason, without the file's name; @size bytes
 * GPUs are 3D controllers, and displays of NVIDIA and AMD; NICs are network
 * controllers, with or without a kernel driver. NVLinks are known if hwloc has
 * the matrix "NVLinkBandwidth". Errors: SW_ENOENT no such file; SW_EIO;
 * SW_ECONF the file describes no machine, or a machine that is too large or
 * contradicts itself; SW_ENOMEM.
 * Thread: any one at a time. */
int sw_machine_read(
	struct sw_machine *m, const char *xml, char *why, size_t size);

#endif
