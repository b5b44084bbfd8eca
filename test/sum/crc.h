/* crc.h - is each kernel of CRC-32C right?
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_SUM_CRC_H
#define SW_TEST_SUM_CRC_H

#include "sum/crc.h"

/* crc_row_is_right - against the definition, bit by bit, and the known check
 * value: all lengths 0 to 20,000, all places in a line, at page ends.
 * @is_quick: a part. */
bool crc_row_is_right(const struct sw_crc *crc, bool is_quick);

/* crc_in_parts - sw_crc32c goes on where it ended. */
bool crc_in_parts(void);

#endif
