/* zeros.h - memory whose pages are present before an lcore uses it.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_BASE_ZEROS_H
#define SW_ENGINE_BASE_ZEROS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* sw_zeros_new - return @bytes of zeros, to be released by free; NULL: no
 * memory.  Unless @is_lazy, writes every page, so that later users take no page
 * faults.  Thread: control. */
static inline void *sw_zeros_new(size_t bytes, bool is_lazy)
{
	enum { PAGE = 4096 };
	char *mem = calloc(1, bytes);

	if (is_lazy)
		return mem;
	for (size_t at = 0; mem && at < bytes; at += PAGE)
		((volatile char *)mem)[at] = 0;
	if (mem && bytes) /* the last page, for any alignment */
		((volatile char *)mem)[bytes - 1] = 0;
	return mem;
}

#endif
