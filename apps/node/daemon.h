/* daemon.h - code that server and agent share: start, ports, polling lcores.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_NODE_DAEMON_H
#define SW_APPS_NODE_DAEMON_H

#include <stdatomic.h>
#include <stdbool.h>

#include "apps/cli/clock.h"
#include "apps/cli/log.h"
#include "apps/node/about.h"
#include "apps/node/idle.h"
#include "apps/node/log_lines.h"
#include "apps/node/reserve.h"
#include "apps/node/secrets.h"
#include "apps/node/start_watch.h"
#include "apps/node/telemetry.h"
#include "apps/node/trace.h"
#include "apps/node/turns.h"
#include "conf/conf.h"
#include "engine/base/env.h"
#include "engine/base/params.h"
#include "engine/base/stats.h"
#include "pmd/lcores/handoff.h"
#include "engine/loop/loop.h"
#include "pmd/dpdk/eal.h"
#include "pmd/dpdk/port.h"
#include "pmd/host/bell.h"
#include "pmd/host/confine.h"
#include "pmd/host/nodes.h"
#include "pmd/host/stats_serve.h"

/* Work that a polling lcore does before each turn of its loop, such as taking
 * commands or submitting tensors.  @now_ns is the engine's clock.  Returns the
 * amount of work done; 0: none. */
struct sw_work {
	uint32_t (*turn)(void *ctx, uint64_t now_ns);
	void *ctx;
};

enum { SW_WORKS = 2 }; /* a service's and a worker's */

/* One polling lcore. */
struct sw_poller {
	struct sw_daemon *daemon;
	uint32_t lcore;
	_Atomic uint32_t tid; /* id of its thread; 0: it does not run */
	struct sw_loop loop;
	struct sw_turns turns;
	/* other threads ring it when they have work for it */
	struct sw_bell bell;
	/* The last orders that it has carried out: rates, traces. */
	_Atomic uint32_t n_orders;
	struct sw_tracer *tracer; /* NULL: not traced */
	bool is_serving; /* frames may arrive at any time: never sleep long */
	/* its work has woken a process, which may share its core */
	bool has_woken;
	struct sw_idle idle;
	atomic_bool stop;
	struct sw_work works[SW_WORKS];
	uint32_t n_works;
	/* Sleep at most @max_ns, until one of @n_fds @fds is readable, or until
	 * work arrives that does not ring the bell.  NULL: all work rings the
	 * bell. */
	void (*rest)(
		void *ctx, const int *fds, uint32_t n_fds, uint64_t max_ns);
	/* Return whether every training process waits for its sums; if not, a
	 * nap ends when one of them begins to wait.  NULL: no processes. */
	bool (*is_awaited)(void *ctx);
	/* Return whether no training process waits.  NULL: no processes. */
	bool (*are_computing)(void *ctx);
	void (*nap)(void *ctx, uint64_t max_ns);
	void *ctx;          /* context of the callbacks above */
	uint64_t waited_ns; /* when a process was last seen waiting */
};

struct sw_daemon {
	struct sw_conf conf;
	/* The file at @path, as of the last reload. */
	struct sw_conf *file;
	const char *path;
	bool has_reload; /* SIGHUP reloads instead of ending the daemon */
	/* The values of each [share], as of reload n_reloads; control writes.
	 */
	struct {
		_Atomic uint32_t weight;
		_Atomic uint64_t quota;
	} shares[SW_CONF_MANY_MAX];
	_Atomic uint32_t n_reloads;
	struct sw_log log;
	struct sw_log_sink log_sink;
	struct sw_env env;
	struct sw_params params;
	struct sw_secrets *secrets; /* current set; it links to older ones */
	struct sw_dpdk *dpdk;
	/* Queue pairs of each lcore; NULL: the lcore has none of that port.
	 * First DPDK's ports, then the loopback of an agent that also
	 * serves. */
	struct sw_port *queues[SW_MAX_LCORES][SW_MAX_PORTS];
	uint32_t n_dpdk_ports, n_ports;
	/* Total rate of all ports, 0: no limit. */
	_Atomic uint64_t rate_bit_s;
	/* Number of orders: lcore 0 has set the rate, or control has changed
	 * what is traced. */
	_Atomic uint32_t n_orders;
	struct sw_trace trace;
	struct sw_telemetry telemetry;
	struct sw_handoff handoff; /* between the lcores */
	/* Loopback of each lcore of an agent that also serves; otherwise
	 * NULL. */
	struct sw_handoff_port *loopbacks[SW_MAX_LCORES];
	struct sw_start_watch start_watch;
	struct sw_stats_serve *stats;
	struct sw_about about;
	uint32_t n_lcores; /* polling lcores */
	uint32_t n_nodes;
	struct sw_numa_plan numa;
	struct sw_reserve reserves[SW_MAX_LCORES]; /* memory of each lcore */
	struct sw_reserve
		lane_reserves[SW_MAX_LCORES]; /* memory for a worker's lanes */
	struct sw_poller pollers[SW_MAX_LCORES];
	/* Return whether lcore @from has work, except frames, for lcore @to.
	 * If both are equal, the work is from other threads.  Either lcore may
	 * call it.  NULL: never any. */
	bool (*has_mail)(const void *ctx, uint32_t from, uint32_t to);
	const void *mail_ctx;
	struct sw_lines *lines[SW_MAX_LCORES]; /* log lines of each lcore */
	char runtime_dir[SW_CONF_PATH_BYTES];
	bool owns_runtime_dir;
	/* end of [node] drain; 0: no signal to end so far */
	uint64_t drained_ns;
	/* Longest time between two signs of life, and when the next is due; 0:
	 * the service manager wants none. */
	uint64_t watchdog_ns, alive_at_ns;
	uint32_t trusted_uid;      /* UINT32_MAX: no user is trusted */
	struct sw_confine confine; /* valid from the launch on */
};

