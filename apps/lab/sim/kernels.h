/* kernels.h - kernels that do nothing, for frames without payloads.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_LAB_SIM_KERNELS_H
#define SW_APPS_LAB_SIM_KERNELS_H

#include "sum/sum.h"

/* sw_sim_kernels - return such kernels, as sw_sum_best returns real ones. */
struct sw_sum sw_sim_kernels(void);

#endif
