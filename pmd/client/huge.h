/* huge.h - addresses at which huge pages fit.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_CLIENT_HUGE_H
#define SW_PMD_CLIENT_HUGE_H

#include <stdint.h>
#include <sys/mman.h>

#define SW_HUGE_PAGE_BYTES (UINT64_C(2) << 20)

/* sw_huge_reserve - reserve @bytes of address space, whole pages, aligned to a
 * huge page: map more, then cut the ends off.  The space is inaccessible until
 * the caller maps memory there (MAP_FIXED).  Returns MAP_FAILED if there is no
 * room; the caller unmaps the space. */
static inline void *sw_huge_reserve(uint64_t bytes)
{
	uint64_t more = bytes + SW_HUGE_PAGE_BYTES, before;
	char *raw = (char *)mmap(NULL, more, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (raw == MAP_FAILED)
		return MAP_FAILED;
	before = -(uintptr_t)raw % SW_HUGE_PAGE_BYTES;
	if (before)
		munmap(raw, before);
	munmap(raw + before + bytes, SW_HUGE_PAGE_BYTES - before);
	return raw + before;
}

#endif