/* The command line of a daemon. */
struct sw_daemon_options {
	const char *config;
	char path[48];     /* path of the default file */
	const char *level; /* NULL: as configured */
	enum sw_log_format format;
};

/* sw_daemon_parse - read the command line of daemon @name into @o.  Without
 * --config the file is /etc/sumwire/@name.ini.  Returns as sw_args_parse. */
int sw_daemon_parse(struct sw_daemon_options *o, const char *name,
	const char *summary, int argc, char **argv);

/* sw_daemon_exit_code - return the exit code for @err of sw_daemon_open.  A
 * wrong configuration has its own code, so that a service manager does not
 * restart the daemon. */
int sw_daemon_exit_code(int err);

/* sw_daemon_open - read the configuration, which must have @role (an agent's
 * may have SW_ROLE_BOTH), and block the signals that end the daemon.  Logs
 * every error.  The caller must close @d even after an error.  Returns 0 or a
 * negative error. */
int sw_daemon_open(struct sw_daemon *d, const struct sw_daemon_options *o,
	enum sw_conf_role role);

/* sw_daemon_plan_memory - find the NUMA nodes of lcores and ports, log those
 * that are far apart, and choose nodes for memory (topology.c).  Part of
 * open. */
void sw_daemon_plan_memory(struct sw_daemon *d);

/* sw_daemon_put_topology - put the counters of the memory plan. */
void sw_daemon_put_topology(const struct sw_daemon *d,
	void (*put)(void *out, const char *name, uint64_t value), void *out);

/* sw_daemon_start - start DPDK and the ports.  Called after everything else
 * that can fail, because other processes see the daemon from then on.  The
 * lcores' pollers wait for engines and work.  Returns as sw_daemon_open. */
int sw_daemon_start(struct sw_daemon *d);

/* Parts of start, in daemon_ports.c. sw_daemon_port_params - translate [port]
 * @c for DPDK; borrows @c. sw_daemon_open_ports - open all ports, the loopbacks
 * and the rings between lcores, and choose a payload that all ports carry. */
struct sw_dpdk_port_params sw_daemon_port_params(
	const struct sw_daemon *d, const struct sw_conf_port *c);
int sw_daemon_open_ports(struct sw_daemon *d);

/* sw_daemon_set_rate - limit the payload rate of all ports together; 0: no
 * limit.  Each port gets a share in proportion to its [port] rate, or an equal
 * share if a port has no rate.  Every lcore applies it in its next turn.
 * Thread: lcore 0. */
void sw_daemon_set_rate(struct sw_daemon *d, uint64_t bit_s);

/* sw_daemon_launch - drop the rights that only the start needs, and start
 * polling on all lcores.  Returns 0 or a negative error. */
int sw_daemon_launch(struct sw_daemon *d);

/* sw_daemon_join - stop and join the polling lcores.  Returns 0 or the first
 * error. */
int sw_daemon_join(struct sw_daemon *d);

/* sw_daemon_endpoint - return the endpoint of lcore @lcore's part of a worker.
 * The service has the endpoints before it. */
uint32_t sw_daemon_endpoint(const struct sw_daemon *d, uint32_t lcore);

/* sw_daemon_serve_stats - open the stats socket.  @fill as in stats_serve.h;
 * sw_daemon_put_stats helps to write it. */
int sw_daemon_serve_stats(
	struct sw_daemon *d, sw_stats_fill_fn fill, void *ctx);

/* sw_daemon_owner - return the lcore that owns @endpoint of every port. */
uint32_t sw_daemon_owner(const struct sw_daemon *d, uint32_t endpoint);

/* A wait until the ports have released all frames that an lcore had sent before
 * the wait began. */
struct sw_release {
	bool is_begun;
	uint32_t marks[SW_MAX_PORTS];
};

/* sw_daemon_release - return whether the queue pairs of @lcore have released
 * all memory that was sent before @r began; if not, call it again in the next
 * turn.  The first call begins @r, and a call that returns true ends it.  Must
 * not be called while frames are borrowed.  Thread: that lcore. */
bool sw_daemon_release(
	struct sw_daemon *d, uint32_t lcore, struct sw_release *r);

