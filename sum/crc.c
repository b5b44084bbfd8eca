/* crc.c - CRC-32C by ISA-L, which picks its own instructions at run time.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <isa-l/crc.h>

#include "sum/sum.h"

/* crc32_iscsi neither inverts before nor after, and takes an int for the
 * length and a pointer that it does not write through. */
uint32_t sw_crc32c(uint32_t crc, const void *p, size_t n)
{
	unsigned char *at = (unsigned char *)(uintptr_t)p;

	crc = ~crc;
	for (; n > INT_MAX; n -= INT_MAX, at += INT_MAX)
		crc = crc32_iscsi(at, INT_MAX, crc);
	return ~crc32_iscsi(at, (int)n, crc);
}
