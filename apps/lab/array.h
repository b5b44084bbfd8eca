/* array.h - zeroed memory for the laboratory; aborts if memory is short.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_LAB_ARRAY_H
#define SW_APPS_LAB_ARRAY_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* sw_lab_array - return @n zeroed elements of @bytes, at least one, or abort.
 * The caller frees them. */
static inline void *sw_lab_array(uint64_t n, size_t bytes)
{
	void *mem = calloc(n ? n : 1, bytes);

	if (!mem)
		abort();
	return mem;
}

/* sw_lab_lines - do so for elements of whole cache lines, which begin at a
 * line. */
static inline void *sw_lab_lines(uint64_t n, size_t bytes)
{
	size_t all = (n ? n : 1) * bytes;
	void *mem = aligned_alloc(64, all);

	if (!mem)
		abort();
	return memset(mem, 0, all);
}

#endif
