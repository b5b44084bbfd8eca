/* crc.h - check the CRC-32C kernels.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_SUM_CRC_H
#define SW_TEST_SUM_CRC_H

#include "sum/crc.h"

/* crc_row_is_right - compare a kernel with the definition, bit by bit, and with
 * the known check value: lengths 0 to 20,000, all places in a line, page ends.
 * @is_quick  try only a part of them */
bool crc_row_is_right(const struct sw_crc *crc, bool is_quick);

/* crc_in_parts - does sw_crc32c continue a CRC correctly? */
bool crc_in_parts(void);

#endif
