/* start_watch.h - log the waits of a daemon's start.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_NODE_START_WATCH_H
#define SW_APPS_NODE_START_WATCH_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "engine/base/log.h"

/* A thread that logs a line periodically until the start is over. */
struct sw_start_watch {
	const struct sw_log *log;
	uint32_t every_ms;
	pid_t tid;     /* the starting thread */
	char what[64]; /* protected by the lock */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_open, is_over; /* is_over: protected by the lock */
};

/* sw_start_watch_open - log a line every @every_ms until close.  If the thread
 * cannot be created, nothing is logged.  The caller is the starting thread. */
void sw_start_watch_open(
	struct sw_start_watch *w, uint32_t every_ms, const struct sw_log *log);

/* sw_start_watch_say - note that the starting thread now opens @kind @name. */
void sw_start_watch_say(
	struct sw_start_watch *w, const char *kind, const char *name);
void sw_start_watch_close(struct sw_start_watch *w);

#endif
