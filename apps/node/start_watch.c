/* start_watch.c - log the waits of a daemon's start.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A question about interfaces waits for a kernel lock, which a program that
 * removes many namespaces holds for minutes.  No timeout ends that wait.
 */
#include "apps/node/start_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PLACE = 64 };

/* Name the kernel function in which the starting thread waits; "": none. */
static void place_of(const struct sw_start_watch *w, char out[PLACE])
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%ld/wchan", (long)w->tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, out, PLACE - 1);
	out[n > 0 ? n : 0] = '\0';
	if (fd >= 0)
		close(fd);
	if (!strcmp(out, "0"))
		out[0] = '\0';
}

static struct timespec in_ms(uint64_t ms)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	ms += (uint64_t)t.tv_nsec / 1000000;
	t.tv_sec += (time_t)(ms / 1000);
	t.tv_nsec = (long)(ms % 1000) * 1000000 + t.tv_nsec % 1000000;
	return t;
}

static void *watch(void *ctx)
{
	struct sw_start_watch *w = ctx;
	uint64_t waited_ms = 0;
	char place[PLACE];

	pthread_mutex_lock(&w->lock);
	while (!w->is_over) {
		struct timespec until = in_ms(w->every_ms);
		int err = 0;

		while (!w->is_over && err != ETIMEDOUT)
			err = pthread_cond_timedwait(
				&w->changed, &w->lock, &until);
		if (w->is_over)
			break;
		waited_ms += w->every_ms;
		place_of(w, place);
		sw_log(w->log, SW_LOG_WARN,
			"still starting after %llu s: %s is not open%s%s",
			(unsigned long long)waited_ms / 1000, w->what,
			*place ? ", it waits in the kernel, in " : "", place);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

void sw_start_watch_open(
	struct sw_start_watch *w, uint32_t every_ms, const struct sw_log *log)
{
	pthread_condattr_t clock;

	*w = (struct sw_start_watch){
		.log = log, .every_ms = every_ms, .tid = gettid()};
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&w->changed, &clock);
	pthread_condattr_destroy(&clock);
	w->is_open = !pthread_create(&w->thread, NULL, watch, w);
}

void sw_start_watch_say(
	struct sw_start_watch *w, const char *kind, const char *name)
{
	pthread_mutex_lock(&w->lock);
	snprintf(w->what, sizeof(w->what), "%s%s%s", kind, *name ? " " : "",
		name);
	pthread_mutex_unlock(&w->lock);
}

void sw_start_watch_close(struct sw_start_watch *w)
{
	pthread_mutex_lock(&w->lock);
	w->is_over = true;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
	if (w->is_open)
		pthread_join(w->thread, NULL);
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
}
