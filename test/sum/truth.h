/* truth.h - check the reference itself, the fold kernels and the table.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_SUM_TRUTH_H
#define SW_TEST_SUM_TRUTH_H

#include <stdbool.h>

#include "sum/sum.h"

/* truth_f16, truth_bf16 - compare widening of every number, and rounding around
 * every number and every tie, with arithmetic in double. */
bool truth_f16(const struct sw_sum *sum);
bool truth_bf16(const struct sw_sum *sum);

/* truth_cases - check additions, extrema and scalings with known results. */
bool truth_cases(const struct sw_sum *sum);

/* truth_fold - check that a wrong CRC leaves the accumulator unchanged. */
bool truth_fold(const struct sw_sum *sum);

/* truth_table - check that the rows are in order, have their names, and end
 * with the best one. */
bool truth_table(void);

#endif
