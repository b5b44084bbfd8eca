/* random.h - numbers for tests: the same from the same start.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_TEST_SUPPORT_RANDOM_H
#define SW_TEST_SUPPORT_RANDOM_H

#include "engine/base/random.h"

/* test_random - 64 bits from @rng. */
static inline uint64_t test_random(uint64_t *rng)
{
	return sw_random_next(rng);
}

#endif
