/* clock.h - the monotonic clock, and a thread's CPU time.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_CLI_CLOCK_H
#define SW_APPS_CLI_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t sw_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* sw_cpu_ns - return the CPU time of the calling thread. */
static inline uint64_t sw_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

#endif
