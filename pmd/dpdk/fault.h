/* fault.h - faults injected into received frames, for tests.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_DPDK_FAULT_H
#define SW_PMD_DPDK_FAULT_H

#include "pmd/dpdk/port_int.h"

/* Inject faults into frames received on @q; stop it; return whether @p asks for
 * faults. */
int sw_dpdk_faults_open(struct queue *q);
void sw_dpdk_faults_close(struct queue *q);
bool sw_dpdk_faults_is_set(const struct sw_dpdk_port_params *p);

#endif
