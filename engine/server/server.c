/* server.c - open, close and tick the summation service of one lcore.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "engine/base/zeros.h"
#include "engine/flow/fanout.h"
#include "engine/server/admit.h"
#include "engine/server/admit_keys.h"
#include "engine/server/job.h"
#include "engine/server/session.h"
#include "engine/server/share.h"

/* --- timers ---
 *
 * A tick checks only sessions that are due.  A frame only moves a session's
 * time forward, which costs one store; an early tick computes the next time. */

/* End a silent member's session.  While the job is FORMING, the member may join
 * again, and the other members wait for it. */
static void bury(struct sw_session *s, enum sw_silence how)
{
	const struct sw_job *job = s->job;
	bool is_forming = job->status.state == SW_JOB_FORMING;
	struct sw_fault why = sw_member_gone(job, s->member, SW_FAULT_SILENT);
	char who[SW_MEMBER_TEXT];

	why.one.op = (uint8_t)how;
	why.one.number = (uint32_t)(s->srv->params.dead_after / SW_S);
	sw_log(s->srv->env->log, SW_LOG_WARN, "job %s: %s %s for %u s",
		job->name, sw_member_text(job, s->member, who),
		sw_silence_text(how), why.one.number);
	sw_count(&s->srv->stats.sessions_dead, 1);
	sw_job_leave(s, is_forming ? NULL : &why);
}

/* Warn if the path to or from a member loses many frames. */
static void look_for_losses(struct sw_session *s)
{
	uint32_t ways =
		sw_losses_look(&s->peer.losses, &s->peer.flow, s->srv->now_ns);
	char far[SW_MEMBER_TEXT], text[SW_LOSSES_TEXT];

	sw_member_text(s->job, s->member, far);
	for (; ways; ways &= ways - 1)
		sw_log(s->srv->env->log, SW_LOG_WARN, "job %s: %s",
			s->job->name,
			sw_losses_text(&s->peer.losses, &s->peer.flow,
				(uint32_t)__builtin_ctz(ways), far, text));
}

static void tick_session(struct sw_session *s)
{
	struct sw_server *srv = s->srv;
	struct sw_peer *p = &s->peer;
	enum sw_silence how = sw_peer_silence(p);

	if (how) {
		bury(s, how);
		return;
	}
	if (sw_flow_tick_at(&p->flow) <= srv->now_ns) {
		sw_peer_tick_flow(p);
		if (sw_flow_may_ask(&p->flow) || sw_flow_is_paced(&p->flow))
			sw_session_touch(s);
	}
	if (p->tick_at_ns <= srv->now_ns) {
		sw_peer_sleep(p);
		sw_peer_tick_alive(p);
		sw_peer_tick_control(p);
		if (sw_losses_are_due(&p->losses, srv->now_ns))
			look_for_losses(s);
	}
	srv->tick_at_ns[p->index] = sw_peer_tick_at(p);
}

/* Return when the next session that waits for its turn may send. */
static uint64_t crowds_at(const struct sw_server *srv)
{
	uint64_t at = UINT64_MAX;

	for (const struct sw_crowd *c = sw_grants_crowds(&srv->grants); c;
		c = sw_crowd_next(c))
		at = sw_min64(at, sw_fanout_at(c));
	return at;
}

static uint64_t on_tick(
	struct sw_engine *engine, uint64_t now_ns, uint64_t gap_ns)
{
	struct sw_server *srv = (struct sw_server *)engine;
	uint64_t at = UINT64_MAX;

