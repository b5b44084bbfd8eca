/* bitmap.h - a set of small integers that finds its lowest member in O(1).
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A tree of 64-bit words: a bit of an upper word says that the word below it is
 * not zero.  Up to 64^4 members.  The engine keeps pending work in such sets,
 * as state instead of a queue: adding a member twice is adding it once, a set
 * cannot overflow, and the lowest index is the most urgent. */
#ifndef SW_ENGINE_BASE_BITMAP_H
#define SW_ENGINE_BASE_BITMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SW_BITMAP_LEVELS = 4,
	SW_BITMAP_MAX = 1 << 24, /* members that these levels hold */
};

#define SW_BITMAP_NONE UINT32_MAX

struct sw_bitmap {
	uint64_t *level[SW_BITMAP_LEVELS]; /* [0] holds the members */
	uint32_t n_levels;
	uint32_t n; /* members are 0 … n - 1 */
};

/* sw_bitmap_words - return the number of words that sw_bitmap_init needs for
 * @n. */
static inline size_t sw_bitmap_words(uint32_t n)
{
	size_t sum = 0;

	do {
		n = n / 64 + (n % 64 != 0);
		sum += n;
	} while (n > 1);
	return sum;
}

/* sw_bitmap_init - init an empty set over 0 … @n-1 (1 <= n <= SW_BITMAP_MAX) in
 * @words: sw_bitmap_words(n) zeroed words, which the caller owns.  Returns the
 * first word after the set. */
static inline uint64_t *sw_bitmap_init(
	struct sw_bitmap *b, uint32_t n, uint64_t *words)
{
	b->n = n;
	b->n_levels = 0;
	do {
		n = n / 64 + (n % 64 != 0);
		b->level[b->n_levels++] = words;
		words += n;
	} while (n > 1);
	return words;
}

/* Functions that end in _in work on a row of equal sets: on the set that starts
 * @at words after @b, the first set of the row. */

static inline bool sw_bitmap_has_in(
	const struct sw_bitmap *b, size_t at, uint32_t i)
{
	return b->level[0][at + i / 64] >> (i % 64) & 1;
}

static inline bool sw_bitmap_has(const struct sw_bitmap *b, uint32_t i)
{
	return sw_bitmap_has_in(b, 0, i);
}

/* sw_bitmap_word - return the word of @i, for callers that walk a row of sets.
 */
static inline uint64_t *sw_bitmap_word(const struct sw_bitmap *b, uint32_t i)
{
	return &b->level[0][i / 64];
}

/* Add in two steps; the second is rarely needed.  The first step sets the bit
 * and returns the word's old value.  If the old value was zero, the second step
 * updates the words above and returns whether the set was empty. */
static inline uint64_t sw_bitmap_add_word_in(
	const struct sw_bitmap *b, size_t at, uint32_t i)
{
	uint64_t *word = &b->level[0][at + i / 64], before = *word;

	*word = before | 1ULL << (i % 64);
	return before;
}

static inline bool sw_bitmap_add_above_in(
	const struct sw_bitmap *b, size_t at, uint32_t i)
{
	for (uint32_t l = 1; l < b->n_levels; l++) {
		uint64_t *word = &b->level[l][at + (i /= 64) / 64];
		uint64_t before = *word;

		*word = before | 1ULL << (i % 64);
		if (before)
			return false;
	}
	return true;
}

static inline void sw_bitmap_add(struct sw_bitmap *b, uint32_t i)
{
	if (!sw_bitmap_add_word_in(b, 0, i))
		sw_bitmap_add_above_in(b, 0, i);
}

/* sw_bitmap_add_run - add @from … @from + n - 1, @n at least 1. */
static inline void sw_bitmap_add_run(
	struct sw_bitmap *b, uint32_t from, uint32_t n)
{
	for (uint32_t m; n; from += m, n -= m) {
		uint64_t *word = &b->level[0][from / 64], before = *word;

		m = 64 - from % 64 < n ? 64 - from % 64 : n;
		*word = before | ~0ULL >> (64 - m) << (from % 64);
		if (!before)
			sw_bitmap_add_above_in(b, 0, from);
	}
}

