/* alloc.h - the allocator as tests want it: counted, failing on demand.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The linker sends malloc, calloc, aligned_alloc and free of everything that a
 * unit test links statically through alloc.c (--wrap).
 */
#ifndef SW_TEST_SUPPORT_ALLOC_H
#define SW_TEST_SUPPORT_ALLOC_H

#include <stdbool.h>
#include <stdint.h>

/* alloc_fail_at - the @nth allocation from now returns NULL; 0: none does. */
void alloc_fail_at(uint32_t nth);

/* alloc_has_failed - did it come to that? */
bool alloc_has_failed(void);

/* alloc_calls - allocations since the start. */
uint64_t alloc_calls(void);

/* alloc_bytes - return the bytes requested since the start, freed or not. */
uint64_t alloc_bytes(void);

/* alloc_live - blocks that were taken and not given back. */
int64_t alloc_live(void);

#endif
