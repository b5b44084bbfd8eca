/* cpus.h - convert a list of CPUs to DPDK's --lcores argument.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_DPDK_CPUS_H
#define SW_PMD_DPDK_CPUS_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/log.h"

/* sw_cpus_to_lcores - write "--lcores=…": lcore 0, the control thread, on all
 * CPUs that this process may use; lcores 1 … @n_lcores on the CPUs of @cpus,
 * one each, in the order of the list, or ("auto") on all allowed ones.
 * Errors: SW_ECONF @cpus does not list @n_lcores different allowed CPUs, or the
 * argument exceeds @size; SW_EIO the allowed CPUs cannot be read, or sysfs does
 * not describe them. */
int sw_cpus_to_lcores(const char *cpus, uint32_t n_lcores,
	const struct sw_log *log, char *out, size_t size);

/* sw_cpus_at - return the CPU of lcore @i (0 … n_lcores - 1) in the list @cpus;
 * -1 if the lcore floats or the list is invalid or shorter. */
int sw_cpus_at(const char *cpus, uint32_t i);

#endif
