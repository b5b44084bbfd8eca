/* params.h - check the parameters of a port.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_DPDK_PARAMS_H
#define SW_PMD_DPDK_PARAMS_H

#include "pmd/dpdk/port_int.h"

/* Check parameters; find the interface that has the address of a kernel port,
 * into @p and @name; read an interface's index and largest payload class. */
int sw_dpdk_params_check(
	const struct sw_dpdk_port_params *p, const struct sw_log *log);
int sw_dpdk_address_find(struct sw_dpdk_port_params *p,
	const struct sw_log *log, char *name, size_t size);
int sw_dpdk_interface_check(const struct sw_dpdk_port_params *p,
	const struct sw_log *log, uint32_t *if_index, uint32_t *payload);

#endif
