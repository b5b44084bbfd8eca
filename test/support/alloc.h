/* alloc.h - replace the allocator: count its calls, make one of them fail.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The linker option --wrap redirects malloc, calloc, aligned_alloc and free to
 * alloc.c, for all code that a unit test links statically.
 */
#ifndef SW_TEST_SUPPORT_ALLOC_H
#define SW_TEST_SUPPORT_ALLOC_H

#include <stdbool.h>
#include <stdint.h>

/* alloc_fail_at - let the @nth allocation from now return NULL; 0: let none
 * fail. */
void alloc_fail_at(uint32_t nth);

/* alloc_has_failed - has alloc_fail_at's allocation failed yet? */
bool alloc_has_failed(void);

/* alloc_calls - return the number of allocations since the start. */
uint64_t alloc_calls(void);

/* alloc_bytes - return the bytes requested since the start, freed or not. */
uint64_t alloc_bytes(void);

/* alloc_live - return the number of allocated blocks that are not yet freed. */
int64_t alloc_live(void);

#endif
