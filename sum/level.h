/* level.h - inside sum/ only: the kernels of each level, what the CPU has.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_SUM_LEVEL_H
#define SW_SUM_LEVEL_H

#include "sum/sum.h"

extern const struct sw_sum sw_sum_scalar;
extern const struct sw_sum sw_sum_avx2;
extern const struct sw_sum sw_sum_avx512;

/* The same loads and stores without the arithmetic, for the bench. */
extern const struct sw_sum sw_sum_move_scalar;
extern const struct sw_sum sw_sum_move_avx2;
extern const struct sw_sum sw_sum_move_avx512;

/* Integers are scaled once per job at most: all levels share the reference. */
void sw_sum_scale_u8(void *dst, const void *src, double factor, size_t n);
void sw_sum_scale_i8(void *dst, const void *src, double factor, size_t n);
void sw_sum_scale_i32(void *dst, const void *src, double factor, size_t n);
void sw_sum_scale_i64(void *dst, const void *src, double factor, size_t n);

#endif
