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
	const char *name;        /* name of this process: letters, digits, -
				    and _ */
	const char *runtime_dir; /* existing, writable directory; open makes a
				    private directory in it and removes it
				    before it returns */
	uint32_t n_lcores;       /* polling lcores, 1 … 127 */
	const char *cpus;        /* "auto": every lcore floats over the CPUs
				    that this process may use; else as many
				    CPUs as lcores, like "2,4-6" */
	uint64_t ports_bytes;    /* sum of sw_dpdk_port_bytes over the ports */
	/* DPDK's telemetry listens at dpdk/NAME/dpdk_telemetry.v2 in
	 * runtime_dir, which open uses itself and does not remove. */
	bool has_telemetry;
	bool has_nics; /* a port is SW_DPDK_PCI: DPDK uses hugepages and the PCI
			  bus */
	const struct sw_log *log; /* kept; DPDK's own threads also call its
				     line() function */
};

/* sw_dpdk_params_init - fill @p with defaults: one lcore, "auto", /tmp.
 * Thread: any. */
void sw_dpdk_params_init(struct sw_dpdk_params *p);

/* sw_dpdk_open - start DPDK; call it once per process, even if it fails.
 * @p     read only during the call, except log
 * @out   set on success; owned by the caller until sw_dpdk_close
 * Without NICs it needs neither root nor hugepages nor a device: memory is
 * anonymous, and DPDK does not scan the PCI bus. The calling thread becomes the
 * control thread.
 * Errors: SW_ECONF name, lcores, cpus, runtime_dir or hugepages; SW_ENOMEM;
 * SW_EPERM the CPU lacks what DPDK needs, or DPDK was already started; SW_EIO.
 */
int sw_dpdk_open(const struct sw_dpdk_params *p, struct sw_dpdk **out);

/* sw_dpdk_close - release DPDK, after all lcores were joined and all ports
 * closed. Sets *@d to NULL; *@d may be NULL. */
void sw_dpdk_close(struct sw_dpdk **d);

/* sw_dpdk_launch - run @fn(@arg) on lcore @lcore_i (0 … n_lcores-1).
 * Errors: SW_EINVAL no such lcore; SW_EBUSY the lcore is running a function. */
int sw_dpdk_launch(
	struct sw_dpdk *d, uint32_t lcore_i, int (*fn)(void *), void *arg);

/* sw_dpdk_join - wait until lcore @lcore_i has returned; returns what its
 * function returned, 0 if none ran.  SW_EINVAL: no such lcore. */
int sw_dpdk_join(struct sw_dpdk *d, uint32_t lcore_i);

#endif
