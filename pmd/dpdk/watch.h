/* watch.h - watch a port's link, interface and socket.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_DPDK_WATCH_H
#define SW_PMD_DPDK_WATCH_H

#include "pmd/dpdk/port_int.h"

/* Watch a started port, until stopped. */
int sw_dpdk_watch_start(struct port *p);
void sw_dpdk_watch_stop(struct port *p);

#endif
