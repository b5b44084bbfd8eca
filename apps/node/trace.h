/* trace.h - record what the lcores do, for sumwire trace and sumwire capture.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * An lcore that is recorded has a tap between its loop and each of its engines:
 * one notes events (trace_events.c), another one frames (capture.c).  An lcore
 * that is not recorded calls its engines directly, so that its packets pay
 * nothing.
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
struct sw_tracer; /* of one lcore */

/* Zeroed: closed.  Thread: control, except as said. */
struct sw_trace {
	struct sw_feed feed;
	struct sw_host *host;    /* an agent's, whose processes note events */
	struct sw_trace_ask ask; /* the reader's request */
	uint64_t ask_by_ns;      /* deadline of the request */
	struct sw_tracer *tracers[SW_MAX_LCORES]; /* NULL: none */
	bool is_on;                               /* there are tracers */
	bool has_said_end;                        /* to the reader */
	uint64_t began_ns;
	uint64_t end_by_ns; /* the reader has had enough; 0: it has not */
	uint32_t n_unnoted; /* notes of processes that were lost */
	_Atomic bool is_recording; /* the lcores shall record */
};

/* sw_trace_open - listen for readers in @folder.  If that fails, the daemon
 * runs and cannot be recorded. */
void sw_trace_open(struct sw_daemon *d, const char *folder);

/* sw_trace_poll - begin, feed or end a recording.  Call it each turn.
 * sw_trace_wait_ms - return how long the control thread may wait, at most @ms.
 */
void sw_trace_poll(struct sw_daemon *d);
uint32_t sw_trace_wait_ms(const struct sw_daemon *d, uint32_t ms);

/* sw_trace_close - free all, after the lcores have ended. */
void sw_trace_close(struct sw_daemon *d);

/* sw_trace_follow - begin or end to record as the control thread has said.
 * sw_trace_tap - return what the loop drives in place of @engine, a worker's at
 * @endpoint.  Thread: the lcore. */
void sw_trace_follow(struct sw_poller *p);
struct sw_engine *sw_trace_tap(
	struct sw_tracer *t, uint32_t endpoint, struct sw_engine *engine);

/* A call of a rank, or its end. */
struct sw_trace_call {
	uint32_t key, number; /* sw_worker_call */
	uint32_t local, cookie;
	bool is_done, has_failed;
};

/* sw_trace_call - note it.  Thread: the lcore. */
void sw_trace_call(struct sw_tracer *t, const struct sw_trace_call *call);

#endif
