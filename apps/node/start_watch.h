/* start_watch.h - say what a daemon's start waits for.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_NODE_START_WATCH_H
#define SW_APPS_NODE_START_WATCH_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "engine/base/log.h"

/* A thread that logs a line now and then until the start is over. */
struct sw_start_watch {
	const struct sw_log *log;
	uint32_t every_ms;
	pid_t tid;     /* the starting thread's */
	char what[64]; /* with the lock */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_open, is_over; /* is_over: with the lock */
};

/* sw_start_watch_open - log a line each @every_ms until close.  If no thread
 * can be made, nothing is logged.  The caller is the starting thread. */
void sw_start_watch_open(
	struct sw_start_watch *w, uint32_t every_ms, const struct sw_log *log);

/* sw_start_watch_say - note that the starting thread opens @kind @name now. */
void sw_start_watch_say(
	struct sw_start_watch *w, const char *kind, const char *name);
void sw_start_watch_close(struct sw_start_watch *w);

#endif
