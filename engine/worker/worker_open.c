/* worker_open.c - open a worker with its links, and close it.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/worker_int.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/base/zeros.h"

/* Limit what servers on other machines have in flight to us to the queue before
 * us, of which each lane has its part.  Returns NULL for one such server: its
 * window is limit enough. */
static struct sw_grants *share_grants(struct sw_worker *w,
	const struct sw_worker_job *job, struct sw_port *const *ports)
{
	uint32_t n = 0;

	for (uint32_t s = 0; s < job->n_servers; s++)
		n += !ports[job->servers[s].path.port_i]->is_inner;
	sw_grants_init(&w->grants, sw_params_queue(&w->params, w->n_lanes));
	return n > 1 ? &w->grants : NULL;
}

static void open_link(struct sw_worker *w, uint32_t server_i,
	const struct sw_worker_server *server, struct sw_port *const *ports,
	struct sw_grants *grants)
{
	uint32_t i = w->n_links++;
	struct sw_link *l = &w->links[i];
	uint64_t generation = w->env->random(w->env->ctx) & 0xffff;
	uint64_t *words = l->words;

	for (uint32_t s = 0; s < SW_N_TODO_SETS; s++)
		words = sw_bitmap_init(&l->sets[s], SW_TENSORS, words);
	words = sw_bitmap_init(&l->ends, SW_TENSORS, words);
	words = sw_bitmap_init(&l->closes, SW_TENSORS, words);
	assert(words == l->words + SW_LINK_WORDS);
	l->worker = w;
	l->peer.index = i;
	l->server_i = server_i;
	l->peer.id = i << 16 | (uint32_t)(generation ? generation : 1);
	l->peer.path = server->path;
	l->peer.has_crc =
		w->params.has_crc && !ports[l->peer.path.port_i]->is_inner;
	l->is_keyed = w->secret && !ports[l->peer.path.port_i]->is_inner;
	if (l->is_keyed) /* tags protect more than CRCs */
		l->peer.has_crc = false;
	l->peer.due_class = SW_N_CLASSES;
	l->here = ports[l->peer.path.port_i]->ip;
	l->peer.rx_ns = l->peer.sent_ns = w->now_ns;
	l->udp = server->udp ? server->udp : server->path.udp;
	snprintf(l->name, sizeof(l->name), "%s", server->name);
	sw_flow_init(&l->peer.flow, &w->params,
		ports[l->peer.path.port_i]->is_inner ? NULL : grants, 0);
	w->link_of[server_i] = (uint8_t)i;
}

/* Open links to this lane's servers. */
static int open_links(struct sw_worker *w, const struct sw_worker_job *job,
	struct sw_port *const *ports)
{
	struct sw_grants *grants = share_grants(w, job, ports);
	int err;

	sw_place_lanes(&w->place, w->n_lanes, w->lane_of);
	err = sw_place_map_fold(&w->lane_map, &w->map, w->n_lanes, w->lane_of);
	if (err)
		return err;
	w->links = sw_zeros_new(job->n_servers * sizeof(*w->links));
	if (!w->links)
		return SW_ENOMEM;
	for (uint32_t s = 0; s < job->n_servers; s++)
		if (w->lane_of[s] == w->lane_i)
			open_link(w, s, &job->servers[s], ports, grants);
	return 0;
}

static bool is_name(const char *name)
{
	return name[0] && strnlen(name, SW_NAME_MAX) < SW_NAME_MAX;
}

static bool is_valid(
	const struct sw_worker_job *job, uint32_t n_lanes, uint32_t n_ports)
{
	if (n_ports == 0 || n_ports > SW_MAX_PORTS || job->n_servers == 0 ||
		job->n_servers > SW_MAX_SERVERS || job->n_members == 0 ||
		job->n_members > SW_MAX_MEMBERS ||
		job->member >= job->n_members || job->n_local == 0 ||
		job->n_local > SW_LOCAL_RANKS || n_lanes > SW_LANES ||
		n_lanes > job->n_servers || job->lane_i >= n_lanes ||
		(n_lanes > 1 && !job->lanes))
		return false;
	for (uint32_t i = 0; i < job->n_servers; i++)
		if (job->servers[i].path.port_i >= n_ports)
			return false;
	return is_name(job->job) && is_name(job->node);
}

/* Clear all fields except the counters, which continue: another thread may be
 * reading them. */
static void clear(struct sw_worker *w)
{
	size_t from = offsetof(struct sw_worker, stats) + sizeof(w->stats);

	memset(w, 0, offsetof(struct sw_worker, stats));
	memset((char *)w + from, 0, sizeof(*w) - from);
}

int sw_worker_open(struct sw_worker *w, const struct sw_params *params,
	const struct sw_env *env, const struct sw_worker_events *events,
	const struct sw_worker_job *job, struct sw_port *const *ports,
	uint32_t n_ports, uint64_t now_ns)
{
	uint32_t n_lanes = job->n_lanes ? job->n_lanes : 1;
	int err;

	if (!is_valid(job, n_lanes, n_ports))
		return SW_EINVAL;
	clear(w);
	w->engine = (struct sw_engine){.stats = &w->stats,
		.rx = sw_worker_rx,
		.tick = sw_worker_tick,
		.tx = sw_worker_tx,
		.is_busy = sw_worker_is_busy};
	w->params = *params;
	w->carried = params->payload;
	w->env = env;
	w->events = *events;
	w->now_ns = w->started_ns = w->warned_ns = now_ns;
	w->member = job->member;
	w->n_members = job->n_members;
	w->n_local = job->n_local;
	w->lane_i = job->lane_i;
	w->n_lanes = n_lanes;
	w->n_others = job->lane_i ? 0 : n_lanes - 1;
	w->n_awaited = w->n_staying = w->n_others;
	w->lanes = job->lane_i ? &job->lanes[job->lane_i - 1] : job->lanes;
	w->n_ways = job->n_ways ? job->n_ways : 1;
	w->secret = job->secret;
	if (!w->params.policy)
		w->params.policy = &sw_policies[SW_POLICY_BYTESCHEDULER];
	w->place = (struct sw_place_job){.n_members = job->n_members,
		.n_servers = (uint16_t)job->n_servers,
		.n_colocated = job->n_colocated,
		.n_lcores = job->n_lcores};
	snprintf(w->job, sizeof(w->job), "%s", job->job);
	snprintf(w->node_name, sizeof(w->node_name), "%s", job->node);
	err = sw_place_map_open(&w->map, &w->place);
	if (!err)
		err = open_links(w, job, ports);
	if (!err)
		err = sw_tensors_open(w);
	if (err) {
		sw_worker_close(w);
		return err;
	}
	if (!w->lane_i) /* the others wait until the job runs */
		sw_link_start(w, &w->links[0]);
	return 0;
}

void sw_worker_close(struct sw_worker *w)
{
	sw_tensors_close(w);
	sw_place_map_close(&w->map);
	sw_place_map_close(&w->lane_map);
	for (uint32_t i = 0; i < w->n_links; i++)
		sw_link_forget_keys(&w->links[i]);
	free(w->links);
	clear(w);
}
