/* arena.h - a page full of canaries between two inaccessible pages.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_SUM_ARENA_H
#define SW_TEST_SUM_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Place of a buffer: 0 to 63 bytes beyond a multiple of 64 in the middle of the
 * page, or at an end of the page. */
enum { AT_START = -1, AT_END = -2 };

struct arena {
	uint8_t *page; /* ARENA_BYTES; between uses all are CANARY */
};

enum { ARENA_BYTES = 4096, CANARY = 0xa5 };

/* arena_open - map the pages; returns 0, or -1 without memory. */
int arena_open(struct arena *a);
void arena_close(struct arena *a);

/* arena_place - copy @bytes (<= 3,000) from @data to @place in the page and
 * return the copy's address. */
uint8_t *arena_place(
	struct arena *a, int place, const void *data, size_t bytes);

/* arena_is_clean - are all canaries outside [@p, @p + bytes) intact? */
bool arena_is_clean(const struct arena *a, const uint8_t *p, size_t bytes);

/* arena_wipe - fill the page with canaries again. */
void arena_wipe(struct arena *a);

#endif
