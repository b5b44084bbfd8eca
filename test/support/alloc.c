/* alloc.c - replace the allocator: count its calls, make one of them fail.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "test/support/alloc.h"

#include <stdatomic.h>
#include <stddef.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_aligned_alloc(size_t align, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t n);
void __wrap_free(void *p);

/* The wrapped allocator serves the whole process, so its counters are
 * global. */
static _Atomic uint64_t n_calls, n_bytes;
static _Atomic int64_t n_live;
static _Atomic uint32_t countdown;
static _Atomic bool has_failed;

void alloc_fail_at(uint32_t nth)
{
	countdown = nth;
	has_failed = false;
}

bool alloc_has_failed(void)
{
	return has_failed;
}

uint64_t alloc_calls(void)
{
	return n_calls;
}

uint64_t alloc_bytes(void)
{
	return n_bytes;
}

int64_t alloc_live(void)
{
	return n_live;
}

static bool may_succeed(void)
{
	n_calls++;
	if (!countdown || --countdown)
		return true;
	has_failed = true;
	return false;
}

static void *counted(void *p, size_t n)
{
	n_live += p != NULL;
	n_bytes += p ? n : 0;
	return p;
}

void *__wrap_malloc(size_t n)
{
	return may_succeed() ? counted(__real_malloc(n), n) : NULL;
}

void *__wrap_calloc(size_t n, size_t size)
{
	return may_succeed() ? counted(__real_calloc(n, size), n * size) : NULL;
}

void *__wrap_aligned_alloc(size_t align, size_t n)
{
	return may_succeed() ? counted(__real_aligned_alloc(align, n), n)
			     : NULL;
}

void __wrap_free(void *p)
{
	n_live -= p != NULL;
	__real_free(p);
}