/* sw_daemon_put_engine - put an engine's counters; names begin with @prefix. */
void sw_daemon_put_engine(const struct sw_stats *st, const char *prefix,
	void (*put)(void *out, const char *name, uint64_t value), void *out);

/* sw_daemon_put_stats - put the counters of an engine, of all ports and of the
 * lcores' turns. */
void sw_daemon_put_stats(const struct sw_daemon *d, const struct sw_stats *st,
	void (*put)(void *out, const char *name, uint64_t value), void *out);

/* sw_daemon_open_system - prepare the system for the configured daemon: raise
 * the limit of descriptors, make the runtime folder, place sockets without a
 * path there, and look up users.  Part of open.
 * sw_daemon_confine - become [node] user, and give up capabilities and system
 * calls (confine.h), once ports and stats socket are open.  Part of launch. */
int sw_daemon_open_system(struct sw_daemon *d);
int sw_daemon_confine(struct sw_daemon *d);

/* sw_daemon_block_signals - block the signals that end a daemon (SIGTERM,
 * SIGINT, SIGHUP, SIGQUIT) until sw_daemon_await_signal takes them, and the
 * ignored signals for ever (signals.h). */
void sw_daemon_block_signals(void);

/* sw_daemon_reload_secrets - read the key files again.  New joins use the new
 * secrets; replaced ones are accepted for [serve] key_grace.  After an error,
 * which it logs, the current secrets stay.  The lcores pick up the new set in
 * sw_serve_work.  Returns 0 or a negative error.
 * sw_daemon_drop_secrets - wipe the replaced sets, which nothing may use.
 * Thread of both: control. */
int sw_daemon_reload_secrets(struct sw_daemon *d);
void sw_daemon_drop_secrets(struct sw_daemon *d);

/* sw_daemon_env - set @env for engines of lcore @i: memory comes from @r, and
 * log lines go to the control thread. sw_daemon_write_lines - write the queued
 * log lines; the control thread calls it regularly. */
void sw_daemon_env(const struct sw_daemon *d, uint32_t i, struct sw_reserve *r,
	struct sw_env *env);
void sw_daemon_write_lines(const struct sw_daemon *d);

/* sw_daemon_reload - read the file again: apply the log level, the keys and the
 * shares of jobs, and log the changes that need a restart.  If the file cannot
 * be loaded, everything stays as it was. */
void sw_daemon_reload(struct sw_daemon *d);

/* sw_daemon_is_ready - tell the service manager that the daemon serves.
 * sw_daemon_is_alive - tell it that the control thread takes its turns, as
 * often as the manager wants; called in each turn. sw_daemon_is_ending - tell
 * it that the daemon ends. */
void sw_daemon_is_ready(struct sw_daemon *d);
void sw_daemon_is_alive(struct sw_daemon *d);
void sw_daemon_is_ending(struct sw_daemon *d);

/* sw_daemon_await_signal - wait at most @ms for a signal that ends or reloads
 * this daemon, and handle it.  Call it each turn. */
void sw_daemon_await_signal(struct sw_daemon *d, uint32_t ms);

/* sw_daemon_must_end - return whether the daemon must end after a signal: at
 * once, or with [node] drain when the drain time is over or the daemon is idle.
 * @is_idle  No process is attached and no job is open.  Evaluate it after the
 * wait for a signal, because a job may open during that wait. */
bool sw_daemon_must_end(const struct sw_daemon *d, bool is_idle);

/* sw_daemon_hurried - return whether another signal has arrived during the
 * stop, and log it.  The daemon then stops without further waits.  Waits at
 * most @ms for the signal. */
bool sw_daemon_hurried(const struct sw_daemon *d, uint32_t ms);

/* sw_daemon_close - release everything, and remove the daemon's files. */
void sw_daemon_close(struct sw_daemon *d);

/* sw_daemon_add_stats - add the counters of the lcores: turns, hand-offs. */
void sw_daemon_add_stats(const struct sw_daemon *d, struct sw_stats *sum);

/* sw_poller_run - poll until stop is set; the main function of an lcore.
 * @poller  a struct sw_poller.  Returns 0. */
int sw_poller_run(void *poller);

/* sw_poller_open - open the poller of lcore @lcore over its ports, with the
 * endpoints of the other lcores, but without engines and work of its own.
 * Errors: as sw_bell_open. sw_poller_close - close the poller, which may be all
 * zero. */
int sw_poller_open(struct sw_poller *p, struct sw_daemon *d, uint32_t lcore);
void sw_poller_close(struct sw_poller *p);

/* sw_poller_set - let @engine drive @endpoint; NULL: no engine.  Thread: its
 * lcore. */
void sw_poller_set(
	struct sw_poller *p, uint32_t endpoint, struct sw_engine *engine);

/* sw_poller_add - add a function that runs before each turn.  Call it before
 * the lcore runs. */
void sw_poller_add(struct sw_poller *p,
	uint32_t (*turn)(void *ctx, uint64_t now_ns), void *ctx);

#endif
