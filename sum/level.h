/* level.h - inside sum/ only: the kernels of each level, and CPU features.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef SW_SUM_LEVEL_H
#define SW_SUM_LEVEL_H

#include "sum/sum.h"

extern const struct sw_sum sw_sum_scalar;
extern const struct sw_sum sw_sum_avx2;
extern const struct sw_sum sw_sum_avx512;

/* The same loads and stores without arithmetic, for the bench. */
extern const struct sw_sum sw_sum_move_scalar;
extern const struct sw_sum sw_sum_move_avx2;
extern const struct sw_sum sw_sum_move_avx512;

#endif
