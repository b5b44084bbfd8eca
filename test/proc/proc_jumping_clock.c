/* proc_jumping_clock.c - preloaded library: a time of day that jumps by hours.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The offset changes every 300 ms. Monotonic clocks are unaffected.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <sys/time.h>
#include <time.h>

typedef int (*clock_fn)(clockid_t, struct timespec *);

static int true_clock(clockid_t id, struct timespec *t)
{
	static clock_fn next;

	if (!next)
		next = (clock_fn)(uintptr_t)dlsym(RTLD_NEXT, "clock_gettime");
	return next(id, t);
}

static time_t offset(void)
{
	static const time_t hours[] = {0, 5, -7, 24 * 400, -24 * 30};
	struct timespec t;

	true_clock(CLOCK_MONOTONIC, &t);
	return 3600 * hours[((uint64_t)t.tv_sec * 10 +
				    (uint64_t)t.tv_nsec / 100000000) /
			      3 % 5];
}

__attribute__((visibility("default"))) int clock_gettime(
	clockid_t id, struct timespec *t)
{
	int err = true_clock(id, t);

	if (!err && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		t->tv_sec += offset();
	return err;
}

__attribute__((visibility("default"))) time_t time(time_t *to)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	if (to)
		*to = t.tv_sec;
	return t.tv_sec;
}

__attribute__((visibility("default"))) int gettimeofday(
	struct timeval *to, void *zone)
{
	struct timespec t;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &t);
	*to = (struct timeval){t.tv_sec, t.tv_nsec / 1000};
	return 0;
}
