/* server.c - the summation service of one lcore: frames in, frames out.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/server/server.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/server/admit.h"
#include "engine/server/job.h"
#include "engine/server/mismatch.h"
#include "engine/server/server_int.h"
#include "engine/server/session.h"

static struct sw_server *server_of(struct sw_node *node)
{
	return (struct sw_server *)node;
}

/* --- sessions --- */

/* Say to @peer that session @id is not, or no longer, open here. */
static void say_left(
	struct sw_server *srv, struct sw_path path, uint32_t peer, uint32_t id)
{
	struct sw_header h = {.type = SW_LEFT, .session = peer, .key = id};

	sw_server_reply(srv, path, &h, NULL);
}

/* A frame under the id that the JOIN at @i was offered: it becomes a session,
 * unless it is given up. */
static struct sw_session *confirm(
	struct sw_server *srv, uint32_t i, const struct sw_header *h)
{
	const struct sw_pending *p = &srv->pending[i];

	if (h->type != SW_LEAVE)
		return sw_pending_confirm(srv, i);
	say_left(srv, p->path, p->join.session, p->id);
	sw_pending_drop(srv, i);
	return NULL;
}

static struct sw_session *session_of(struct sw_server *srv,
	const struct sw_path *path, const struct sw_header *h)
{
	uint32_t i = h->session >> 16;
	bool is_known = h->session && i < srv->n_sessions;
	struct sw_session *s = is_known ? srv->sessions[i] : NULL;
	const struct sw_pending *p = is_known ? &srv->pending[i] : NULL;

	if (!is_known || h->session != (s ? s->peer.id : p->id)) {
		sw_count(&srv->stats.rx_session, 1);
		if (h->session)
			say_left(srv, *path, 0, h->session);
		return NULL;
	}
	if (memcmp(s ? &s->peer.path : &p->path, path, sizeof(*path)) != 0) {
		sw_count(&srv->stats.rx_source, 1);
		return NULL;
	}
	return s ? s : confirm(srv, i, h);
}

/* --- frames in --- */

static void refresh_members(struct sw_server *srv, const struct sw_job *job)
{
	for (uint32_t m = 0; m < job->n_members; m++)
		if (job->members[m].session)
			sw_session_refresh(srv, job->members[m].session);
}

static void on_push(struct sw_server *srv, struct sw_session *s,
	const struct sw_header *h, const uint8_t *payload, bool is_lent)
{
	struct sw_shard *sh = &s->job->shard;
	struct sw_answer refused;

	if (s->job->state != SW_JOB_RUNNING) {
		sw_count(&srv->stats.rx_state, 1);
		return;
	}
	if (sw_peer_is_overdrawn(&s->peer, srv->due, h, &srv->stats))
		return;
	switch (sw_shard_push(sh, s->member, h, payload, is_lent)) {
	case SW_PUSH_COMPLETE:
		sw_peer_accept(&s->peer, srv->due, h, srv->now_ns);
		refresh_members(srv, s->job);
		break;
	case SW_PUSH_FOLD:
	case SW_PUSH_HAVE:
	case SW_PUSH_DONE:
	case SW_PUSH_OLD:
		sw_peer_accept(&s->peer, srv->due, h, srv->now_ns);
		sw_session_refresh(srv, s);
		break;
	case SW_PUSH_CRC:
		refused = sw_shard_answer(
			sh, h->key, h->round, h->chunk, SW_ANSWER_CRC);
		sw_session_answer(srv, s, &refused);
		break;
	case SW_PUSH_DIFFERS:
		sw_session_differs(srv, s, h);
		break;
	case SW_PUSH_DEAD:
		sw_peer_accept(&s->peer, srv->due, h, srv->now_ns);
		sw_session_tell_dead(srv, s, h->key);
		break;
	case SW_PUSH_VIOLATION:
	case SW_PUSH_DROP:
		break;
	}
}

static bool tell_if_dead(
	struct sw_server *srv, struct sw_session *s, const struct sw_pull *pull)
{
	const struct sw_stensor *t = sw_shard_tensor(&s->job->shard, pull->key);

	if (!t || !sw_stensor_is_dead(t, pull->round))
		return false;
	sw_session_tell_dead(srv, s, pull->key);
	return true;
}

/* What is pulled waits for @rank, which left. */
static void fail_left(struct sw_server *srv, struct sw_session *s,
	const struct sw_answer *a, uint32_t rank)
{
	const struct sw_shard *sh = &s->job->shard;

	sw_session_fail(srv, s, SW_EPEER, a->key,
		"rank %u (node %.40s) left; round %u of tensor %.64s cannot "
		"complete",
		rank, s->job->members[rank].node, a->round,
		sw_stensor_view(sh, sw_shard_tensor(sh, a->key)).name);
}