	srv->now_ns = now_ns;
	srv->gap_ns = gap_ns;
	if (now_ns < srv->paused_ns && now_ns >= crowds_at(srv)) {
		sw_server_look(srv);
		return sw_min64(srv->paused_ns, crowds_at(srv));
	}
	if (now_ns >= srv->wait_at_ns)
		sw_job_tell_waiting(srv);
	if (now_ns >= srv->look_at_ns)
		sw_jobs_renew(srv);
	at = sw_min64(sw_share_tick(srv), srv->wait_at_ns);
	at = sw_min64(at, sw_admit_aside(srv));
	for (uint32_t i = 0; i < srv->n_sessions; i++)
		if (srv->tick_at_ns[i] <= now_ns && srv->sessions[i])
			tick_session(srv->sessions[i]);
		else if (srv->tick_at_ns[i] <= now_ns)
			srv->tick_at_ns[i] = sw_pending_tick(srv, i);
	if (srv->is_ending && sw_jobs_end(srv))
		at = now_ns;
	sw_server_look(srv); /* a death may change what other members get */
	for (uint32_t i = 0; i < srv->n_sessions; i++)
		at = sw_min64(at, srv->tick_at_ns[i]);
	srv->paused_ns = sw_look_again(0, now_ns, srv->n_sessions);
	return sw_min64(sw_max64(at, srv->paused_ns), crowds_at(srv));
}

/* --- life --- */

static bool server_is_busy(const struct sw_engine *engine)
{
	const struct sw_server *srv = (const struct sw_server *)engine;

	if (sw_server_open_chunks(srv))
		return true;
	for (uint32_t i = 0; i < srv->n_ports; i++)
		if (sw_due_has(&srv->due[i])) /* a control frame is due */
			return true;
	for (uint32_t i = 0; i < srv->n_sessions; i++)
		if (srv->sessions[i] &&
			sw_flow_is_open(&srv->sessions[i]->peer.flow))
			return true;
	return false;
}

int sw_server_open(struct sw_server **out, const struct sw_params *params,
	const struct sw_env *env, struct sw_port *const *ports,
	uint32_t n_ports, uint64_t quota_bytes)
{
	enum { ALIGN = 64 };
	struct sw_server *srv;
	uint8_t *mem;

	*out = NULL;
	if (n_ports == 0 || n_ports > SW_MAX_PORTS)
		return SW_EINVAL;
	mem = sw_zeros_new(sizeof(*srv) + ALIGN, env->is_lazy);
	if (!mem)
		return SW_ENOMEM;
	srv = (struct sw_server *)(mem + ALIGN - (uintptr_t)mem % ALIGN);
	srv->mem = mem;
	srv->engine = (struct sw_engine){.stats = &srv->stats,
		.rx = sw_server_rx,
		.tick = on_tick,
		.tx = sw_server_tx,
		.is_busy = server_is_busy,
		.peer = sw_server_peer,
		.tensor = sw_server_tensor};
	srv->hub = (struct sw_hub){.due = srv->due,
		.params = &srv->params,
		.stats = &srv->stats,
		.now_ns = &srv->now_ns,
		.gap_ns = &srv->gap_ns,
		.fate = sw_session_fate,
		.build = sw_server_build};
	srv->params = *params;
	srv->env = env;
	srv->quota.bytes = quota_bytes;
	srv->n_lcores = 1;
	srv->wait_at_ns = UINT64_MAX;
	srv->aside_at_ns = UINT64_MAX;
	srv->n_ports = n_ports;
	sw_grants_init(&srv->grants, sw_params_queue(params, 1));
	for (uint32_t i = 0; i < n_ports; i++) {
		srv->max_payload[i] = ports[i]->max_payload;
		srv->is_inner[i] = ports[i]->is_inner;
		srv->is_trusted[i] = ports[i]->is_trusted;
		srv->ip[i] = ports[i]->ip;
		srv->udp[i] = ports[i]->udp;
	}
	srv->secret[0] = env->random(env->ctx);
	srv->secret[1] = env->random(env->ctx);
	/* Start at random generations, so that the session ids of an earlier
	 * run are invalid. */
	for (uint32_t i = 0; i < SW_MAX_SESSIONS; i++)
		srv->generations[i] = (uint16_t)env->random(env->ctx);
	*out = srv;
	return 0;
}

void sw_server_set_lcores(
	struct sw_server *srv, uint32_t n, _Atomic uint64_t *all_used)
{
	srv->n_lcores = n;
	sw_grants_init(&srv->grants, sw_params_queue(&srv->params, n));
	srv->quota.all_used = all_used;
}

