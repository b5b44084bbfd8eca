/* serve.h - the summation service inside a daemon: a server, or an agent too.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_SERVE_H
#define SW_SERVE_H

#include <stdatomic.h>

#include "apps/daemon.h"
#include "engine/server.h"

/* What the control thread wants of the lcore. */
enum sw_serve_stage {
	SW_SERVE_RUN,
	SW_SERVE_FINISH, /* admit nobody, go on */
	SW_SERVE_TELL,   /* tell the members that we stop */
};

struct sw_serve {
	struct sw_daemon *daemon;
	struct sw_server engine;
	struct sw_share shares[SW_CONF_MANY_MAX];
	_Atomic int wanted; /* enum sw_serve_stage */
	int done;           /* lcore: the last stage entered */
	_Atomic bool is_quiet;
	_Atomic uint64_t open_chunks;
};

/* sw_serve_open - an idle service over the ports of @d, which is borrowed.
 * Control, before the lcore runs.  Returns 0 or a negative error. */
int sw_serve_open(struct sw_serve *s, struct sw_daemon *d);

/* sw_serve_close - after the lcore was joined. */
void sw_serve_close(struct sw_serve *s);

/* sw_serve_turn - the service's part of a turn; lcore.  Returns how much there
 * was. */
uint32_t sw_serve_turn(struct sw_serve *s);

/* sw_serve_work - the service's part of the control thread: now and then. */
void sw_serve_work(struct sw_serve *s);

/* sw_serve_finish - SIGTERM came: finish what is in flight, tell the members
 * that we stop.  Control; takes up to 2.3 s, or until a second signal. */
void sw_serve_finish(struct sw_serve *s);

/* sw_serve_put_stats - memory and open chunks; the engine's counters too if
 * @prefix is not NULL, their names after it. */
void sw_serve_put_stats(const struct sw_serve *s, const char *prefix,
	void (*put)(void *out, const char *name, uint64_t value), void *out);

#endif
