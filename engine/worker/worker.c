/* worker.c - a worker: open, close, and the steps of a turn.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/worker_int.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/zeros.h"
#include "engine/worker/faults.h"
#include "engine/worker/group.h"
#include "engine/worker/lanes.h"
#include "engine/worker/probe.h"
#include "engine/worker/query.h"
#include "engine/worker/round.h"
#include "engine/worker/stall.h"
#include "engine/worker/stream.h"
#include "engine/worker/tensors.h"

enum {
	SETTLE_COST = 4, /* cost of an end, as sw_sweep counts work */
	/* The pause between two lines about the wait to join. */
	TELL_EVERY_NS = 2000000000,
};

/* --- settle the ends and steps that other files have noted --- */

static bool links_are_open(const struct sw_worker *w)
{
	for (uint32_t i = 0; i < w->n_links; i++)
		if (w->links[i].state != SW_LINK_OPEN)
			return false;
	return true;
}

/* Report that this lane, and in lane 0 every lane, has connected and probed. */
static void tell_joined(struct sw_worker *w)
{
	w->has_joined = true;
	if (w->lane_i) {
		w->lanes->theirs = w->tensors;
		w->lanes->carried = w->payload_bytes ? w->payload_bytes
						     : sw_worker_carries(w);
		sw_lane_report(w, SW_LANE_JOINED);
	} else if (!w->payload_bytes) {
		sw_link_owe(&w->links[0], SW_OWE_PATHS);
	}
}

/* When all members have joined, connect to the servers, probe the paths, and
 * run. */
static void check_running(struct sw_worker *w)
{
	if (w->state != SW_WORKER_JOINING || !w->size || w->left_by_ns)
		return;
	for (uint32_t i = 0; i < w->n_links; i++)
		if (w->links[i].state == SW_LINK_IDLE)
			sw_link_start(w, &w->links[i]);
	if (w->n_awaited || !links_are_open(w) ||
		(!w->payload_bytes && !sw_worker_carries(w)))
		return;
	if (!w->has_joined)
		tell_joined(w);
	if (!w->payload_bytes)
		return;
	w->state = SW_WORKER_RUNNING;
	if (!w->lane_i)
		sw_lane_say(w, 0, "");
	for (uint32_t i = 0; i < w->n_links; i++)
		sw_link_declare(w, &w->links[i]);
}

/* Report that all tensors are admitted: lane 0 to the user, when all lanes are
 * done; another lane to lane 0. */
static void check_admitted(struct sw_worker *w)
{
	if (w->n_admitted == w->n_tensors || w->left_by_ns ||
		(w->lane_i && w->n_tensors != w->n_wanted) ||
		!sw_tensors_are_admitted(w))
		return;
	if (w->lane_i) {
		w->n_admitted = w->n_tensors;
		sw_lane_report(w, SW_LANE_DECLARED);
		return;
	}
	for (; w->n_admitted != w->n_tensors; w->n_admitted++) {
		const struct sw_wtensor *t =
			sw_wtensor_numbered(w, w->n_admitted);

		/* the close of its group may wait for this */
		if (t->life->n_closed || w->deaths.n_gone)
			sw_bitmap_add(&w->lacking, t->index);
	}
	w->events.declared(w->events.ctx);
}

/* Report that the worker has failed.  Only lane 0 logs it, for all lanes. */
static void say_failed(struct sw_worker *w)
{
	const struct sw_wtensor *t =
		w->fault.key == SW_KEY_NONE ? NULL
					    : sw_tensor_of_key(w, w->fault.key);
	char text[SW_TEXT_MAX];
	const char *said = w->sentence;

	if (!*said)
		said = sw_fault_text(&w->fault, t && t->kind->is_group,
			t ? t->name : NULL, text);
	if (!w->lane_i)
		sw_log(w->env->log, SW_LOG_ERROR, "job %s, agent %u: %s",
			w->job, w->member, said);
	sw_lane_say(w, w->fault.err, said);
}

static void begin_to_leave(struct sw_worker *w)
{
	sw_lanes_command(w, SW_LANE_LEAVE);
	for (uint32_t i = 0; i < w->n_links; i++) {
		struct sw_link *l = &w->links[i];

		l->state = l->state == SW_LINK_OPEN ? SW_LINK_LEAVING
						    : SW_LINK_CLOSED;
		l->peer.owed &= ~(1u << SW_OWE_DECLARE);
		sw_link_request(w, l);
		sw_link_touch(l);
	}
	sw_rounds_end(w);
}

