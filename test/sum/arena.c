/* arena.c - a page full of canaries between two inaccessible pages.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include <sys/mman.h>

#include "test/sum/arena.h"

int arena_open(struct arena *a)
{
	uint8_t *p = mmap(NULL, 3 * ARENA_BYTES, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return -1;
	if (mprotect(p + ARENA_BYTES, ARENA_BYTES, PROT_READ | PROT_WRITE)) {
		munmap(p, 3 * ARENA_BYTES);
		return -1;
	}
	a->page = p + ARENA_BYTES;
	arena_wipe(a);
	return 0;
}

void arena_close(struct arena *a)
{
	munmap(a->page - ARENA_BYTES, 3 * ARENA_BYTES);
}

uint8_t *arena_place(struct arena *a, int place, const void *data, size_t bytes)
{
	uint8_t *p = a->page + 512 + place;

	if (place == AT_START)
		p = a->page;
	else if (place == AT_END)
		p = a->page + ARENA_BYTES - bytes;
	memcpy(p, data, bytes);
	return p;
}

static bool is_canary(const uint8_t *p, size_t bytes)
{
	return !bytes || (*p == CANARY && !memcmp(p, p + 1, bytes - 1));
}

bool arena_is_clean(const struct arena *a, const uint8_t *p, size_t bytes)
{
	size_t before = (size_t)(p - a->page);

	return is_canary(a->page, before) &&
	       is_canary(p + bytes, ARENA_BYTES - before - bytes);
}

void arena_wipe(struct arena *a)
{
	memset(a->page, CANARY, ARENA_BYTES);
}
