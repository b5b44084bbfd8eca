/* net.c - configurations of one server and N agents on this machine.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/launch/net.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/error.h"

const char *sw_net_role(uint32_t i)
{
	return i == SW_NET_SERVER ? "server" : "agent";
}

/* "server.ini", "agent0.ini", … */
static void path(const struct sw_net *net, uint32_t i, const char *end,
	char out[SW_NET_PATH_BYTES])
{
	const int n = SW_NET_DIR_BYTES - 1; /* as sw_net_open has it */

	if (i == SW_NET_SERVER)
		snprintf(out, SW_NET_PATH_BYTES, "%.*s/server.%s", n,
			net->scratch.path, end);
	else
		snprintf(out, SW_NET_PATH_BYTES, "%.*s/agent%u.%s", n,
			net->scratch.path, i - 1, end);
}

void sw_net_conf(const struct sw_net *net, uint32_t i, char *out)
{
	path(net, i, "ini", out);
}

void sw_net_agent(const struct sw_net *net, uint32_t i, char *out)
{
	path(net, 1 + i, "sock", out);
}

void sw_net_stats(const struct sw_net *net, uint32_t i, char *out)
{
	path(net, i, "stats", out);
}

/* What all of them begin with. */
static void common_write(const struct sw_net *net, uint32_t i, FILE *f)
{
	char stats[SW_NET_PATH_BYTES];

	sw_net_stats(net, i, stats);
	fprintf(f, "[node]\nrole = %s\nruntime_dir = %s\nname = %s",
		sw_net_role(i), net->scratch.path, sw_net_role(i));
	if (i != SW_NET_SERVER)
		fprintf(f, "%u", i - 1);
	fprintf(f, "\n[log]\nlevel = %s\n[stats]\nsocket = %s\n",
		net->log_level, stats);
	fprintf(f, "[job]\nworkers = %u\n%s", net->n_agents,
		net->job_keys ? net->job_keys : "");
	if (i != SW_NET_SERVER)
		fprintf(f, "rank = %u\n", i - 1);
}

/* Link @agent joins the server, host 1, and that agent, host 2. */
static void port_write(
	const struct sw_net *net, uint32_t agent, bool is_server, FILE *f)
{
	fprintf(f,
		"[port link%u]\ntype = memif\nsocket = %s/link%u\nside = %s\n"
		"ip = 10.77.%u.%u/30\n%s",
		agent, net->scratch.path, agent,
		is_server ? "listen" : "connect", agent, is_server ? 1 : 2,
		net->port_keys ? net->port_keys : "");
}

static void server_write(const struct sw_net *net, FILE *f)
{
	fprintf(f, "[serve]\nquota = %" PRIu64 "B\n", net->quota_bytes);
	for (uint32_t i = 0; i < net->n_agents; i++)
		port_write(net, i, true, f);
}

static void agent_write(const struct sw_net *net, uint32_t i, FILE *f)
{
	char socket[SW_NET_PATH_BYTES];

	sw_net_agent(net, i, socket);
	fprintf(f,
		"[agent]\nsocket = %s\nquota = %" PRIu64
		"B\nlocal_ranks = %u\n%s",
		socket, net->quota_bytes, net->n_local,
		net->agent_keys ? net->agent_keys : "");
	port_write(net, i, false, f);
	fprintf(f, "[server a]\nip = 10.77.%u.1\nport = link%u\n", i, i);
}

static int conf_write(const struct sw_net *net, uint32_t i)
{
	char name[SW_NET_PATH_BYTES];
	bool is_bad;
	FILE *f;

	sw_net_conf(net, i, name);
	f = fopen(name, "w");
	if (!f)
		return SW_EIO;
	common_write(net, i, f);
	if (i == SW_NET_SERVER)
		server_write(net, f);
	else
		agent_write(net, i - 1, f);
	is_bad = ferror(f);
	return fclose(f) || is_bad ? SW_EIO : 0;
}

int sw_net_open(struct sw_net *net)
{
	const char *tmp = getenv("TMPDIR");
	int err;

	/* The names of sockets have to be short. */
	if (!tmp || !*tmp ||
		strlen(tmp) + sizeof("/sumwire-run-XXXXXX") > SW_NET_DIR_BYTES)
		tmp = "/tmp";
	err = sw_scratch_open(&net->scratch, tmp, "sumwire-run");
	for (uint32_t i = 0; i <= net->n_agents && !err; i++)
		err = conf_write(net, i);
	if (!err)
		return 0;
	fprintf(stderr, "sumwire: cannot write configurations into %s: %s\n",
		err && !*net->scratch.path ? tmp : net->scratch.path,
		strerror(errno));
	sw_net_close(net);
	return err;
}

void sw_net_close(struct sw_net *net)
{
	sw_scratch_close(&net->scratch);
}

int sw_net_missing(const struct sw_net *net)
{
	char socket[SW_NET_PATH_BYTES];
	struct stat st;

	for (uint32_t i = 0; i < net->n_agents; i++) {
		sw_net_agent(net, i, socket);
		if (stat(socket, &st) || !S_ISSOCK(st.st_mode))
			return (int)i;
	}
	return -1;
}