/* Remove in two steps.  The first step clears the bit and returns the word.  If
 * the word is zero, the second step updates the words above and returns whether
 * the set is empty. */
static inline uint64_t sw_bitmap_remove_word_in(
	const struct sw_bitmap *b, size_t at, uint32_t i)
{
	return b->level[0][at + i / 64] &= ~(1ULL << (i % 64));
}

static inline bool sw_bitmap_remove_above_in(
	const struct sw_bitmap *b, size_t at, uint32_t i)
{
	for (uint32_t l = 1; l < b->n_levels; l++) {
		i /= 64;
		if (b->level[l][at + i / 64] &= ~(1ULL << (i % 64)))
			return false;
	}
	return true;
}

static inline void sw_bitmap_remove(struct sw_bitmap *b, uint32_t i)
{
	if (!sw_bitmap_remove_word_in(b, 0, i))
		sw_bitmap_remove_above_in(b, 0, i);
}

static inline bool sw_bitmap_is_empty_in(const struct sw_bitmap *b, size_t at)
{
	return !b->level[b->n_levels - 1][at];
}

static inline bool sw_bitmap_is_empty(const struct sw_bitmap *b)
{
	return sw_bitmap_is_empty_in(b, 0);
}

/* sw_bitmap_first - return the lowest member; SW_BITMAP_NONE: empty.
 * sw_bitmap_least_in - return the lowest member of a nonempty set. */
static inline uint32_t sw_bitmap_least_in(const struct sw_bitmap *b, size_t at)
{
	uint32_t i = 0;

	for (uint32_t l = b->n_levels - 1; l > 0; l--)
		i = i * 64 + (uint32_t)__builtin_ctzll(b->level[l][at + i]);
	return i * 64 + (uint32_t)__builtin_ctzll(b->level[0][at + i]);
}

static inline uint32_t sw_bitmap_first_in(const struct sw_bitmap *b, size_t at)
{
	return sw_bitmap_is_empty_in(b, at) ? SW_BITMAP_NONE
					    : sw_bitmap_least_in(b, at);
}

static inline uint32_t sw_bitmap_first(const struct sw_bitmap *b)
{
	return sw_bitmap_first_in(b, 0);
}

/* sw_bitmap_next - return the lowest member >= @from, or SW_BITMAP_NONE. */
static inline uint32_t sw_bitmap_next(const struct sw_bitmap *b, uint32_t from)
{
	uint32_t i = from, n = b->n;

	for (uint32_t l = 0; l < b->n_levels && i < n; l++) {
		uint64_t word = b->level[l][i / 64] >> (i % 64);

		if (word) {
			i += (uint32_t)__builtin_ctzll(word);
			while (l-- > 0)
				i = i * 64 +
				    (uint32_t)__builtin_ctzll(b->level[l][i]);
			return i;
		}
		i = i / 64 + 1; /* the words after this one, a level up */
		n = n / 64 + (n % 64 != 0);
	}
	return SW_BITMAP_NONE;
}

/* sw_bitmap_turn - return the next member in turn, after the last call's
 * member; SW_BITMAP_NONE if the set is empty.  *@at holds the position between
 * calls; start with 0. */
static inline uint32_t sw_bitmap_turn(const struct sw_bitmap *b, uint32_t *at)
{
	uint32_t i = sw_bitmap_next(b, *at);

	if (i == SW_BITMAP_NONE)
		i = sw_bitmap_first(b);
	*at = i + 1;
	return i;
}

/* sw_bitmap_add_all - add the members of @from, a set of the same size. */
static inline void sw_bitmap_add_all(
	struct sw_bitmap *b, const struct sw_bitmap *from)
{
	for (size_t i = 0; i < sw_bitmap_words(b->n); i++)
		b->level[0][i] |= from->level[0][i];
}

#endif
