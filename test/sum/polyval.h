/* polyval.h - check the POLYVAL kernels.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_SUM_POLYVAL_H
#define SW_TEST_SUM_POLYVAL_H

#include "sum/polyval.h"

/* polyval_row_is_right - compare a kernel with the definition, bit by bit, and
 * with a vector of RFC 8452: all lengths up to 2,200 and some up to 20,000, all
 * places in a line, page ends, near and far. @is_quick  try only a part of
 * them */
bool polyval_row_is_right(const struct sw_polyval *polyval, bool is_quick);

/* polyval_is_of_rfc - does dot return the values of RFC 8452, appendix A? */
bool polyval_is_of_rfc(void);

#endif
