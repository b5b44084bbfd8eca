/* io.h - send and receive frames of DPDK's devices.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_DPDK_IO_H
#define SW_PMD_DPDK_IO_H

#include "pmd/dpdk/port_int.h"

extern const struct sw_port_ops sw_dpdk_ops;

/* Drop held frames and count them in @counter. */
void sw_io_drop_held(struct queue *q, uint32_t counter);

#endif
