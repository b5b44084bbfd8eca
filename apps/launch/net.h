/* net.h - configurations of a server and N agents on this machine.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * They live in a folder of their own, in $TMPDIR or /tmp, and meet over memif
 * unless another type of port is chosen.
 */
#ifndef SW_APPS_LAUNCH_NET_H
#define SW_APPS_LAUNCH_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/cli/scratch.h"

enum {
	SW_NET_AGENTS_MAX = 32, /* a server has at most 32 ports */
	SW_NET_DAEMONS_MAX = 1 + SW_NET_AGENTS_MAX,
	SW_NET_DIR_BYTES = 80,
	SW_NET_NAME_BYTES = 20,
	SW_NET_PATH_BYTES = 108, /* what a Unix socket's address holds */
};

/* One end of a link; all NULL: nothing is said. */
struct sw_net_end {
	const char *device; /* the interface, where a type has any */
	const char *cpus;   /* of its daemon's lcores: "0,1" */
	const char *keys;   /* lines for its [port] */
};

struct sw_net {
	struct sw_scratch scratch; /* inside */
	uint32_t n_agents;
	/* Without a server: two agents that sum, too. */
	bool is_colocated;
	uint32_t n_local;      /* processes that each agent serves */
	uint32_t n_lcores;     /* polling, of each daemon; 0: 1 */
	const char *log_level; /* of all daemons: "warn" */
	uint64_t quota_bytes;  /* of tensors, at the server and each agent */
	/* Lines for all [job] and [agent] sections; NULL: none. */
	const char *job_keys, *agent_keys;
	/* Each agent has a link to the server, where it has another /24; with
	 * any type but memif there is one agent, as there is one link. */
	const char *port_type;     /* NULL: memif */
	uint32_t ip;               /* of the first /24; 0: 10.77.0.0 */
	struct sw_net_end ends[2]; /* the server's, or first; the agents' */
};

/* sw_net_open - make the folder and in it a configuration per daemon.
 * @net   all but scratch set by the caller
 * Errors: SW_EIO, said on stderr; nothing is left then. */
int sw_net_open(struct sw_net *net);

/* sw_net_close - remove the folder with all that is in it. */
void sw_net_close(struct sw_net *net);

/* sw_net_daemons - how many there are: the server, if there is one, is the
 * first. */
uint32_t sw_net_daemons(const struct sw_net *net);

/* sw_net_folder - where they live; whoever works there may use it, too. */
const char *sw_net_folder(const struct sw_net *net);

/* sw_net_conf, sw_net_stats - paths: the configuration of daemon @i, its socket
 * with counters.  sw_net_agent - the socket of agent @i. */
void sw_net_conf(const struct sw_net *net, uint32_t i, char *out);
void sw_net_stats(const struct sw_net *net, uint32_t i, char *out);
void sw_net_agent(const struct sw_net *net, uint32_t i, char *out);

/* sw_net_role - the subcommand of daemon @i.  sw_net_name - what it is called:
 * "server", "agent 1". */
const char *sw_net_role(const struct sw_net *net, uint32_t i);
void sw_net_name(const struct sw_net *net, uint32_t i, char *out);

/* sw_net_missing - the lowest agent that does not listen yet, or -1. */
int sw_net_missing(const struct sw_net *net);

#endif
