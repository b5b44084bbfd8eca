/* serve.h - the summation service inside a daemon: a server, or an agent too.
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

/* One polling lcore of the service, with its part of every job: an engine, a
 * UDP port, memory. */
struct sw_serve_core {
	struct sw_serve *serve;
	uint32_t i;
	struct sw_server *engine;
	struct sw_share shares[SW_CONF_MANY_MAX];
	uint32_t n_reloads; /* reloads that it has followed */
	struct sw_env env;
	struct sw_reserve *reserve;
	_Atomic(const struct sw_keyring *) keys; /* the engine's, now */
	/* Its own queue pairs have released the memory that it gives back;
	 * next, lcore 0's must release it. */
	_Atomic bool is_released;
	struct sw_release own, first;   /* both waits; first: lcore 0's */
	int done;                       /* the last stage entered */
	_Atomic bool is_quiet, has_job; /* as of the last turn */
	_Atomic uint64_t open_chunks;   /* as of the last turn */
	/* Its part of the jobs: the control thread asks, the lcore describes
	 * them, and then they are the control thread's (enum look in serve.c).
	 */
	_Atomic int look;
	struct sw_server_view now;
};

struct sw_serve {
	struct sw_daemon *daemon;
	_Atomic int wanted;         /* enum sw_serve_stage */
	char farewell[SW_TEXT_MAX]; /* reason that members get at the end */
	/* Memory of all lcores: total, and by [share]. */
	_Atomic uint64_t used, share_used[SW_CONF_MANY_MAX];
	struct sw_net nets[SW_CONF_NETWORKS_MAX]; /* [serve] from */
	struct sw_guests guests;
	/* Secrets that the lcores have to use from their next turn on. */
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

/* sw_serve_close - close the service, after all lcores were joined. */
void sw_serve_close(struct sw_serve *s);

/* sw_serve_work - do the control thread's part of the service, in slices of
 * milliseconds, and let the lcores follow new secrets.  Call it regularly.
 * Returns whether there may be more to do at once. */
bool sw_serve_work(struct sw_serve *s);

/* sw_serve_is_idle - return whether the service has no job.  Thread: any. */
bool sw_serve_is_idle(const struct sw_serve *s);

/* sw_serve_look - ask the lcores to describe the jobs.  Returns the jobs when
 * all have: then the caller reads them, and calls sw_serve_looked; NULL: call
 * it again.  Control thread. */
const struct sw_server_view *sw_serve_look(struct sw_serve *s);
void sw_serve_looked(struct sw_serve *s);

/* sw_serve_finish - finish requests in flight after SIGTERM, and tell the
 * members that the service stops.  Control thread.  Finishing takes up to 2 s,
 * telling 0.3 s; each further signal ends the current one of the two.
 * @is_hurried  a second signal has arrived: only tell */
void sw_serve_finish(struct sw_serve *s, bool is_hurried);

/* sw_serve_add_stats - add the counters of all its engines. */
void sw_serve_add_stats(const struct sw_serve *s, struct sw_stats *sum);

/* sw_serve_put_stats - put the counters of memory, open chunks and lcores. */
void sw_serve_put_stats(const struct sw_serve *s,
	void (*put)(void *out, const char *name, uint64_t value), void *out);

#endif
