/* net.c - configurations of a server and N agents on this machine.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/launch/net.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "conf/key_file.h"
#include "engine/base/error.h"
#include "engine/base/ip.h"
#include "engine/base/log.h"
#include "engine/keys/crypto.h"

#define IP     sw_ip_v4(10u << 24 | 77u << 16)
#define FOLDER "sumwire-run"

/* Return the number of the first agent among the daemons. */
static uint32_t first_agent(const struct sw_net *net)
{
	return net->is_colocated ? 0 : 1;
}

static bool is_server(const struct sw_net *net, uint32_t i)
{
	return i < first_agent(net);
}

uint32_t sw_net_daemons(const struct sw_net *net)
{
	return first_agent(net) + net->n_agents;
}

const char *sw_net_role(const struct sw_net *net, uint32_t i)
{
	return is_server(net, i) ? "server" : "agent";
}

void sw_net_name(const struct sw_net *net, uint32_t i, char *out)
{
	if (is_server(net, i))
		snprintf(out, SW_NET_NAME_BYTES, "server");
	else
		snprintf(out, SW_NET_NAME_BYTES, "agent %u",
			i - first_agent(net));
}

const char *sw_net_folder(const struct sw_net *net)
{
	return net->scratch.path;
}

/* Write the path of a daemon's file: "server.ini", "agent0.ini", … */
static void path(const struct sw_net *net, uint32_t i, const char *end,
	char out[SW_NET_PATH_BYTES])
{
	const int n = SW_NET_DIR_BYTES - 1; /* limit of sw_net_open */

	if (is_server(net, i))
		snprintf(out, SW_NET_PATH_BYTES, "%.*s/server.%s", n,
			net->scratch.path, end);
	else
		snprintf(out, SW_NET_PATH_BYTES, "%.*s/agent%u.%s", n,
			net->scratch.path, i - first_agent(net), end);
}

void sw_net_conf(const struct sw_net *net, uint32_t i, char *out)
{
	path(net, i, "ini", out);
}

void sw_net_agent(const struct sw_net *net, uint32_t i, char *out)
{
	path(net, first_agent(net) + i, "sock", out);
}

void sw_net_stats(const struct sw_net *net, uint32_t i, char *out)
{
	path(net, i, "stats", out);
}

static void key_path(const struct sw_net *net, char out[SW_NET_PATH_BYTES])
{
	snprintf(out, SW_NET_PATH_BYTES, "%.*s/job.key", SW_NET_DIR_BYTES - 1,
		net->scratch.path);
}

static const char *text_of(const char *keys)
{
	return keys ? keys : "";
}

static uint32_t n_lcores(const struct sw_net *net)
{
	return net->n_lcores ? net->n_lcores : 1;
}

/* Write the sections that begin every configuration. */
static void common_write(const struct sw_net *net, uint32_t i, FILE *f)
{
	const char *cpus = net->ends[i > 0].cpus;
	char stats[SW_NET_PATH_BYTES], key[SW_NET_PATH_BYTES];

	sw_net_stats(net, i, stats);
	/* A signal for all processes of a job also reaches its daemons, which
	 * the ranks still need: so let the daemons drain. */
	fprintf(f,
		"[node]\nrole = %s\nruntime_dir = %s\ndrain = 600s\n"
		"name = %s",
		net->is_colocated ? "both" : sw_net_role(net, i),
		net->scratch.path, sw_net_role(net, i));
	if (!is_server(net, i))
		fprintf(f, "%u", i - first_agent(net));
	fprintf(f, "\n[log]\nlevel = %s\n[stats]\nsocket = %s\n",
		net->log_level, stats);
	if (cpus)
		fprintf(f, "[lcore]\ncpus = %s\n", cpus);
	/* The launcher notices when a daemon ends; a silent daemon only lacks a
	 * core. */
	fprintf(f,
		"[job]\nagents = %u\nserver_lcores = %u\ndead_after = 60s\n%s",
		net->n_agents, n_lcores(net), text_of(net->job_keys));
	key_path(net, key);
	if (!is_server(net, i))
		fprintf(f, "agent = %u\n", i - first_agent(net));
	if (net->is_keyed && !is_server(net, i))
		fprintf(f, "key_file = %s\n", key);
}

/* Write the address of end @end of link @link to @out. */
static const char *ip_of(const struct sw_net *net, uint32_t link, uint32_t end,
	char out[SW_IP_TEXT])
{
	struct sw_ip ip = sw_ip_is_none(net->ip) ? IP : net->ip;

	ip.low += (link << 8) + 1 + end;
	return sw_ip_text(ip, out);
}

