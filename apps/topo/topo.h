/* topo.h - the parts of sumwire-lab topo.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * How the GPUs of one machine sum before and after the network does, by section
 * 4.2 of BytePS (OSDI 2020).  M is what each GPU has to be summed.  Bandwidths
 * are bytes per second each way.  All pure but the two that print.
 */
#ifndef SW_APPS_TOPO_TOPO_H
#define SW_APPS_TOPO_TOPO_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/log.h"
#include "pmd/host/machine.h"

/* sw_topo_read - sw_machine_read of the file @xml, whatever hwloc makes of it.
 */
int sw_topo_read(struct sw_machine *m, const char *xml, char *why, size_t size);

/* sw_topo_describe - change @m by the description at @path; what it names and
 * @m lacks is added.
 * @cross  from GPU to GPU under different switches; 0: it says nothing of that
 * What is wrong goes to @log, with its line.  Errors: SW_ECONF, SW_ENOENT,
 * SW_EIO, SW_ENOMEM; @m is then of no use. */
int sw_topo_describe(struct sw_machine *m, double *cross, const char *path,
	const struct sw_log *log);

/* How GPUs can sum.  The first word of each name is what --json says. */
enum sw_topo_way {
	SW_TOPO_COPY,     /* one GPU: nothing to sum */
	SW_TOPO_ASSISTED, /* under each switch, and then by the CPU */
	SW_TOPO_MIXED,    /* both, with a part x as in the next */
	SW_TOPO_BRUTE,    /* each copies all, the CPU sums */
	SW_TOPO_RING,     /* all-reduce of all GPUs, no CPU */
	SW_TOPO_ROOT,     /* reduce to one GPU, which copies; broadcast */
	SW_TOPO_NEAR,     /* the same by a GPU that shares the NIC's switch */
	SW_TOPO_SCATTER,  /* reduce-scatter over NVLink, each copies a part */
	SW_N_TOPO_WAYS,
};

const char *sw_topo_way_name(enum sw_topo_way way);

/* A link between a switch, or a GPU at a root port, and its NUMA node. */
struct sw_topo_uplink {
	char name[16]; /* "P0"; "GPU3" at a root port */
	int numa_node;
	double link;
	uint32_t n_gpus, n_nics; /* n_nics: in use */
};

struct sw_topo_choice {
	enum sw_topo_way way;
	double x;      /* MIXED: the part copied as it is */
	uint32_t root; /* ROOT and NEAR: the GPU */
	double time_s; /* J: until the busiest link of the machine is done */
	char link[24]; /* that one */
};

struct sw_topo_plan {
	/* asked for */
	double m_bytes;
	double nic_bytes; /* bytes of all NICs together, each way */
	double cross;     /* from GPU to GPU under different switches; 0: not
			     known */
	double wire;      /* rate of NICs whose own is unknown */
	/* found out */
	struct sw_topo_uplink uplinks[2 * SW_MACHINE_MAX];
	uint32_t n_uplinks, uplink_of[SW_MACHINE_MAX]; /* by GPU */
	bool is_used[SW_MACHINE_MAX];                  /* by NIC */
	uint32_t n_used;
	uint32_t s_n, s_g; /* switches with GPUs and NICs, with GPUs alone */
	bool has_nvlink;
	struct sw_topo_choice choices[SW_N_TOPO_WAYS];
	uint32_t n_choices, best; /* best: BytePS's */
	double wire_s;            /* time of the busiest NIC */
};

/* sw_topo_check - does @m contradict itself, or lack what a plan needs? Returns
 * NULL, or the sentence that says so, in @why. */
const char *sw_topo_check(const struct sw_machine *m, char *why, size_t size);

/* sw_topo_use - use the NICs of these @n names; 0: those of the widest PCIe
 * link.  Returns NULL, or the name that @m does not have. */
const char *sw_topo_use(struct sw_topo_plan *p, const struct sw_machine *m,
	const char *const *names, uint32_t n);

/* sw_topo_make_plan - fill @p, whose m_bytes, nic_bytes, cross, wire and NICs
 * are given, for @m, which has a GPU and was checked. */
void sw_topo_make_plan(struct sw_topo_plan *p, const struct sw_machine *m);

/* sw_topo_draw - the tree of @m.  sw_topo_tell - @p in words, and its table.
 * On stdout. */
void sw_topo_draw(const struct sw_machine *m, const struct sw_topo_plan *p);
void sw_topo_tell(const struct sw_machine *m, const struct sw_topo_plan *p);

/* sw_topo_write - both as one object on stdout; without GPUs no plan.
 * Errors: as sw_json_fini. */
int sw_topo_write(const struct sw_machine *m, const struct sw_topo_plan *p);

#endif