static uint32_t settle_one(struct sw_worker *w, struct sw_wtensor *t)
{
	sw_bitmap_remove(&w->ended, t->index);
	t->kind->killed(w, t);
	return SETTLE_COST;
}

static void check_left(struct sw_worker *w)
{
	bool is_late = w->now_ns >= w->left_by_ns;

	if (!w->left_by_ns || w->state == SW_WORKER_LEFT || w->n_open ||
		w->is_unsettled ||
		w->n_staying) /* the other lanes have their own deadlines */
		return;
	for (uint32_t i = 0; i < w->n_links; i++)
		if (w->links[i].state == SW_LINK_LEAVING && !is_late)
			return;
	for (uint32_t i = 0; i < w->n_links; i++)
		w->links[i].state = SW_LINK_CLOSED;
	w->state = SW_WORKER_LEFT;
	sw_lane_say(w, w->fault.err, "");
}

static __attribute__((noinline)) uint32_t apply(struct sw_worker *w)
{
	uint32_t n = 1 + sw_sweep(w, &w->ended, settle_one);

	if (!sw_bitmap_is_empty(&w->ended))
		return n; /* the next turn continues */
	w->is_unsettled = false;
	if (w->is_ending) {
		w->is_ending = false;
		w->state = w->is_failing ? SW_WORKER_FAILED : w->state;
		begin_to_leave(w);
		if (w->is_failing)
			say_failed(w);
		return n;
	}
	check_running(w);
	check_admitted(w);
	check_left(w);
	return n;
}

/* Settle the ends and steps that other files have noted: first end tensors and
 * groups, then the worker; continue to join and declare.  Call it at the end of
 * rx, tick and take, and where take begins.  Returns the work done. */
static inline uint32_t settle_noted(struct sw_worker *w)
{
	return w->is_unsettled ? apply(w) : 0;
}

void sw_worker_leave(struct sw_worker *w, const struct sw_fault *why)
{
	static const struct sw_fault nothing = {.key = SW_KEY_NONE};

	sw_worker_end(w, why ? why : &nothing);
	settle_noted(w);
}

static void rx(struct sw_engine *engine, uint64_t now_ns, uint32_t port_i,
	const struct sw_rx_frame *frames, uint32_t n)
{
	struct sw_worker *w = (struct sw_worker *)engine;

	w->now_ns = now_ns;
	sw_worker_frames(w, frames, n);
	settle_noted(w);
}

/* --- joining: the missing peers, and the deadline --- */

/* Describe why a server is not connected yet. */
static const char *describe_silence(const struct sw_worker *w,
	const struct sw_link *l, char text[SW_TEXT_MAX + 2])
{
	if (w->is_refused && w->refused_link == l) {
		snprintf(text, SW_TEXT_MAX + 2, ": %s", w->refused);
		return text;
	}
	if (l->n_cookies < 2)
		return ", which does not answer";
	snprintf(text, SW_TEXT_MAX + 2,
		", which answers, but not to packets of %u B (payload %u): an "
		"MTU on the path is smaller than the least that sumwire uses, "
		"1280",
		SW_PAYLOAD_MIN + SW_HEAD_BYTES + 28, SW_PAYLOAD_MIN);
	return text;
}

/* Does lane 0 wait only for other lanes?  The other lanes have their own
 * deadlines, and name the missing server. */
static bool waits_for_lanes(const struct sw_worker *w)
{
	return w->n_awaited && w->size && links_are_open(w);
}

/* Describe the wait of a joining worker: for a server, or for agents that have
 * not joined, with the coordinator's sentence about them and the server that
 * they have not reached. */
