/* data.h - test data: every pair of special values, then random bits.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_SUM_DATA_H
#define SW_TEST_SUM_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "sum/dtype.h"

enum { POOL = 3072 }; /* elements of a pool: 48 x 48 pairs, 768 random */

/* pool_fill - fill @p with POOL elements of @dtype.
 * @side  0: element i is special i / 48 % 48; k > 0: special (i + k - 1) % 48,
 * so that pools of sides 0 and 1 contain every pair of specials */
void pool_fill(void *p, enum sw_dtype dtype, uint32_t side);

/* random_u64 - return the next number of a sequence that the initial *@state
 * determines. */
uint64_t random_u64(uint64_t *state);

#endif
