/* steer.h - bring frames to the lcore that serves their endpoint.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_DPDK_STEER_H
#define SW_PMD_DPDK_STEER_H

#include "pmd/dpdk/port_int.h"

/* Choose the number of queue pairs and the steering method before the device is
 * configured; then install the rules. */
int sw_dpdk_steer_plan(struct port *p);
void sw_dpdk_steer_conf(struct port *p, const struct rte_eth_dev_info *info,
	struct rte_eth_conf *conf);
int sw_dpdk_steer_start(struct port *p);
/* Return the queue for frames to @endpoint. */
uint32_t sw_dpdk_queue_of(const struct port *p, uint32_t endpoint);

#endif
