/* truth.h - is the reference itself right?  And fold, the table.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_SUM_TRUTH_H
#define SW_TEST_SUM_TRUTH_H

#include <stdbool.h>

#include "sum/sum.h"

/* truth_f16, truth_bf16 - widening of every number and rounding around every
 * number and every tie, against arithmetic in double. */
bool truth_f16(const struct sw_sum *sum);
bool truth_bf16(const struct sw_sum *sum);

/* truth_cases - additions, extrema and scalings with a known result. */
bool truth_cases(const struct sw_sum *sum);

/* truth_fold - a wrong CRC leaves the accumulator alone. */
bool truth_fold(const struct sw_sum *sum);

/* truth_table - rows in order, found by name, the best one last. */
bool truth_table(void);

#endif
