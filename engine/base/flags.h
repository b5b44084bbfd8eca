/* flags.h - a set of small numbers that one thread raises and another takes.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The set announces changes of many objects, each any number of times: a number
 * is in the set once, so the set never overflows.  The consumer takes a number,
 * then reads a word with the object's current state.  The set works between two
 * lcores, or between two processes, one of which may be hostile: for all writes
 * of the peer, a taken number is below SW_FLAGS, and taking a number
 * terminates.
 *
 * No function here blocks, allocates or makes a system call. */
#ifndef SW_ENGINE_BASE_FLAGS_H
#define SW_ENGINE_BASE_FLAGS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { SW_FLAGS = 4096 }; /* SW_FLAGS itself: none */

/* An empty set is all zeros. */
struct sw_flags {
	_Atomic uint64_t words; /* words that may hold numbers */
	_Atomic uint64_t bits[SW_FLAGS / 64];
};

/* sw_flags_raise - add @i; the thread that takes @i sees all earlier writes of
 * the caller. */
static inline void sw_flags_raise(struct sw_flags *f, uint32_t i)
{
	atomic_fetch_or(&f->bits[i / 64], UINT64_C(1) << i % 64);
	atomic_fetch_or(&f->words, UINT64_C(1) << i / 64);
}

static inline bool sw_flags_are_down(const struct sw_flags *f)
{
	return !atomic_load(&f->words);
}

/* Take the lowest number of a word.  SW_FLAGS: the word is empty; later calls
 * skip it until a number is raised in it. */
static inline uint32_t sw_flags_take_of(struct sw_flags *f, uint32_t word)
{
	uint64_t bits = atomic_load(&f->bits[word]);

	if (!bits) {
		atomic_fetch_and(&f->words, ~(UINT64_C(1) << word));
		/* A number may have been raised meanwhile. */
		bits = atomic_load(&f->bits[word]);
		if (!bits)
			return SW_FLAGS;
		atomic_fetch_or(&f->words, UINT64_C(1) << word);
	}
	atomic_fetch_and(&f->bits[word], ~(bits & -bits));
	return 64 * word + (uint32_t)__builtin_ctzll(bits);
}

/* sw_flags_take - take the lowest number; SW_FLAGS if the set is empty. */
static inline uint32_t sw_flags_take(struct sw_flags *f)
{
	uint64_t words = atomic_load_explicit(&f->words, memory_order_relaxed);
	uint32_t i = SW_FLAGS;

	for (; words && i == SW_FLAGS; words &= words - 1)
		i = sw_flags_take_of(f, (uint32_t)__builtin_ctzll(words));
	return i;
}

#endif
