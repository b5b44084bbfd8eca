/* crc.c - the table of CRC-32C's kernels: what each needs, which one to take.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <string.h>
#include <isa-l/crc.h>

#include "sum/crc.h"
#include "sum/sum.h"

static bool has_any(void)
{
	return true;
}

/* A new kernel is one file and one row; the best one last. */
static const struct {
	const struct sw_crc *crc;
	bool (*runs)(void);
} rows[] = {
	{&sw_crc_scalar, has_any},
};

enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

const struct sw_crc *sw_crc_row(uint32_t i, bool *runs)
{
	if (i >= N_ROWS)
		return NULL;
	if (runs)
		*runs = rows[i].runs();
	return rows[i].crc;
}

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

uint32_t sw_crc32c_copy(uint32_t crc, void *dst, const void *src, size_t n)
{
	memcpy(dst, src, n);
	return sw_crc32c(crc, src, n);
}
