/* about.h - tell "sumwire ps" about this daemon.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Each daemon has a socket daemon-PID.sock in a folder where programs of its
 * user, and of root, look for it, wherever its other files are.  Each reader
 * gets one text (pmd/host/daemons.h).
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

/* How often the link of a port came up, and the last time that was seen. */
struct sw_about_port {
	uint64_t n_ups, at_ns;
};

/* Zeroed: closed. */
struct sw_about {
	struct sw_tell tell;
	time_t began;
	uint64_t look_at_ns; /* the next look at the ports and cores */
	struct sw_about_port ports[SW_MAX_PORTS];
	struct sw_cpu_wait waits[SW_MAX_LCORES];
	uint64_t asked_ns; /* when the oldest reader was seen; 0: none waits */
};

/* sw_about_open - open the socket of @d, and remove those of daemons that were
 * killed.  If that fails, the daemon runs, and ps lacks it. */
void sw_about_open(struct sw_daemon *d);

/* The job of an agent's processes. */
struct sw_about_job {
	/* Ask the lcore what waits; return whether it has answered. */
	bool (*look)(void *ctx);
	sw_tell_fn write; /* its lines */
	void *ctx;
};

/* sw_about_path - write the lines about the path to a member or of a session.
 * @payload  the largest that it carries; 0: not known */
void sw_about_path(const struct sw_peer_view *p, uint32_t payload,
	uint64_t push_bytes, uint64_t result_bytes, FILE *to);

/* sw_about_poll - answer readers.  Called in each turn of the control thread.
 * @serve  NULL: the daemon does not sum
 * @job    NULL: it serves no processes
 * Returns whether it has answered, so that a look is over. */
bool sw_about_poll(struct sw_daemon *d, struct sw_serve *serve,
	const struct sw_about_job *job);

#endif