static void on_pull(struct sw_server *srv, struct sw_session *s,
	const struct sw_header *h, const uint8_t *payload)
{
	struct sw_pull pull;
	struct sw_answer answer;
	uint32_t left;

	if (s->job->state != SW_JOB_RUNNING) {
		sw_count(&srv->stats.rx_state, 1);
		return;
	}
	for (uint32_t at = 0; at < h->payload_len; at += sizeof(pull)) {
		memcpy(&pull, payload + at, sizeof(pull));
		sw_count(&srv->stats.pulls, 1);
		if (tell_if_dead(srv, s, &pull))
			continue;
		if (!sw_shard_pull(&s->job->shard, s->member, &pull, &answer))
			continue;
		sw_session_answer(srv, s, &answer);
		left = sw_job_left(s->job, answer.missing);
		if (left < SW_MAX_MEMBERS)
			fail_left(srv, s, &answer, left);
	}
	sw_session_refresh(srv, s);
}

static void on_ack(struct sw_server *srv, struct sw_session *s,
	const struct sw_header *h, const uint8_t *payload)
{
	sw_peer_on_ack(&s->peer, h, payload, srv->now_ns, sw_session_fate, s,
		&srv->stats);
	sw_session_refresh(srv, s);
}

static void on_leave(
	struct sw_server *srv, struct sw_session *s, const uint8_t *payload)
{
	struct sw_job *job = s->job;
	uint16_t rank = s->member;
	struct sw_fault fault;
	bool is_new;

	memcpy(&fault, payload, sizeof(fault));
	if (fault.err > 0) /* errors are negative */
		fault.err = SW_EPROTO;
	sw_text_clean(fault.text, sizeof(fault.text));
	say_left(srv, s->peer.path, s->peer.far_id, s->peer.id);
	/* not what we have told it */
	is_new = fault.err && !s->fault.err && job->state != SW_JOB_FAILED;
	sw_log(srv->env->log, SW_LOG_INFO, "job %s: rank %u left%s%s",
		job->name, rank, is_new ? ": " : "", is_new ? fault.text : "");
	sw_count(&srv->stats.sessions_closed, 1);
	sw_session_close(srv, s);
	sw_job_leave(srv, job, rank, fault.err, fault.text);
}

/* A control frame of an open session that is newer than all before it. */
static void on_control(struct sw_server *srv, struct sw_session *s,
	const struct sw_header *h, const uint8_t *payload)
{
	switch (h->type) {
	case SW_PULL:
		on_pull(srv, s, h, payload);
		return;
	case SW_DECLARE:
		sw_admit_declare(srv, s, h, payload);
		return;
	case SW_KEEPALIVE:
		s->status_seq = h->aux;
		return;
	case SW_TUNE:
		sw_job_tune(srv, s, payload);
		return;
	case SW_MISMATCH:
		sw_session_on_mismatch(srv, s, h, payload);
		return;
	case SW_LEAVE:
		on_leave(srv, s, payload);
		return;
	default: /* types that only a server sends */
		sw_count(&srv->stats.rx_state, 1);
	}
}

static void on_session(struct sw_server *srv, const struct sw_rx_frame *f,
	const struct sw_header *h)
{
	struct sw_session *s = session_of(srv, &f->from, h);
	const uint8_t *payload = f->payload;
	bool is_newer;

	if (!s)
		return;
	s->peer.rx_ns = srv->now_ns;
	sw_session_touch(srv, s);
	is_newer = sw_flow_is_newer(&s->peer.flow, h);
	if (sw_flow_rx(&s->peer.flow, h))
		sw_session_refresh(srv, s);
	if (s->fault.err && srv->now_ns >= s->error_at_ns) {
		s->error_at_ns = srv->now_ns + srv->params.retry_min;
		sw_session_owe(srv, s, SW_OWE_ERROR);
	}
	if (h->type == SW_PUSH)
		on_push(srv, s, h, payload, f->is_lent);
	else if (h->class != SW_CLASS_CTL) /* a RESULT */
		sw_count(&srv->stats.rx_state, 1);
	else if (h->type == SW_ACK)
		on_ack(srv, s, h, payload);
	else if (is_newer)
		on_control(srv, s, h, payload);
}

static void rx_one(struct sw_server *srv, const struct sw_rx_frame *f)
{
	struct sw_header h;

	if (!sw_frame_open(f, &h, &srv->stats))
		return;
	if (h.type == SW_HELLO)
		sw_admit_hello(srv, f, f->payload);
	else if (h.type == SW_JOIN)
		sw_admit_join(srv, f->from, &h, f->payload);
	else
		on_session(srv, f, &h);
}

