/* aes.h - check the AES kernels.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_SUM_AES_H
#define SW_TEST_SUM_AES_H

#include "sum/aes.h"

/* aes_row_is_right - compare a kernel with FIPS 197's definition, byte by byte,
 * for all lengths that its loops distinguish, in place and copied, and at page
 * ends. Prints each difference. */
bool aes_row_is_right(const struct sw_aes *aes);

/* aes_is_of_nist - does the definition reproduce SP 800-38A, F.5.1? */
bool aes_is_of_nist(void);

#endif