static void describe_wait(const struct sw_worker *w, char *out, size_t size)
{
	uint64_t missing = ~w->joined & (~0ULL >> (64 - w->n_members));
	const struct sw_link *l = w->links;
	char why[SW_TEXT_MAX + 2], at[SW_IP_PORT_TEXT], agents[SW_AGENTS_TEXT];

	for (; l != w->links + w->n_links; l++) {
		if (l->state == SW_LINK_OPEN || l->state == SW_LINK_IDLE)
			continue;
		snprintf(out, size, "server %.40s (%s)%s", l->name,
			sw_ip_port_text(l->peer.path.ip, l->udp, at),
			describe_silence(w, l, why));
		return;
	}
	l = w->links;
	if (waits_for_lanes(w))
		snprintf(out, size, "servers of the node's other lcores");
	else if (missing)
		snprintf(out, size, "%s of %u at server %.40s (%s)%s%s",
			sw_agents_text(missing, agents), w->n_members, l->name,
			sw_ip_port_text(l->peer.path.ip, l->udp, at),
			w->known[0] ? "; " : "", w->known);
	else
		snprintf(out, size,
			"the coordinator to start the job, when all agents "
			"have probed their paths");
}

/* Fail at the deadline.  If a server refused the worker until the other members
 * had given up, name that refusal, not the members that are missing now. */
static void give_up(struct sw_worker *w, uint64_t waited, const char *what)
{
	bool was_refused = w->refused_link && !w->is_refused;

	if (was_refused)
		sw_worker_fail(w, SW_ETIMEDOUT, SW_KEY_NONE,
			"waited %llu s; until %llu s ago server %.40s refused: "
			"%s; now for %s",
			(unsigned long long)(waited / SW_S),
			(unsigned long long)((w->now_ns - w->refused_ns) /
					     SW_S),
			w->refused_link->name, w->refused, what);
	else
		sw_worker_fail(w, SW_ETIMEDOUT, SW_KEY_NONE,
			"waited %llu s for %s",
			(unsigned long long)(waited / SW_S), what);
}

/* Report the wait of a joining worker; fail at the deadline. */
static void tick_joining(struct sw_worker *w)
{
	uint64_t waited = w->now_ns - w->started_ns;
	char what[SW_TEXT_MAX + SW_NAME_MAX - 16];
	char text[SW_TEXT_MAX + SW_NAME_MAX];

	if (w->state != SW_WORKER_JOINING || w->left_by_ns ||
		(w->lane_i && (!w->size || w->has_joined)) || /* lane 0 waits */
		(waited < w->params.join_timeout &&
			w->now_ns - w->warned_ns < TELL_EVERY_NS))
		return;
	w->warned_ns = w->now_ns;
	describe_wait(w, what, sizeof(what));
	if (waited >= w->params.join_timeout && !waits_for_lanes(w)) {
		give_up(w, waited, what);
		return;
	}
	snprintf(text, sizeof(text), "waiting for %s", what);
	sw_lane_say(w, 0, text);
}

/* --- timers --- */

/* Warn of a path to or from a server that loses many frames. */
static void look_for_losses(const struct sw_worker *w, struct sw_link *l)
{
	uint32_t ways =
		sw_losses_look(&l->peer.losses, &l->peer.flow, w->now_ns);
	char far[SW_NAME_MAX + SW_IP_TEXT + 16], ip[SW_IP_TEXT];
	char text[SW_LOSSES_TEXT];

	snprintf(far, sizeof(far), "server %.64s (%s)", l->name,
		sw_ip_text(l->peer.path.ip, ip));
	for (; ways; ways &= ways - 1)
		sw_log(w->env->log, SW_LOG_WARN, "job %s, agent %u: %s", w->job,
			w->member,
			sw_losses_text(&l->peer.losses, &l->peer.flow,
				(uint32_t)__builtin_ctz(ways), far, text));
}

static void tick_link(struct sw_worker *w, struct sw_link *l)
{
	sw_peer_sleep(&l->peer);
	if (l->state == SW_LINK_OPEN) {
		sw_peer_tick_flow(&l->peer);
		sw_peer_tick_alive(&l->peer);
		if (sw_losses_are_due(&l->peer.losses, w->now_ns))
			look_for_losses(w, l);
		sw_peer_wake(&l->peer, sw_query_tick(w, l));
		sw_peer_wake(&l->peer, sw_link_tick_rest(w, l));
		sw_link_touch(l);
	}
	sw_peer_wake(&l->peer, sw_link_tick(w, l));
}

/* Return when to tick a link.  A closing link ignores its flow, including
 * frames in flight. */
static uint64_t tick_at(const struct sw_link *l)
{
	return l->state == SW_LINK_OPEN ? sw_peer_tick_at(&l->peer)
					: l->peer.tick_at_ns;
}

