/* agent_job.c - the control thread opens, fills and closes a job's worker.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The control thread allocates all memory and builds all tensors.  An lcore
 * owns the worker from JOIN to LEFT, with the tensors added to it.
 */
#include "apps/node/agent_job.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"

/* --- the job, as configured --- */

static uint16_t port_of(const struct sw_conf *c, const char *label)
{
	for (uint16_t i = 0; i < c->n_ports; i++)
		if (!strcmp(c->ports[i].label, label))
			return i;
	return 0; /* not reached: sw_conf_load has checked the label */
}

/* Return the path to an lcore of a server.  The loopback leads to our own
 * server. */
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

/* List each lcore of each server as a server of its own, as the engine sees
 * it. */
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

/* Return whether all ports are memifs.  Their other ends are processes of this
 * machine. */
static bool is_trusted(const struct sw_daemon *d)
{
	for (uint32_t i = 0; i < d->conf.n_ports; i++)
		if (d->conf.ports[i].type != SW_PORT_MEMIF)
			return false;
	return true;
}

static bool has_secret(const struct agent_shared *shared)
{
	return shared->daemon.secrets && shared->daemon.secrets->job.n;
}

static void describe_job(const struct agent_shared *shared,
	struct sw_worker_job *job,
	struct sw_worker_server servers[SW_CONF_ENDPOINTS_MAX],
	char names[SW_CONF_ENDPOINTS_MAX][SW_CONF_NAME_BYTES + 4])
{
	const struct sw_conf *c = &shared->daemon.conf;

	*job = (struct sw_worker_job){.job = c->job.name,
		.node = c->node.name,
		.member = (uint16_t)c->job.agent,
		.n_members = (uint16_t)c->job.agents,
		.n_local = (uint16_t)c->agent.local_ranks,
		.servers = servers,
		.n_servers = list_servers(&shared->daemon, servers, names),
		.n_lcores = (uint8_t)c->job.server_lcores,
		.n_ways = (uint16_t)sw_conf_n_ways(c),
		.n_lanes = (uint8_t)(shared->n_others + 1),
		.lanes = shared->lanes,
		.secret = has_secret(shared) ? shared->secret : NULL};
	if (shared->is_serving)
		job->n_colocated =
			(uint16_t)(c->job.agents * c->job.server_lcores);
}

/* --- a worker of all lanes --- */

static int open_part(struct agent_shared *shared, uint32_t i)
{
	struct sw_worker_server servers[SW_CONF_ENDPOINTS_MAX];
	char names[SW_CONF_ENDPOINTS_MAX][SW_CONF_NAME_BYTES + 4];
	struct agent_part *p = &shared->parts[i];
	struct sw_worker_job job;

	describe_job(shared, &job, servers, names);
	job.lane_i = (uint8_t)i;
	sw_daemon_env(
		&shared->daemon, i, &shared->daemon.lane_reserves[i], &p->env);
	if (i)
		sw_lane_init(&shared->lanes[i - 1], shared->parts[0].worker);
	return sw_worker_open(p->worker, &shared->daemon.params, &p->env,
		&p->events, &job, sw_handoff_ports(&shared->daemon.handoff, i),
		shared->daemon.n_ports, sw_now_ns());
}

/* Copy the job's secret for the worker, which keeps it until it closes, even if
 * the operator replaces the key file. */
static int take_secret(struct agent_shared *shared)
{
	const struct sw_daemon *d = &shared->daemon;

	if (!has_secret(shared)) {
		sw_log(&d->log, is_trusted(d) ? SW_LOG_INFO : SW_LOG_WARN,
			"job %s has no key: whoever reaches its network can "
			"change its sums ([job] key_file; sumwire key makes "
			"one)",
			d->conf.job.name);
		return 0;
	}
	if (!shared->secret)
		shared->secret = sw_crypto_get(sizeof(*shared->secret));
	if (!shared->secret)
		return SW_ENOMEM;
	*shared->secret = d->secrets->job.entries[0].secret;
	return 0;
}

int sw_agent_open_worker(struct agent_shared *shared)
{
	int err = take_secret(shared);

	for (uint32_t i = 0; i <= shared->n_others && !err; i++)
		err = open_part(shared, i);
	return err;
}

void sw_agent_close_worker(struct agent_shared *shared)
{
	for (uint32_t i = 0; i <= shared->n_others; i++)
		sw_worker_close(shared->parts[i].worker);
}

bool sw_agent_make_memory(struct agent_shared *shared)
{
	bool has_worked = false;

	for (uint32_t i = 0; i <= shared->n_others; i++) {
		struct sw_reserve *r = &shared->daemon.lane_reserves[i];

		/* No port refers to this memory: it was released after LEFT. */
		sw_reserve_turn(r);
		sw_reserve_pass(r);
		has_worked |= sw_reserve_work(r);
	}
	return has_worked;
}

