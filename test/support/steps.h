/* steps.h - how many instructions a piece of code executes.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * By the processor's trap flag: exact, whatever else the machine does, and some
 * hundred times slower than without. All rounds of a string instruction (rep)
 * count as one, because a copy's length is no walk. Under a sanitizer, whose
 * checks would be counted and take minutes, and on processors other than
 * x86_64, there is always one.
 */
#ifndef SW_TEST_SUPPORT_STEPS_H
#define SW_TEST_SUPPORT_STEPS_H

#include <stdint.h>

/* steps_begin - count from here on, up to @most; what follows is not slowed. */
void steps_begin(uint64_t most);

/* steps_end - return the number of steps; above the most: counting stopped. */
uint64_t steps_end(void);

#endif
