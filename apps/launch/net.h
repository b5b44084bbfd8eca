/* net.h - configurations of one server and N agents on this machine.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * They meet over memif and live in a folder of their own, in $TMPDIR or /tmp.
 */
#ifndef SW_NET_H
#define SW_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/cli/scratch.h"

enum {
	SW_NET_AGENTS_MAX = 32, /* a server has at most 32 ports */
	SW_NET_DIR_BYTES = 80,
	SW_NET_PATH_BYTES = 108, /* what a Unix socket's address holds */
};

struct sw_net {
	struct sw_scratch scratch;
	uint32_t n_agents;
	uint32_t n_local;      /* processes that each agent serves */
	const char *log_level; /* of all daemons: "warn" */
	uint64_t quota_bytes;  /* of tensors, at the server and each agent */
	/* Lines for all [job], [agent] and [port] sections; NULL: none. */
	const char *job_keys, *agent_keys, *port_keys;
};

/* One of the processes: 0 is the server, 1 + i agent i. */
#define SW_NET_SERVER 0u

/* sw_net_open - make the folder and in it a configuration per process.
 * @net  all but scratch set by the caller
 * Errors: SW_EIO, said on stderr; nothing is left then. */
int sw_net_open(struct sw_net *net);

/* sw_net_close - remove the folder with all that is in it. */
void sw_net_close(struct sw_net *net);

/* sw_net_conf, sw_net_agent, sw_net_stats - paths: the configuration of process
 * @i, the socket of agent @i, the socket with counters of process @i. */
void sw_net_conf(const struct sw_net *net, uint32_t i, char *out);
void sw_net_agent(const struct sw_net *net, uint32_t i, char *out);
void sw_net_stats(const struct sw_net *net, uint32_t i, char *out);

/* sw_net_role - "server" or "agent": the subcommand of process @i. */
const char *sw_net_role(uint32_t i);

/* sw_net_missing - the lowest agent that does not listen yet, or -1. */
int sw_net_missing(const struct sw_net *net);

#endif