/* --- a batch of tensors --- */

/* Return the id of a stream, alone in its batch, that reuses the index of a
 * closed stream; 0: the batch gets new indices. */
static uint32_t again_of(const struct agent_control *c)
{
	const struct sw_host_tensor *t = &c->building.tensors[0];

	if (sw_agent_n_local(c->shared) > 1)
		return t->is_again ? t->node_id : 0;
	return t->kind == SW_EDGE_STREAM && c->n_reused != c->n_freed
		       ? sw_id_next(c->freed[c->n_reused % SW_TENSORS])
		       : 0;
}

/* List the tensors of a batch that no local rank has declared yet. */
static uint32_t list_new(
	const struct agent_control *c, struct sw_worker_tensor *list)
{
	const struct agent_command *b = &c->building;
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->n; i++)
		if (sw_agent_n_local(c->shared) == 1 || b->tensors[i].is_new)
			sw_agent_tensor(c->shared, &b->tensors[i], c->again,
				&list[n++]);
	return n;
}

/* Build the batch in the lanes that lack it.  Returns 0; SW_EAGAIN to call
 * again; or the error that prevents it. */
static int build(struct agent_control *c)
{
	struct sw_worker_tensor list[SW_TENSORS];
	uint32_t n;
	int err = 0;

	/* Choose once for all lanes: more streams may close meanwhile. */
	if (!c->n_lanes_built)
		c->again = again_of(c);
	n = c->building.n_new = list_new(c, list);
	c->building.first = c->again ? c->again : c->n_places;
	for (; n && !err && c->n_lanes_built <= c->shared->n_others;
		c->n_lanes_built += !err)
		err = sw_worker_build(
			c->shared->parts[c->n_lanes_built].worker, list, n);
	if (err && err != SW_EAGAIN)
		while (c->n_lanes_built)
			sw_worker_unbuild(
				c->shared->parts[--c->n_lanes_built].worker,
				c->n_built);
	return err;
}

/* Set where a local rank keeps its contributions.  A tensor whose declaration
 * differs from another rank's has no result: lcore 0 reports it
 * (agent_core.c). */
static void set_sources(const struct agent_control *c)
{
	const struct agent_command *b = &c->building;

	for (uint32_t i = 0; i < b->n && sw_agent_n_local(c->shared) > 1; i++)
		if (b->tensors[i].result)
			sw_worker_source(c->shared->parts[0].worker,
				b->tensors[i].node_id, b->local,
				b->tensors[i].base);
}

static void note_built(struct agent_control *c)
{
	c->n_built += c->building.n_new;
	if (!c->again)
		c->n_places += c->building.n_new;
	else if (sw_agent_n_local(c->shared) == 1)
		c->n_reused++;
}

/* Explain why the batch cannot be built. */
static const char *describe(const struct agent_control *c, int err)
{
	if (err == SW_EBUSY)
		return "all places for tensors and groups are taken; a group "
		       "frees its place when all of its ranks have closed it";
	if (err == SW_EINVAL && c->building.tensors[0].kind == SW_EDGE_STREAM)
		return "a group needs different ranks of the job, this one "
		       "included, and has at most 16 kinds of collectives";
	return sw_error_text(err);
}

void sw_agent_build(struct agent_control *c)
{
	int err;

	if (c->is_ended) /* every process learns that the job is over */
		c->building.n = c->n_lanes_built = 0;
	if (!c->building.n)
		return;
	err = build(c);
	if (err == SW_EAGAIN)
		return;
	if (err) {
		sw_host_declare_failed(c->shared->host, c->declarer, c->batch,
			err, describe(c, err));
	} else {
		set_sources(c);
		note_built(c);
		sw_agent_command(c, &c->building);
	}
	c->building.n = c->n_lanes_built = 0;
}

/* --- closed streams --- */

static void free_one(struct agent_control *c, uint32_t tensor)
{
	for (uint32_t i = 0; i <= c->shared->n_others; i++)
		sw_worker_free(c->shared->parts[i].worker, tensor);
	if (sw_agent_n_local(c->shared) > 1)
		sw_host_gone(c->shared->host, tensor);
	else if (sw_id_next(tensor))
		c->freed[c->n_freed++ % SW_TENSORS] = tensor;
}

void sw_agent_take_gone(struct agent_control *c, bool is_closed)
{
	if (!atomic_exchange(&c->shared->has_gone, false))
		return;
	for (uint32_t w = 0; w < SW_TENSORS / 64; w++) {
		uint64_t gone = atomic_exchange(&c->shared->gone[w], 0);

		for (; gone && !is_closed; gone &= gone - 1)
			free_one(c,
				c->shared->gone_ids[64 * w +
						    (uint32_t)__builtin_ctzll(
							    gone)]);
	}
}
