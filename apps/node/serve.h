/* serve.h - the summation service of a daemon: of a server or an agent.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_NODE_SERVE_H
#define SW_APPS_NODE_SERVE_H

#include <stdatomic.h>

#include "apps/node/daemon.h"
#include "engine/server/server.h"

/* Stage that the control thread orders the lcores to enter. */
enum sw_serve_stage {
	SW_SERVE_RUN,
	SW_SERVE_FINISH, /* finish open work; admit no members */
	SW_SERVE_TELL,   /* tell the members that the service stops */
};

struct sw_serve;

/* One polling lcore of the service with its part of every job: an engine, a UDP
 * port, memory. */
struct sw_serve_core {
	struct sw_serve *serve;
	uint32_t i;
	struct sw_server *engine;
	struct sw_share shares[SW_CONF_MANY_MAX];
	uint32_t n_reloads; /* the last reload that it has applied */
	struct sw_env env;
	struct sw_reserve *reserve;
	/* keys that the engine uses now */
	_Atomic(const struct sw_keyring *) keys;
	/* Its own queue pairs have released the memory; lcore 0's must release
	 * it next. */
	_Atomic bool is_released;
	/* state of both waits; first: on lcore 0 */
	struct sw_release own, first;
	int done;                       /* the last stage entered */
	_Atomic bool is_quiet, has_job; /* as of the last turn */
	_Atomic uint64_t open_chunks;   /* as of the last turn */
	/* Its part of the jobs.  The control thread asks, the lcore describes,
	 * and then the control thread owns the description (enum look in
	 * serve.c). */
	_Atomic int look;
	struct sw_server_view now;
};

struct sw_serve {
	struct sw_daemon *daemon;
	_Atomic int wanted;         /* enum sw_serve_stage */
	char farewell[SW_TEXT_MAX]; /* reason that members receive at the end */
	/* Memory of all lcores: in total, and by [share]. */
	_Atomic uint64_t used, share_used[SW_CONF_MANY_MAX];
	struct sw_net nets[SW_CONF_NETWORKS_MAX]; /* [serve] from */
	struct sw_guests guests;
	/* Secrets that the lcores must use from their next turn on. */
	_Atomic(const struct sw_keyring *) keys;
	uint32_t n_cores;
	struct sw_serve_core *cores;
};

/* sw_serve_open - open an idle service over the ports of @d, which is borrowed.
 * Control thread, before any lcore runs.  Returns 0 or a negative error; the
 * caller must close @s in both cases. */
int sw_serve_open(struct sw_serve *s, struct sw_daemon *d);

/* sw_serve_start - give each lcore its part, before the lcores run. */
void sw_serve_start(struct sw_serve *s);

/* sw_serve_close - close the service, after all lcores have been joined. */
void sw_serve_close(struct sw_serve *s);

/* sw_serve_work - do the control thread's part of the service, in slices of
 * milliseconds, and pass new secrets to the lcores.  Call it regularly.
 * Returns whether more work may remain. */
bool sw_serve_work(struct sw_serve *s);

/* sw_serve_is_idle - return whether the service has no job.  Thread: any. */
bool sw_serve_is_idle(const struct sw_serve *s);

/* sw_serve_look - ask the lcores to describe the jobs.  Returns NULL until all
 * have answered: call it again.  Then returns the jobs: the caller reads them,
 * and calls sw_serve_looked.  Thread: control. */
const struct sw_server_view *sw_serve_look(struct sw_serve *s);
void sw_serve_looked(struct sw_serve *s);

/* sw_serve_finish - finish requests in flight after SIGTERM, and tell the
 * members that the service stops.  Finishing takes up to 2 s, telling 0.3 s;
 * each further signal ends the current step.  Thread: control.
 * @is_hurried  a second signal has arrived: only tell */
void sw_serve_finish(struct sw_serve *s, bool is_hurried);

/* sw_serve_add_stats - add the counters of all engines of the service. */
void sw_serve_add_stats(const struct sw_serve *s, struct sw_stats *sum);

/* sw_serve_put_stats - put the counters of memory, open chunks and lcores. */
void sw_serve_put_stats(const struct sw_serve *s,
	void (*put)(void *out, const char *name, uint64_t value), void *out);

#endif
