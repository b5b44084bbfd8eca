/* device.h - a port's DPDK device and its capabilities.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_DPDK_DEVICE_H
#define SW_PMD_DPDK_DEVICE_H

#include "pmd/dpdk/port_int.h"

/* Make DPDK's device, which determines queue pairs and limits; open it with
 * buffers; start it; close it. All read @p->params. Thread: DPDK's interrupt
 * thread, or any while the port is not in use. */
int sw_dpdk_device_make(struct port *p);
int sw_dpdk_device_open(struct port *p);
int sw_dpdk_device_start(struct port *p);
void sw_dpdk_device_close(struct port *p);

/* Read the capabilities of @p's device into @p. */
int sw_dpdk_caps_take(struct port *p);

#endif
