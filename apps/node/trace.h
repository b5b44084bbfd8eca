/* trace.h - record the lcores' work, for sumwire trace and sumwire capture.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * An lcore that records has a tap between its loop and each of its engines.  A
 * tap notes either events (trace_events.c) or frames (capture.c).  An lcore
 * that does not record calls its engines directly, at no cost.
 */
#ifndef SW_APPS_NODE_TRACE_H
#define SW_APPS_NODE_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "apps/cli/trace_format.h"
#include "engine/loop/engine.h"
#include "pmd/host/feed.h"

struct sw_daemon;
struct sw_host;
struct sw_poller;
struct sw_tracer; /* state of one lcore */

/* All zero: closed.  Thread: control, except where noted. */
struct sw_trace {
	struct sw_feed feed;
	/* an agent's host, whose processes also note events */
	struct sw_host *host;
	struct sw_trace_ask ask;                  /* the reader's request */
	uint64_t ask_by_ns;                       /* deadline for the request */
	struct sw_tracer *tracers[SW_MAX_LCORES]; /* NULL: not recorded */
	bool is_on;                               /* tracers exist */
	/* the reader has the end mark */
	bool has_said_end;
	uint32_t read_ms; /* between two reads of the rings */
	uint64_t began_ns;
	uint64_t end_by_ns; /* deadline for the end; 0: the recording runs */
	uint32_t n_noted;   /* notes that the last read took */
	uint32_t n_unnoted; /* notes lost by full rings of processes */
	_Atomic bool is_recording; /* order to the lcores: record */
};

/* sw_trace_open - listen for readers in @folder.  If that fails, the daemon
 * runs but cannot be recorded. */
void sw_trace_open(struct sw_daemon *d, const char *folder);

/* sw_trace_poll - begin, feed or end a recording.  Call it each turn.
 * sw_trace_wait_ms - return how long the control thread may wait, at most @ms.
 */
void sw_trace_poll(struct sw_daemon *d);
uint32_t sw_trace_wait_ms(const struct sw_daemon *d, uint32_t ms);

/* sw_trace_close - free everything, after the lcores have ended. */
void sw_trace_close(struct sw_daemon *d);

/* sw_trace_follow - begin or end recording, as the control thread has ordered.
 * sw_trace_tap - return the tap that the loop drives in place of @engine, a
 * worker's engine at @endpoint.  Thread: the lcore. */
void sw_trace_follow(struct sw_poller *p);
struct sw_engine *sw_trace_tap(
	struct sw_tracer *t, uint32_t endpoint, struct sw_engine *engine);

/* The begin or the end of a rank's call. */
struct sw_trace_call {
	uint32_t key, number; /* sw_worker_call */
	uint32_t local, cookie;
	bool is_done, has_failed;
};

/* sw_trace_call - note the call.  Thread: the lcore. */
void sw_trace_call(struct sw_tracer *t, const struct sw_trace_call *call);

#endif
