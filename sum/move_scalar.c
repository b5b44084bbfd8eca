/* move_scalar.c - the bench's yardstick for level scalar: moves of 16 bytes.
 * SPDX-License-Identifier: BSD-3-Clause */
#define LEVEL      sw_sum_move_scalar
#define LEVEL_CODE SW_SUM_SCALAR
#define LEVEL_NAME "scalar"
#define VB         16

#include "sum/move.inc.h"
