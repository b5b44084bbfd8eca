/* pool.h - the buffers of a port.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_DPDK_POOL_H
#define SW_PMD_DPDK_POOL_H

#include "pmd/dpdk/port_int.h"

/* Return the NUMA node of the device if DPDK has memory there, else
 * SOCKET_ID_ANY; make and free the buffers of all queue pairs. */
int sw_dpdk_port_node(const struct port *p);
int sw_dpdk_pools_open(struct port *p);
void sw_dpdk_pools_close(struct port *p);

#endif