static void port_write(
	const struct sw_net *net, uint32_t link, uint32_t end, FILE *f)
{
	const struct sw_net_end *e = &net->ends[end];
	char ip[SW_IP_TEXT];

	fprintf(f, "[port link%u]\ntype = %s\nip = %s/%u\n%s", link,
		net->port_type ? net->port_type : "memif",
		ip_of(net, link, end, ip),
		sw_ip_is_none(net->ip) || sw_ip_is_v4(net->ip) ? 24 : 120,
		text_of(e->keys));
	if (e->device)
		fprintf(f, "device = %s\n", e->device);
	if (!net->port_type || !strcmp(net->port_type, "memif"))
		fprintf(f, "socket = %s/link%u\nside = %s\nqueues = %u\n",
			net->scratch.path, link, end ? "connect" : "listen",
			n_lcores(net));
}

/* Write the sections of a daemon that sums. */
static void serve_write(const struct sw_net *net, FILE *f)
{
	char key[SW_NET_PATH_BYTES];

	key_path(net, key);
	fprintf(f, "[serve]\nquota = %" PRIu64 "B\nlcores = %u\n",
		net->quota_bytes, n_lcores(net));
	if (net->is_keyed && net->is_colocated)
		fprintf(f, "require_key = yes\n");
	else if (net->is_keyed)
		fprintf(f, "key_file = %s\nrequire_key = yes\n", key);
}

static void server_write(const struct sw_net *net, FILE *f)
{
	serve_write(net, f);
	for (uint32_t i = 0; i < net->n_agents; i++)
		port_write(net, i, 0, f);
}

/* Write the list of servers: the server on this link, or both agents. */
static void servers_write(const struct sw_net *net, uint32_t link, FILE *f)
{
	uint32_t n = net->is_colocated ? net->n_agents : 1;
	char ip[SW_IP_TEXT];

	for (uint32_t i = 0; i < n; i++)
		fprintf(f, "[server s%u]\nip = %s\nport = link%u\n", i,
			ip_of(net, link, i, ip), link);
}

static void agent_write(const struct sw_net *net, uint32_t i, FILE *f)
{
	uint32_t link = net->is_colocated ? 0 : i;
	uint32_t end = net->is_colocated ? i : 1;
	char socket[SW_NET_PATH_BYTES];

	sw_net_agent(net, i, socket);
	fprintf(f,
		"[agent]\nsocket = %s\nquota = %" PRIu64
		"B\nlocal_ranks = %u\nlcores = %u\n%s",
		socket, net->quota_bytes, net->n_local, n_lcores(net),
		text_of(net->agent_keys));
	if (net->is_colocated)
		serve_write(net, f);
	port_write(net, link, end, f);
	servers_write(net, link, f);
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
	if (is_server(net, i))
		server_write(net, f);
	else
		agent_write(net, i - first_agent(net), f);
	is_bad = ferror(f);
	return fclose(f) || is_bad ? SW_EIO : 0;
}

/* Draw the job's secret.  The daemons read it from a file that only this user
 * can read, so neither arguments nor environment variables show it. */
static int key_write(const struct sw_net *net)
{
	char path[SW_NET_PATH_BYTES], why[SW_KEY_FILE_WHY_BYTES];
	uint8_t secret[SW_SECRET_BYTES];
	int err = SW_EIO;

	key_path(net, path);
	if (sw_crypto_random(secret, sizeof(secret)))
		err = sw_key_file_write(
			path, secret, "secret of this job", why);
	sw_crypto_wipe(secret, sizeof(secret));
	return err;
}

int sw_net_open(struct sw_net *net)
{
	const char *tmp = getenv("TMPDIR");
	int err;

	/* Names of sockets must be short, and a configuration cannot contain
	 * names with these characters. */
	if (!tmp || !*tmp || strpbrk(tmp, " \t\"';#\\") ||
		strlen(tmp) + sizeof("/" FOLDER "-XXXXXX") > SW_NET_DIR_BYTES)
		tmp = "/tmp";
	err = sw_scratch_open(&net->scratch, tmp, FOLDER);
	for (uint32_t i = 0; i < sw_net_daemons(net) && !err; i++)
		err = conf_write(net, i);
	if (!err && net->is_keyed)
		err = key_write(net);
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
