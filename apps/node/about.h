/* about.h - tell "sumwire ps" about this daemon.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Each daemon listens on a socket daemon-PID.sock in a folder that other
 * programs of its user, and of root, search. [node] runtime_dir does not move
 * it.  Each reader receives one text (pmd/host/daemons.h).
 */
#ifndef SW_APPS_NODE_ABOUT_H
#define SW_APPS_NODE_ABOUT_H

#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "apps/node/cpu_wait.h"
#include "engine/loop/engine.h"
#include "engine/peer/peer_view.h"
#include "pmd/host/tell.h"

struct sw_daemon;
struct sw_serve;

/* How often a port's link came up, and when the daemon last noticed it. */
struct sw_about_port {
	uint64_t n_ups, at_ns;
};

/* All zero: closed. */
struct sw_about {
	struct sw_tell tell;
	time_t began;
	uint64_t look_at_ns; /* time of the next look at ports and lcores */
	struct sw_about_port ports[SW_MAX_PORTS];
	struct sw_cpu_wait waits[SW_MAX_LCORES];
	/* arrival of the oldest reader; 0: no reader waits */
	uint64_t asked_ns;
};

/* sw_about_open - open the socket of @d, and remove sockets that killed daemons
 * left.  If that fails, the daemon runs, and ps does not list it. */
void sw_about_open(struct sw_daemon *d);

/* The job of an agent's processes. */
struct sw_about_job {
	/* Ask the lcores what waits; return whether all have answered. */
	bool (*look)(void *ctx);
	sw_tell_fn write; /* writes the job's lines */
	void *ctx;
};

/* sw_about_path - write the lines about the path to a member or a server.
 * @payload largest payload that the path carries; 0: unknown */
void sw_about_path(const struct sw_peer_view *p, uint32_t payload,
	uint64_t push_bytes, uint64_t result_bytes, FILE *to);

/* sw_about_poll - answer readers.  Called in each turn of the control thread.
 * @serve  NULL: the daemon does not sum
 * @job    NULL: the daemon serves no processes
 * Returns whether @job was described, so that its next look may begin. */
bool sw_about_poll(struct sw_daemon *d, struct sw_serve *serve,
	const struct sw_about_job *job);

#endif
