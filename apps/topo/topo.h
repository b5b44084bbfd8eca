/* topo.h - the parts of sumwire-lab topo.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Plans how the GPUs of one machine sum before and after the network does, by
 * section 4.2 of BytePS (OSDI 2020).  M is the number of bytes that each GPU
 * contributes.  Bandwidths are bytes per second in each direction.  Every
 * function is pure, except those that print or read.
 */
#ifndef SW_APPS_TOPO_TOPO_H
#define SW_APPS_TOPO_TOPO_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/log.h"
#include "pmd/host/machine.h"

/* sw_topo_read - read a machine from the file @xml like sw_machine_read, but
 * survive a crash of hwloc. */
int sw_topo_read(struct sw_machine *m, const char *xml, char *why, size_t size);

/* sw_topo_describe - change @m by the description at @path, and add devices
 * that only the description has.
 * @cross  set to the bandwidth from GPU to GPU under different switches;
 *         0: not described
 * @log    gets each error with its line
 * Errors: SW_ECONF, SW_ENOENT, SW_EIO, SW_ENOMEM; then @m must not be used. */
int sw_topo_describe(struct sw_machine *m, double *cross, const char *path,
	const struct sw_log *log);

/* Ways in which GPUs can sum. --json prints the first word of each name. */
enum sw_topo_way {
	SW_TOPO_COPY,     /* one GPU: nothing to sum */
	SW_TOPO_ASSISTED, /* sum under each switch, then on the CPU */
	/* both: a part x as by BRUTE, the rest as by ASSISTED */
	SW_TOPO_MIXED,
	SW_TOPO_BRUTE, /* each GPU copies everything, the CPU sums */
	SW_TOPO_RING,  /* all-reduce of all GPUs, without the CPU */
	SW_TOPO_ROOT,  /* reduce to one GPU, which copies; then broadcast */
	SW_TOPO_NEAR,  /* as ROOT, by a GPU that shares the NIC's switch */
	/* reduce-scatter over NVLink; each GPU copies a part */
	SW_TOPO_SCATTER,
	SW_N_TOPO_WAYS,
};

const char *sw_topo_way_name(enum sw_topo_way way);

/* The link from a switch, or from a GPU at a root port, to its NUMA node. */
struct sw_topo_uplink {
	char name[16]; /* "P0"; "GPU3" at a root port */
	int numa_node;
	double link;
	uint32_t n_gpus, n_nics; /* n_nics: NICs in use */
};

struct sw_topo_choice {
	enum sw_topo_way way;
	double x;      /* MIXED: the part copied without a sum */
	uint32_t root; /* ROOT and NEAR: the GPU */
	double time_s; /* J: time of the busiest link of the machine */
	char link[24]; /* the busiest link */
};

struct sw_topo_plan {
	/* input: */
	double m_bytes;
	double nic_bytes; /* total bytes of all NICs, each way */
	/* bandwidth from GPU to GPU under different switches; 0: unknown */
	double cross;
	double wire; /* rate of NICs whose own rate is unknown */
	/* output: */
	struct sw_topo_uplink uplinks[2 * SW_MACHINE_MAX];
	uint32_t n_uplinks, uplink_of[SW_MACHINE_MAX]; /* by GPU */
	bool is_used[SW_MACHINE_MAX];                  /* by NIC */
	uint32_t n_used;
	/* number of switches with GPUs and NICs, with GPUs only */
	uint32_t s_n, s_g;
	bool has_nvlink;
	struct sw_topo_choice choices[SW_N_TOPO_WAYS];
	uint32_t n_choices, best; /* best: BytePS's choice */
	double wire_s;            /* time of the busiest NIC */
};

/* sw_topo_check - check that @m is consistent and has everything that a plan
 * needs.  Returns NULL, or the reason, in @why. */
const char *sw_topo_check(const struct sw_machine *m, char *why, size_t size);

/* sw_topo_use - use the @n NICs of these names; 0: the NICs with the widest
 * PCIe link.  Returns NULL, or the first name that @m lacks. */
const char *sw_topo_use(struct sw_topo_plan *p, const struct sw_machine *m,
	const char *const *names, uint32_t n);

/* sw_topo_make_plan - fill @p for @m.  The caller has set the input of @p and
 * called sw_topo_use; @m has a GPU and has passed sw_topo_check. */
void sw_topo_make_plan(struct sw_topo_plan *p, const struct sw_machine *m);

/* sw_topo_draw - print the tree of @m. sw_topo_tell - print @p in words, with
 * its table.  Both print to stdout. */
void sw_topo_draw(const struct sw_machine *m, const struct sw_topo_plan *p);
void sw_topo_tell(const struct sw_machine *m, const struct sw_topo_plan *p);

/* sw_topo_write - write machine and plan as one JSON object to stdout; without
 * GPUs no plan.
 * Errors: as sw_json_fini. */
int sw_topo_write(const struct sw_machine *m, const struct sw_topo_plan *p);

#endif
