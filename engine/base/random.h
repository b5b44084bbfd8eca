/* random.h - pseudo-random numbers from a seed.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_BASE_RANDOM_H
#define SW_ENGINE_BASE_RANDOM_H

#include <stdint.h>

/* sw_random_next - return the next 64 bits of the sequence, and update @state,
 * which starts as the seed: splitmix64 by Sebastiano Vigna (public domain). */
static inline uint64_t sw_random_next(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

#endif