static uint64_t tick(struct sw_engine *engine, uint64_t now_ns, uint64_t gap_ns)
{
	struct sw_worker *w = (struct sw_worker *)engine;
	uint64_t at = UINT64_MAX;

	w->now_ns = now_ns;
	w->gap_ns = gap_ns;
	tick_joining(w);
	settle_noted(w);
	check_left(w);
	if (w->state == SW_WORKER_JOINING || w->left_by_ns)
		at = now_ns + w->params.retry_max;
	for (uint32_t i = 0; i < w->n_links; i++) {
		struct sw_link *l = &w->links[i];

		if (tick_at(l) <= now_ns)
			tick_link(w, l);
		at = sw_min64(at, tick_at(l));
	}
	if (w->n_open)
		at = sw_min64(at, now_ns < w->look.at_ns ? w->look.at_ns
							 : sw_stall_tick(w));
	settle_noted(w);
	if (w->is_unsettled)
		at = now_ns;
	return sw_look_again(at, now_ns, w->n_links);
}

static bool is_busy(const struct sw_engine *engine)
{
	const struct sw_worker *w = (const struct sw_worker *)engine;

	return w->n_open ||
	       (w->state != SW_WORKER_RUNNING && w->state != SW_WORKER_LEFT);
}

uint32_t sw_worker_take(struct sw_worker *w)
{
	uint32_t n = settle_noted(w); /* noted by calls since the last turn */

	n += w->left_by_ns ? sw_rounds_end(w) : sw_dead_work(w);
	if (w->lane_i) {
		n += sw_lane_take_commands(w);
	} else {
		n += sw_deaths_work(w);
		if (!w->left_by_ns)
			n += sw_stream_local_work(w);
		for (uint32_t i = 0; i < w->n_others; i++)
			n += sw_lane_take_reports(w, i);
		n += sw_granules_tell(w);
	}
	n += sw_stream_gone_work(w);
	return n + settle_noted(w);
}

/* --- sessions, tensors and calls, as a trace names them --- */

static bool peer(
	const struct sw_engine *engine, uint32_t i, struct sw_engine_peer *out)
{
	const struct sw_worker *w = (const struct sw_worker *)engine;
	const struct sw_link *l = i < w->n_links ? &w->links[i] : NULL;

	if (!l || !sw_link_has_session(l))
		return false;
	*out = (struct sw_engine_peer){.id = l->peer.id,
		.far_id = l->peer.far_id,
		.seed = l->peer.seed,
		.path = l->peer.path,
		.epoch = w->epoch,
		.member = w->member};
	memcpy(out->job, w->job, sizeof(out->job));
	return true;
}

static bool tensor(const struct sw_engine *engine, uint32_t i, uint32_t key,
	struct sw_engine_tensor *out)
{
	const struct sw_wtensor *t =
		sw_tensor_of_key((const struct sw_worker *)engine, key);

	(void)i;
	if (!t)
		return false;
	*out = (struct sw_engine_tensor){t->name, t->kind->is_group};
	return true;
}

bool sw_worker_call(
	const struct sw_worker *w, uint32_t id, uint32_t *key, uint32_t *number)
{
	const struct sw_wtensor *t = sw_wtensor_at(w, id);

	if (!t)
		return false;
	*key = t->key;
	*number = t->round + !t->is_begun;
	if (t->kind->is_group)
		*number = t->stream->colls[(t->stream->n_newest - 1) % SW_COLLS]
				  .number;
	return true;
}

bool sw_worker_path(
	const struct sw_worker *w, uint32_t i, struct sw_worker_path *out)
{
	const struct sw_link *l = &w->links[i];

	if (i >= w->n_links)
		return false;
	*out = (struct sw_worker_path){.server = l->name,
		.is_open = sw_link_has_session(l),
		.push_bytes = l->pushed_bytes,
		.result_bytes = l->taken_bytes,
		.path = sw_peer_look(&l->peer)};
	return true;
}

/* --- open, close --- */

static void open_link(struct sw_worker *w, uint32_t server_i,
	const struct sw_worker_server *server, struct sw_port *const *ports,
	struct sw_grants *grants)
{
	uint32_t i = w->n_links++;
	struct sw_link *l = &w->links[i];
	uint64_t generation = w->env->random(w->env->ctx) & 0xffff;
	uint64_t *words = l->words;
	const struct sw_port *port = ports[server->path.port_i];
	bool is_far = !port->is_inner;

