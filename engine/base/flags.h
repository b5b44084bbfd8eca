/* flags.h - a set of small numbers that one thread raises and another takes.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * For what is said of many things, of each as often as one likes: a number is
 * in the set once, so nothing is ever full.  Whoever takes it then reads a
 * word that says how things stand now.  Between two lcores, or two processes of
 * which one may be hostile: whatever the peer writes, what is taken is below
 * SW_FLAGS, and to take one ends.
 *
 * Nothing here blocks, allocates or makes a system call.
 */
#ifndef SW_ENGINE_BASE_FLAGS_H
#define SW_ENGINE_BASE_FLAGS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { SW_FLAGS = 4096 }; /* and SW_FLAGS itself: none */

/* Zeros: the set is empty. */
struct sw_flags {
	_Atomic uint64_t words; /* that may have some */
	_Atomic uint64_t bits[SW_FLAGS / 64];
};

/* sw_flags_raise - what was written before is seen by whoever takes @i. */
static inline void sw_flags_raise(struct sw_flags *f, uint32_t i)
{
	atomic_fetch_or(&f->bits[i / 64], UINT64_C(1) << i % 64);
	atomic_fetch_or(&f->words, UINT64_C(1) << i / 64);
}

static inline bool sw_flags_are_down(const struct sw_flags *f)
{
	return !atomic_load(&f->words);
}

/* The lowest of a word; SW_FLAGS: it has none, and is looked at no more until
 * one is raised. */
static inline uint32_t sw_flags_take_of(struct sw_flags *f, uint32_t word)
{
	uint64_t bits = atomic_load(&f->bits[word]);

	if (!bits) {
		atomic_fetch_and(&f->words, ~(UINT64_C(1) << word));
		bits = atomic_load(&f->bits[word]); /* or raised meanwhile */
		if (!bits)
			return SW_FLAGS;
		atomic_fetch_or(&f->words, UINT64_C(1) << word);
	}
	atomic_fetch_and(&f->bits[word], ~(bits & -bits));
	return 64 * word + (uint32_t)__builtin_ctzll(bits);
}

/* sw_flags_take - the lowest; SW_FLAGS: there is none. */
static inline uint32_t sw_flags_take(struct sw_flags *f)
{
	uint64_t words = atomic_load_explicit(&f->words, memory_order_relaxed);
	uint32_t i = SW_FLAGS;

	for (; words && i == SW_FLAGS; words &= words - 1)
		i = sw_flags_take_of(f, (uint32_t)__builtin_ctzll(words));
	return i;
}

#endif