static void server_rx(struct sw_node *node, uint64_t now_ns, uint32_t port_i,
	const struct sw_rx_frame *frames, uint32_t n)
{
	struct sw_server *srv = server_of(node);

	(void)port_i; /* each frame carries it */
	srv->now_ns = now_ns;
	for (uint32_t i = 0; i < n; i++)
		rx_one(srv, &frames[i]);
}

/* --- life --- */

static bool server_is_busy(const struct sw_node *node)
{
	const struct sw_server *srv = (const struct sw_server *)node;

	if (sw_server_open_chunks(srv))
		return true;
	for (uint32_t i = 0; i < srv->n_sessions; i++)
		if (srv->pending[i].is_owed ||
			(srv->sessions[i] &&
				(sw_flow_is_open(
					 &srv->sessions[i]->peer.flow) ||
					srv->sessions[i]->peer.owed)))
			return true;
	return false;
}

int sw_server_open(struct sw_server **out, const struct sw_params *params,
	const struct sw_env *env, struct sw_port *const *ports,
	uint32_t n_ports, uint64_t quota_bytes)
{
	struct sw_server *srv;

	*out = NULL;
	if (n_ports == 0 || n_ports > SW_MAX_PORTS)
		return SW_EINVAL;
	srv = aligned_alloc(64, sizeof(*srv));
	if (!srv)
		return SW_ENOMEM;
	*srv = (struct sw_server){.node = {.stats = &srv->stats,
					  .rx = server_rx,
					  .tick = sw_server_tick,
					  .tx = sw_server_tx,
					  .is_busy = server_is_busy},
		.params = *params,
		.env = env,
		.quota_bytes = quota_bytes,
		.n_lcores = 1,
		.wait_at_ns = UINT64_MAX,
		.n_ports = n_ports,
		.grants.total = 2 * params->window_bytes / SW_QUANTUM};
	for (uint32_t i = 0; i < n_ports; i++) {
		srv->max_payload[i] = ports[i]->max_payload;
		srv->is_inner[i] = ports[i]->is_inner;
	}
	srv->secret[0] = env->random(env->ctx);
	srv->secret[1] = env->random(env->ctx);
	/* Ids of an earlier life of this server must not be valid again. */
	for (uint32_t i = 0; i < SW_MAX_SESSIONS; i++)
		srv->generations[i] = (uint16_t)env->random(env->ctx);
	*out = srv;
	return 0;
}

void sw_server_set_lcores(
	struct sw_server *srv, uint32_t n, _Atomic uint64_t *all_used)
{
	srv->n_lcores = n;
	srv->all_used = all_used;
}

struct sw_node *sw_server_node(struct sw_server *srv)
{
	return &srv->node;
}

const struct sw_stats *sw_server_stats(const struct sw_server *srv)
{
	return &srv->stats;
}

uint64_t sw_server_used(const struct sw_server *srv)
{
	return sw_word(&srv->used_bytes);
}

void sw_server_close(struct sw_server *srv)
{
	if (!srv)
		return;
	for (uint32_t i = 0; i < srv->n_sessions; i++)
		if (srv->sessions[i])
			sw_session_close(srv, srv->sessions[i]);
	for (uint32_t i = 0; i < SW_MAX_JOBS; i++)
		if (srv->jobs[i].is_used)
			sw_job_close(srv, &srv->jobs[i]);
	free(srv);
}

void sw_server_copy_lent(struct sw_server *srv)
{
	for (uint32_t i = 0; i < SW_MAX_JOBS; i++)
		if (srv->jobs[i].is_used)
			sw_shard_copy_lent(&srv->jobs[i].shard);
}

void sw_server_stop(struct sw_server *srv)
{
	srv->is_stopping = true;
	for (uint32_t i = 0; i < SW_MAX_JOBS; i++)
		sw_shard_drain(&srv->jobs[i].shard);
}

void sw_server_fail_all(struct sw_server *srv, const char *why)
{
	for (uint32_t i = 0; i < srv->n_sessions; i++)
		if (srv->sessions[i])
			sw_session_fail(srv, srv->sessions[i], SW_ESERVER,
				SW_KEY_NONE, "%s", why);
}

uint64_t sw_server_open_chunks(const struct sw_server *srv)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < SW_MAX_JOBS; i++)
		if (srv->jobs[i].is_used)
			n += sw_shard_n_open(&srv->jobs[i].shard);
	return n;
}
