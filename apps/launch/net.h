/* net.h - configurations of a server and N agents on this machine.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The daemons have their own folder in $TMPDIR or /tmp.  Their ports are of
 * type memif unless the caller chooses another type.
 */
#ifndef SW_APPS_LAUNCH_NET_H
#define SW_APPS_LAUNCH_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/cli/scratch.h"
#include "engine/base/ip.h"

enum {
	SW_NET_AGENTS_MAX = 32, /* a server has at most 32 ports */
	SW_NET_DAEMONS_MAX = 1 + SW_NET_AGENTS_MAX,
	SW_NET_DIR_BYTES = 80,
	SW_NET_NAME_BYTES = 20,
	SW_NET_PATH_BYTES = 108, /* size of a Unix socket's address */
};

/* One end of a link.  NULL fields: the default. */
struct sw_net_end {
	const char *device; /* interface, for port types that need one */
	const char *cpus;   /* CPUs of its daemon's lcores: "0,1" */
	const char *keys;   /* lines for its [port] */
};

struct sw_net {
	struct sw_scratch scratch; /* private */
	uint32_t n_agents;
	/* No server: two agents also sum. */
	bool is_colocated;
	uint32_t n_local;      /* processes that each agent serves */
	uint32_t n_lcores;     /* polling lcores of each daemon; 0: 1 */
	const char *log_level; /* log level of all daemons: "warn" */
	uint64_t quota_bytes;  /* memory for tensors at each daemon */
	/* All daemons share a secret, drawn for this job, in a file in their
	 * folder. */
	bool is_keyed;
	/* Lines for all [job] and [agent] sections; NULL: none. */
	const char *job_keys, *agent_keys;
	/* Each agent has a link to the server, with its own network: a /24, or
	 * a /120 of IPv6.  A type other than memif has one link, so it allows
	 * one agent. */
	const char *port_type; /* NULL: memif */
	struct sw_ip ip; /* address of the first network; unset: 10.77.0.0 */
	/* the server's or first agent's; the agents' */
	struct sw_net_end ends[2];
};

/* sw_net_open - make the folder, and write one configuration per daemon into
 * it.
 * @net   the caller sets all fields except scratch
 * Errors: SW_EIO, reported on stderr; then no file is left. */
int sw_net_open(struct sw_net *net);

/* sw_net_close - remove the folder with its contents. */
void sw_net_close(struct sw_net *net);

/* sw_net_daemons - return the number of daemons.  The server, if any, is daemon
 * 0. */
uint32_t sw_net_daemons(const struct sw_net *net);

/* sw_net_folder - return the daemons' folder, which the ranks may also use. */
const char *sw_net_folder(const struct sw_net *net);

/* sw_net_conf, sw_net_stats, sw_net_agent - write a path to @out: the
 * configuration of daemon @i, its socket for counters, or the socket of agent
 * @i. */
void sw_net_conf(const struct sw_net *net, uint32_t i, char *out);
void sw_net_stats(const struct sw_net *net, uint32_t i, char *out);
void sw_net_agent(const struct sw_net *net, uint32_t i, char *out);

/* sw_net_role, sw_net_name - return the subcommand of daemon @i; write its name
 * in messages, such as "server" or "agent 1". */
const char *sw_net_role(const struct sw_net *net, uint32_t i);
void sw_net_name(const struct sw_net *net, uint32_t i, char *out);

/* sw_net_missing - return the lowest agent that does not listen yet, or -1 if
 * all listen. */
int sw_net_missing(const struct sw_net *net);

#endif
