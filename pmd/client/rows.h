/* rows.h - rows to copy, of equal length, a stride apart.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A piece of a collective has a row for each part (client_call.c); a contiguous
 * copy is one row. All fields count bytes. */
#ifndef SW_PMD_CLIENT_ROWS_H
#define SW_PMD_CLIENT_ROWS_H

#include <stdint.h>
#include <string.h>

struct sw_rows {
	char *to;
	const char *from;
	uint64_t bytes, n; /* bytes of a row; number of rows */
	uint64_t to_stride, from_stride;
};

static inline void sw_rows_copy(const struct sw_rows *r)
{
	for (uint64_t i = 0; i < r->n; i++)
		memcpy(r->to + i * r->to_stride, r->from + i * r->from_stride,
			r->bytes);
}

#endif
