/* kernels.h - kernels that touch no byte, for frames without payloads.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_LAB_SIM_KERNELS_H
#define SW_APPS_LAB_SIM_KERNELS_H

#include "sum/sum.h"

/* sw_sim_kernels - return a table as sw_sum_best returns it. */
struct sw_sum sw_sim_kernels(void);

#endif
