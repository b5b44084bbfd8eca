/* fuzz_alloc.c - an allocator for fuzzers that reuses large blocks.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * It replaces test/support/alloc.c. The engine's tables are megabytes, and
 * AddressSanitizer would map and unmap them for each input, which takes longer
 * than the input itself. So this allocator reuses a free block of the same
 * size, and poisons the block while it is free.
 */
#include <sanitizer/asan_interface.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "test/support/alloc.h"

enum { LARGE = 64 << 10, BLOCKS = 64 };

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_aligned_alloc(size_t align, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t n);
void __wrap_free(void *p);

static struct block {
	void *p;
	size_t n;
	bool is_used;
} blocks[BLOCKS];
static int64_t n_live;

int64_t alloc_live(void)
{
	return n_live;
}

/* Return a free block of @n bytes or an empty entry; NULL: there is neither. */
static struct block *find(size_t n)
{
	struct block *empty = NULL;

	for (struct block *b = blocks; b < blocks + BLOCKS; b++) {
		if (b->p && b->n == n && !b->is_used)
			return b;
		if (!b->p)
			empty = b;
	}
	return empty;
}

/* Allocate any size, unlike aligned_alloc. */
static void *aligned(size_t n)
{
	void *p;

	if (posix_memalign(&p, 64, n))
		abort();
	return p;
}

static void *take(size_t n)
{
	struct block *b = find(n);

	n_live++;
	if (!b)
		return aligned(n);
	if (!b->p)
		*b = (struct block){.p = aligned(n), .n = n};
	__asan_unpoison_memory_region(b->p, n);
	b->is_used = true;
	return b->p;
}

void *__wrap_malloc(size_t n)
{
	if (n >= LARGE)
		return take(n);
	n_live++;
	return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	if (n < LARGE && size < LARGE && n * size >= LARGE)
		return memset(take(n * size), 0, n * size);
	n_live++;
	return __real_calloc(n, size);
}

void *__wrap_aligned_alloc(size_t align, size_t n)
{
	if (align <= 64 && n >= LARGE)
		return take(n);
	n_live++;
	return __real_aligned_alloc(align, n);
}

void __wrap_free(void *p)
{
	n_live -= p != NULL;
	for (struct block *b = blocks; p && b < blocks + BLOCKS; b++)
		if (b->p == p) {
			__asan_poison_memory_region(p, b->n);
			b->is_used = false;
			return;
		}
	__real_free(p);
}
