/* machine.h - a machine: its NUMA nodes, PCIe switches, GPUs and NICs.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Bandwidths are bytes per second each way; 0: not known.
 */
#ifndef SW_PMD_HOST_MACHINE_H
#define SW_PMD_HOST_MACHINE_H

#include <stddef.h>
#include <stdint.h>

enum {
	SW_MACHINE_MAX = 64,  /* NUMA nodes, switches, GPUs, NICs: each */
	SW_MACHINE_NAME = 32, /* with the NUL, as all texts here */
	SW_MACHINE_CPUS = 96,
	SW_MACHINE_NONE = -1,
};

struct sw_machine_numa_node {
	uint32_t id;                /* the kernel's number */
	char cpus[SW_MACHINE_CPUS]; /* "0-15,32-47"; "": not known */
};

/* A PCIe switch with GPUs or NICs below it; only the uppermost of nested ones.
 */
struct sw_machine_switch {
	char bus[SW_MACHINE_NAME]; /* address of its upstream port; "": not
				      known */
	int numa_node;             /* id, or SW_MACHINE_NONE: not known */
	double link;               /* bandwidth to its NUMA node */
};

struct sw_machine_device {
	char name[SW_MACHINE_NAME]; /* NIC: "eth0"; GPU: its model */
	char bus[SW_MACHINE_NAME];  /* "0000:04:00.0"; "": not known */
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

/* sw_machine_read - this machine by hwloc, or that of the XML file @xml, which
 * lstopo has written (NULL: this one).
 * @why  on error what is wrong, a sentence without the file's name; @size bytes
 * GPUs are 3D controllers, and displays of NVIDIA and AMD; NICs are network
 * controllers with a driver of the kernel or without.  NVLinks are known where
 * hwloc's matrix "NVLinkBandwidth" is.  Errors: SW_ENOENT no such file, SW_EIO,
 * SW_ECONF what is no machine, or contradicts itself, SW_ENOMEM.
 * Thread: any one at a time. */
int sw_machine_read(
	struct sw_machine *m, const char *xml, char *why, size_t size);

#endif
