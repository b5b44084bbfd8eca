/* random.h - numbers for tests: the same from the same start.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_SUPPORT_RANDOM_H
#define SW_TEST_SUPPORT_RANDOM_H

#include <stdint.h>

/* test_random - 64 bits from @rng: splitmix64, by Sebastiano Vigna (public
 * domain). */
static inline uint64_t test_random(uint64_t *rng)
{
	uint64_t z = *rng += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

#endif
