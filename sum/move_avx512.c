/* move_avx512.c - the bench's yardstick for level avx512: moves of 64 bytes.
 * SPDX-License-Identifier: BSD-3-Clause */
#define LEVEL      sw_sum_move_avx512
#define LEVEL_CODE SW_SUM_AVX512
#define LEVEL_NAME "avx512"
#define VB         64

#include "sum/move.inc.h"