/* End a session whose secret was removed, and tell its worker once. */
static void expel(struct sw_session *s)
{
	struct sw_server *srv = s->srv;
	struct sw_header h = {.type = SW_ERROR,
		.session = s->peer.far_id,
		.payload_len = sizeof(struct sw_fault)};
	struct sw_fault why = {.err = SW_EREFUSED,
		.key = SW_KEY_NONE,
		.text = "the server has taken this agent's key away"};

	sw_flow_send_ctl(&s->peer.flow, &h); /* to get its packet number */
	sw_server_reply(srv, s->peer.path, s->peer.seal, &h, &why);
	snprintf(why.text, sizeof(why.text),
		"the key of agent %u was taken away", s->member);
	sw_log(srv->env->log, SW_LOG_WARN, "job %s: %s", s->job->name,
		why.text);
	sw_job_leave(s, &why);
}

/* Return whether the secret of @s was removed without a replacement. */
static bool is_keyless(const struct sw_session *s, const struct sw_keyring *k)
{
	const char *job = s->job->name;
	const struct sw_secret *secret = sw_admit_secret(s->srv, s->key_id);

	return !sw_keyring_has_job(k, s->has_own_key ? job : "") &&
	       !(secret && sw_keyring_has(k, secret, job, s->srv->now_ns));
}

void sw_server_set_keys(struct sw_server *srv, const struct sw_keyring *keyring)
{
	srv->keyring = keyring;
	/* Once sessions may have tags, the server keeps checking for them. */
	srv->has_tags |= keyring && (keyring->n || keyring->is_required);
	for (uint32_t i = 0; i < srv->n_sessions; i++) {
		struct sw_session *s = srv->sessions[i];
		const struct sw_pending *p = &srv->pending[i];

		if (s && s->peer.seal && is_keyless(s, keyring))
			expel(s);
		else if (!s && p->seal && !sw_admit_secret(srv, p->join.key_id))
			sw_pending_drop(srv, i);
	}
}

struct sw_engine *sw_server_engine(struct sw_server *srv)
{
	return &srv->engine;
}

const struct sw_stats *sw_server_stats(const struct sw_server *srv)
{
	return &srv->stats;
}

void sw_server_close(struct sw_server *srv)
{
	if (!srv)
		return;
	for (uint32_t i = 0; i < srv->n_sessions; i++)
		if (srv->sessions[i])
			sw_job_leave(srv->sessions[i], NULL);
	while (sw_jobs_end(srv))
		;
	for (uint32_t i = 0; i < SW_MAX_SESSIONS; i++)
		sw_seal_free(srv->pending[i].seal);
	for (uint32_t i = 0; i < SW_MAX_JOBS && srv->env->mem_drop; i++)
		srv->env->mem_drop(srv->env->ctx, i);
	free(srv->mem);
}

bool sw_server_copy_lent(struct sw_server *srv)
{
	bool all = true;

	for (uint32_t i = 0; i < SW_MAX_JOBS; i++)
		all &= sw_shard_copy_lent(&srv->jobs[i].shard);
	return all;
}

bool sw_server_keep_stream(struct sw_server *srv, uint32_t key)
{
	bool all = true;

	for (uint32_t i = 0; i < SW_MAX_JOBS; i++)
		all &= sw_shard_keep_stream(&srv->jobs[i].shard, key);
	return all;
}

void sw_server_stop(struct sw_server *srv)
{
	srv->is_stopping = true;
	for (uint32_t i = 0; i < SW_MAX_JOBS; i++)
		srv->jobs[i].shard.is_draining = true;
}

void sw_server_fail_all(struct sw_server *srv, const char *why)
{
	for (uint32_t i = 0; i < srv->n_sessions; i++)
		if (srv->sessions[i])
			sw_session_fail(srv->sessions[i], SW_ESERVER,
				SW_KEY_NONE, "%s", why);
}

uint64_t sw_server_open_chunks(const struct sw_server *srv)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < SW_MAX_JOBS; i++)
		n += srv->jobs[i].shard.n_open;
	return n;
}
