/* steps.h - count the instructions that a piece of code executes.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The processor's trap flag gives the exact number, independent of load, but
 * runs the code some hundred times slower. All iterations of a string
 * instruction (rep) count as one, because a copy's length is no walk. The count
 * is always 1 under a sanitizer, whose checks would count and take minutes, and
 * on processors other than x86_64.
 */
#ifndef SW_TEST_SUPPORT_STEPS_H
#define SW_TEST_SUPPORT_STEPS_H

#include <stdint.h>

/* steps_begin - start counting. After @most steps counting stops, and the code
 * runs at full speed again. */
void steps_begin(uint64_t most);

/* steps_end - return the number of steps; more than the maximum: counting
 * stopped. */
uint64_t steps_end(void);

#endif
