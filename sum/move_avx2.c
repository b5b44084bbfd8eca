/* move_avx2.c - the bench's yardstick for level avx2: moves of 32 bytes.
 * SPDX-License-Identifier: BSD-3-Clause */
#define LEVEL      sw_sum_move_avx2
#define LEVEL_CODE SW_SUM_AVX2
#define LEVEL_NAME "avx2"
#define VB         32

#include "sum/move.inc.h"
