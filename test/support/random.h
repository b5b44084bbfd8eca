/* random.h - pseudo-random numbers for tests, fixed by their seed.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_SUPPORT_RANDOM_H
#define SW_TEST_SUPPORT_RANDOM_H

#include "engine/base/random.h"

/* test_random - return the next 64 bits and advance @rng. */
static inline uint64_t test_random(uint64_t *rng)
{
	return sw_random_next(rng);
}

#endif
