/* bits.h - a set of small integers in plain words, 64 a word.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The caller owns the words: all 0 at first, enough for the greatest member.
 * To find the lowest member fast, use bitmap.h. */
#ifndef SW_ENGINE_BASE_BITS_H
#define SW_ENGINE_BASE_BITS_H

#include <stdbool.h>
#include <stdint.h>

static inline bool sw_bits_has(const uint64_t *set, uint32_t i)
{
	return set[i / 64] >> i % 64 & 1;
}

static inline void sw_bits_add(uint64_t *set, uint32_t i)
{
	set[i / 64] |= 1ULL << i % 64;
}

/* sw_bits_put - add @i, or remove it. */
static inline void sw_bits_put(uint64_t *set, uint32_t i, bool is_in)
{
	uint64_t bit = 1ULL << i % 64;

	set[i / 64] = is_in ? set[i / 64] | bit : set[i / 64] & ~bit;
}

#endif
