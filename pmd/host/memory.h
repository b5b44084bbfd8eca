/* memory.h - private memory whose pages are present before it is used.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_HOST_MEMORY_H
#define SW_PMD_HOST_MEMORY_H

#include <stdint.h>

#include "pmd/host/nodes.h"

/* sw_memory_get - return @bytes of zeros, page-aligned, in 2 MB pages if the
 * kernel has them (no privilege needed). All pages are present, because a first
 * touch on the packet path would be a page fault. NULL: not enough memory.
 * Owned by the caller until sw_memory_put. Thread: any.
 * @node  NUMA node for the pages, or SW_NUMA_ANY (nodes.h) */
void *sw_memory_get(uint64_t bytes, int node);

/* sw_memory_map, sw_memory_fill - do the same in steps, because making
 * gigabytes of pages present takes seconds: map zeros without pages, then make
 * the pages of @bytes from the page-aligned @mem present. sw_memory_fill
 * returns 0 or SW_ENOMEM. */
void *sw_memory_map(uint64_t bytes, int node);
int sw_memory_fill(void *mem, uint64_t bytes);

/* sw_memory_put - free the memory that sw_memory_get(@bytes, …) returned. */
void sw_memory_put(void *mem, uint64_t bytes);

/* sw_memory_resident - return how many bytes of this process are in memory. */
uint64_t sw_memory_resident(void);

#endif
