/* aes.h - is each kernel of AES right?
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_SUM_AES_H
#define SW_TEST_SUM_AES_H

#include "sum/aes.h"

/* aes_row_is_right - compare a kernel with FIPS 197's definition, byte by byte:
 * all lengths that its loops tell apart, in place and not, at page ends.
 * Prints what differs. */
bool aes_row_is_right(const struct sw_aes *aes);

/* aes_is_of_nist - the definition has the bytes of SP 800-38A, F.5.1. */
bool aes_is_of_nist(void);

#endif
