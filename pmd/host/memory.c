/* memory.c - private memory whose pages are present before it is used.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/host/memory.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "pmd/client/denied.h"
#include "pmd/client/huge.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

/* Write every page once, if the kernel lacks MADV_POPULATE_WRITE. */
static void touch(char *mem, uint64_t bytes)
{
	long page = sysconf(_SC_PAGESIZE);

	for (uint64_t at = 0; at < bytes; at += (uint64_t)page)
		((volatile char *)mem)[at] = 0;
}

static uint64_t whole_pages(uint64_t bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

void *sw_memory_map(uint64_t bytes, int node)
{
	uint64_t size = whole_pages(bytes);
	void *mem = sw_huge_reserve(size);

	if (mem == MAP_FAILED)
		return NULL;
	if (mmap(mem, size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		    0) == MAP_FAILED) {
		munmap(mem, size);
		return NULL;
	}
	/* Bind before the first touch. If the kernel refuses, the memory works
	 * but may lie on a farther node. */
	(void)!sw_numa_bind(mem, size, node);
	madvise(mem, size, MADV_DONTDUMP); /* tensors and sums */
	if (bytes >= SW_HUGE_PAGE_BYTES)
		madvise(mem, size, MADV_HUGEPAGE);
	return mem;
}

int sw_memory_fill(void *mem, uint64_t bytes)
{
	if (!madvise(mem, whole_pages(bytes), MADV_POPULATE_WRITE))
		return 0;
	if (!sw_is_denied(errno))
		return SW_ENOMEM;
	touch(mem, bytes);
	return 0;
}

void *sw_memory_get(uint64_t bytes, int node)
{
	void *mem = sw_memory_map(bytes, node);

	if (!mem || !sw_memory_fill(mem, bytes))
		return mem;
	sw_memory_put(mem, bytes);
	return NULL;
}

void sw_memory_put(void *mem, uint64_t bytes)
{
	if (mem)
		munmap(mem, whole_pages(bytes));
}

uint64_t sw_memory_resident(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long long pages = 0;

	if (!f)
		return 0;
	if (fscanf(f, "%*u %llu", &pages) != 1)
		pages = 0;
	fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}
