/* agent_job.c - what the configuration says of the job, to a worker.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "apps/node/agent.h"

enum { WINDOW_BYTES = 1 << 20 }; /* of a stream at a server's core, at most */

static uint16_t port_of(const struct sw_conf *c, const char *label)
{
	for (uint16_t i = 0; i < c->n_ports; i++)
		if (!strcmp(c->ports[i].label, label))
			return i;
	return 0; /* sw_conf_load has checked that it exists */
}

/* The way to an lcore of a server.  Our own is behind the loopback. */
static struct sw_path path_of(const struct sw_daemon *d,
	const struct sw_conf_server *s, uint32_t lcore)
{
	if (sw_conf_is_own(&d->conf, s))
		return (struct sw_path){.ip = s->ip,
			.udp = (uint16_t)lcore,
			.port_i = (uint16_t)d->n_dpdk_ports};
	return (struct sw_path){.ip = s->ip,
		.udp = (uint16_t)(s->udp_port + lcore),
		.port_i = port_of(&d->conf, s->port)};
}

/* To the engine each lcore of each server is a server. */
static uint32_t list_servers(const struct sw_daemon *d,
	struct sw_worker_server out[SW_CONF_ENDPOINTS_MAX],
	char names[SW_CONF_ENDPOINTS_MAX][SW_CONF_NAME_BYTES + 4])
{
	uint32_t n = 0, n_lcores = d->conf.job.server_lcores;

	for (uint32_t i = 0; i < d->conf.n_servers; i++)
		for (uint32_t k = 0; k < n_lcores; k++, n++) {
			const struct sw_conf_server *s = &d->conf.servers[i];

			if (n_lcores == 1)
				snprintf(names[n], sizeof(names[n]), "%s",
					s->label);
			else
				snprintf(names[n], sizeof(names[n]), "%s.%u",
					s->label, k);
			out[n] = (struct sw_worker_server){.name = names[n],
				.path = path_of(d, s, k),
				.udp = (uint16_t)(s->udp_port + k)};
		}
	return n;
}

void sw_agent_job(const struct agent_shared *shared, struct sw_worker_job *job,
	struct sw_worker_server servers[SW_CONF_ENDPOINTS_MAX],
	char names[SW_CONF_ENDPOINTS_MAX][SW_CONF_NAME_BYTES + 4])
{
	const struct sw_conf *c = &shared->daemon.conf;

	*job = (struct sw_worker_job){.job = c->job.name,
		.node = c->node.name,
		.rank = (uint16_t)c->job.rank,
		.n_members = (uint16_t)c->job.agents,
		.n_local = (uint16_t)c->agent.local_ranks,
		.servers = servers,
		.n_servers = list_servers(&shared->daemon, servers, names),
		.n_lcores = (uint8_t)c->job.server_lcores,
		.n_ways = (uint16_t)sw_conf_n_ways(c),
		.n_lanes = (uint8_t)(shared->n_others + 1),
		.lanes = shared->lanes};
	if (shared->is_serving)
		job->n_colocated =
			(uint16_t)(c->job.agents * c->job.server_lcores);
}

/* As a client asks, but so small that a server's core has it in its cache. */
static uint8_t window_of(const struct agent_shared *shared, uint8_t log2)
{
	uint32_t payload = shared->daemon.params.payload;

	while (log2 > SW_WINDOW_MIN_LOG2 && payload << log2 > WINDOW_BYTES)
		log2--;
	return log2;
}

void sw_agent_tensor(const struct agent_shared *shared,
	const struct sw_host_tensor *t, uint32_t again,
	struct sw_worker_tensor *out)
{
	/* Of one that differs from another local rank's there is no result. */
	char *base = t->result ? t->result : t->base;

	if (t->kind == SW_EDGE_STREAM)
		*out = (struct sw_worker_tensor){.name = t->name,
			.priority = t->priority,
			.window_log2 = window_of(shared, (uint8_t)t->dtype),
			.n_ranks = (uint32_t)t->n_elems,
			.ranks = t->ranks,
			.again = again};
	else
		*out = (struct sw_worker_tensor){.name = t->name,
			.n_elems = t->n_elems,
			.dtype = t->dtype,
			.priority = t->priority,
			.base = sw_agent_n_local(shared) == 1 ? t->base
							      : t->result,
			.granules = t->kind == SW_EDGE_GROWING
					    ? (void *)(base + sw_edge_granules(
								      t->bytes))
					    : NULL,
			.is_async = t->kind == SW_EDGE_ASYNC};
}
