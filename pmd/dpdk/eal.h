/* eal.h - start DPDK as an ordinary user, run lcores, leave nothing behind.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Lifecycle: 1. sw_dpdk_params_init  2. sw_dpdk_open  3. open ports (port.h)
 * 4. sw_dpdk_launch, sw_dpdk_join  5. close ports  6. sw_dpdk_close.
 */
#ifndef SW_PMD_DPDK_EAL_H
#define SW_PMD_DPDK_EAL_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/log.h"

struct sw_dpdk; /* DPDK of this process */

struct sw_dpdk_params {
	const char *name;         /* name of this process: letters, digits, -
				     and _ */
	const char *runtime_dir;  /* existing, writable; a private directory is
				     made there and gone when open returns */
	uint32_t n_lcores;        /* polling lcores, 1 … 127 */
	const char *cpus;         /* "auto": every lcore floats over the CPUs
				     that this process may use; else as many
				     CPUs as lcores, like "2,4-6" */
	uint64_t ports_bytes;     /* sum of sw_dpdk_port_bytes over the ports */
	bool has_telemetry;       /* DPDK's telemetry listens at its
				     dpdk/NAME/dpdk_telemetry.v2; the directory
				     is used as it is, and stays */
	bool has_nics;            /* a port is SW_DPDK_PCI: memory is hugepages
				     then, and the PCI bus is there */
	const struct sw_log *log; /* kept; its line() is called from DPDK's own
				     threads too */
};

/* sw_dpdk_params_init - fill @p with defaults: one lcore, "auto", /tmp.
 * Thread: any. */
void sw_dpdk_params_init(struct sw_dpdk_params *p);

/* sw_dpdk_open - start DPDK; once per process, also after a failure.
 * @p     read only during the call, except log
 * @out   set on success; owned by the caller until sw_dpdk_close
 * Needs no root, hugepage or device without NICs: memory is anonymous, buses
 * are not scanned.  The calling thread becomes the control thread.
 * Errors: SW_ECONF name, lcores, cpus, runtime_dir or hugepages; SW_ENOMEM;
 * SW_EPERM the CPU lacks what DPDK needs, or DPDK was already started; SW_EIO.
 */
int sw_dpdk_open(const struct sw_dpdk_params *p, struct sw_dpdk **out);

/* sw_dpdk_close - stop DPDK; all lcores joined and ports closed before.  Sets
 * *@d to NULL; *@d may be NULL. */
void sw_dpdk_close(struct sw_dpdk **d);

/* sw_dpdk_launch - run @fn(@arg) on lcore @lcore_i (0 … n_lcores-1).
 * Errors: SW_EINVAL no such lcore; SW_EBUSY it runs something. */
int sw_dpdk_launch(
	struct sw_dpdk *d, uint32_t lcore_i, int (*fn)(void *), void *arg);

/* sw_dpdk_join - wait until lcore @lcore_i has returned; returns what its
 * function returned, 0 if none ran.  SW_EINVAL: no such lcore. */
int sw_dpdk_join(struct sw_dpdk *d, uint32_t lcore_i);

#endif
