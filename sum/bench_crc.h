/* bench_crc.h - ISA-L's CRC-32C, for benchmarks only.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_SUM_BENCH_CRC_H
#define SW_SUM_BENCH_CRC_H

#include "sum/crc.h"

/* Does not invert the CRC before or after; writes nothing. */
typedef unsigned int sw_isal_fn(unsigned char *p, int n, unsigned int crc);

struct sw_isal {
	void *library;
	sw_isal_fn *best, *narrow;
};

/* sw_isal_open - load ISA-L. Return false if it or its functions are missing.
 * Call sw_isal_close in either case. */
bool sw_isal_open(struct sw_isal *isal);
void sw_isal_close(struct sw_isal *isal);

/* sw_isal_beside - return the function that ISA-L would use on the narrowest
 * CPU that supports @crc; NULL: none. */
sw_isal_fn *sw_isal_beside(
	const struct sw_isal *isal, const struct sw_crc *crc);

#endif