	for (uint32_t s = 0; s < SW_N_TODO_SETS; s++)
		words = sw_bitmap_init(&l->sets[s], SW_TENSORS, words);
	words = sw_bitmap_init(&l->ends, SW_TENSORS, words);
	words = sw_bitmap_init(&l->closes, SW_TENSORS, words);
	assert(words == l->words + SW_LINK_WORDS);
	l->worker = w;
	l->peer.hub = &w->hub;
	l->peer.index = i;
	l->server_i = server_i;
	l->peer.id = i << 16 | (uint32_t)(generation ? generation : 1);
	l->peer.path = server->path;
	l->is_trusted = port->is_trusted;
	l->peer.has_crc = w->params.has_crc && is_far && !l->is_trusted;
	l->is_keyed = w->secret && is_far && !l->is_trusted;
	if (l->is_keyed) /* tags protect more than CRCs */
		l->peer.has_crc = false;
	l->peer.due_class = SW_N_CLASSES;
	l->here = port->ip;
	l->peer.rx_ns = l->peer.sent_ns = w->now_ns;
	l->udp = server->udp ? server->udp : server->path.udp;
	snprintf(l->name, sizeof(l->name), "%s", server->name);
	sw_flow_init(
		&l->peer.flow, &w->params, is_far ? grants : NULL, is_far, 0);
	sw_flow_note_rtts(&l->peer.flow, &w->stats.rtt_ns);
	if (is_far && grants)
		sw_crowd_add(&w->crowd, &l->peer.flow);
	if (is_far)
		sw_flow_wait(&l->peer.flow);
	w->link_of[server_i] = (uint8_t)i;
}

static uint64_t links_bytes(const struct sw_worker *w)
{
	return w->place.n_servers * sizeof(*w->links);
}

/* Open links to this lane's servers.  Grants limit the results in flight from
 * servers on other machines to the queue in front of this node, of which each
 * lane has its part.  For a single such server, its window is limit enough. */
static int open_links(struct sw_worker *w, const struct sw_worker_job *job,
	struct sw_port *const *ports)
{
	uint32_t n_far = 0;

	for (uint32_t s = 0; s < job->n_servers; s++)
		n_far += !ports[job->servers[s].path.port_i]->is_inner;
	sw_grants_init(&w->grants, sw_params_queue(&w->params, w->n_lanes));
	sw_crowd_open(&w->crowd, &w->grants, false, &w->now_ns);
	sw_place_lanes(&w->place, w->n_lanes, w->lane_of);
	sw_place_map_fold(&w->lane_map, &w->map, w->n_lanes, w->lane_of);
	w->links = w->env->is_lazy
			   ? w->env->mem_get(w->env->ctx, links_bytes(w))
			   : sw_zeros_new(links_bytes(w), false);
	if (!w->links)
		return SW_ENOMEM;
	for (uint32_t s = 0; s < job->n_servers; s++)
		if (w->lane_of[s] == w->lane_i)
			open_link(w, s, &job->servers[s], ports,
				n_far > 1 ? &w->grants : NULL);
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
	memset((char *)w + from, 0, offsetof(struct sw_worker, made) - from);
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
		.rx = rx,
		.tick = tick,
		.tx = sw_worker_tx,
		.is_busy = is_busy,
		.peer = peer,
		.tensor = tensor};
	w->hub = (struct sw_hub){.due = w->due,
		.params = &w->params,
		.stats = &w->stats,
		.now_ns = &w->now_ns,
		.gap_ns = &w->gap_ns,
		.fate = sw_worker_on_fate,
		.build = sw_worker_build_control};
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
	if (!sw_place_check(&w->place))
		return SW_EINVAL;
	sw_place_map_init(&w->map, &w->place);
	err = open_links(w, job, ports);
	if (!err)
		err = sw_tensors_open(w);
	if (err) {
		sw_worker_close(w);
		return err;
	}
	if (!w->lane_i) /* the other lanes wait for SW_LANE_START */
		sw_link_start(w, &w->links[0]);
	return 0;
}

void sw_worker_close(struct sw_worker *w)
{
	sw_tensors_close(w);
	for (uint32_t i = 0; i < w->n_links; i++)
		sw_link_forget_keys(&w->links[i]);
	if (w->links && w->env->is_lazy)
		w->env->mem_put(w->env->ctx, w->links, links_bytes(w));
	else
		free(w->links);
	clear(w);
}
