/* server_rx.c - handle the frames that arrive at a server, in bursts.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "engine/server/admit.h"
#include "engine/server/groups.h"
#include "engine/server/job.h"
#include "engine/server/session.h"

enum {
	CALLS_MAX = 2,           /* streams compared per QUERY */
	PROBE_GAP_NS = 10000000, /* between two PROBEs while the job runs */
};

/* --- sessions --- */

/* Tell worker @peer that session @id is unknown or closed here.
 * @seed  of the session, or of the frame to answer
 * @seal  keys of a keyed session, in which the frame has number @psn */
static void say_left(struct sw_server *srv, struct sw_path path, uint32_t peer,
	uint32_t id, uint32_t seed, struct sw_seal *seal, uint64_t psn)
{
	struct sw_header h = {.type = SW_LEFT,
		.session = peer,
		.ctl.left = id,
		.head_crc = seed,
		.psn = psn};

	sw_server_reply(srv, path, seal, &h, NULL);
}

/* Turn the JOIN at @i into a session, since frame @h arrived with the offered
 * id; if the frame is LEAVE, drop the JOIN. */
static struct sw_session *confirm(
	struct sw_server *srv, uint32_t i, const struct sw_header *h)
{
	const struct sw_pending *p = &srv->pending[i];

	if (h->type != SW_LEAVE)
		return sw_pending_confirm(srv, i);
	say_left(srv, p->path, p->join.session, p->id, h->head_crc, p->seal,
		p->seal ? p->n_accepts + 1 : 0);
	sw_pending_drop(srv, i);
	return NULL;
}

/* Return whether to answer a frame without a session.  An engine with keys
 * checks CRCs only now, because a keyed frame has a tag in their place.  Where
 * keys are required, workers ignore a LEFT without a tag. */
static bool is_answered(
	struct sw_server *srv, const struct sw_rx_frame *f, struct sw_header *h)
{
	const struct sw_keyring *k = srv->keyring;
	bool is_required = k && k->is_required &&
			   !srv->is_inner[f->from.port_i] &&
			   !srv->is_trusted[f->from.port_i];

	return h->session && !is_required &&
	       (!srv->has_tags || sw_frame_judge(f, h));
}

static struct sw_session *session_of(
	struct sw_server *srv, const struct sw_rx_frame *f, struct sw_header *h)
{
	const struct sw_path *path = &f->from;
	uint32_t i = h->session >> 16, seed;
	bool is_known = h->session && i < srv->n_sessions;
	struct sw_session *s = is_known ? srv->sessions[i] : NULL;
	const struct sw_pending *p = is_known ? &srv->pending[i] : NULL;

	if (!is_known || h->session != (s ? s->peer.id : p->id)) {
		sw_count(&srv->stats.rx_session, 1);
		if (is_answered(srv, f, h))
			say_left(srv, *path, 0, h->session, h->head_crc, NULL,
				0);
		return NULL;
	}
	if (!sw_path_is_same(s ? &s->peer.path : &p->path, path)) {
		sw_count(&srv->stats.rx_source, 1);
		return NULL;
	}
	if (s && srv->has_tags)
		return s; /* rx_some checks the frame with its run */
	seed = s ? s->peer.seed : sw_session_seed(p->join.nonce);
	if (srv->has_tags) {
		if (!sw_frame_is_true(p->seal, seed, f, h, &srv->stats))
			return NULL;
	} else if (h->head_crc != seed) {
		sw_count(&srv->stats.rx_head_crc, 1);
		return NULL;
	}
	return s ? s : confirm(srv, i, h);
}

/* --- received frames --- */

/* Handle a PUSH that the shard did not fold, now or earlier.  Returns whether
 * to acknowledge it. */
static __attribute__((noinline)) bool refuse(struct sw_session *s,
	const struct sw_header *h, enum sw_push_verdict verdict)
{
	const struct sw_shard *sh = &s->job->shard;
	struct sw_answer refused;
	struct sw_sgroup *g;

	switch (verdict) {
	case SW_PUSH_DEAD: /* the member is owed END, or has it */
		return true;
	case SW_PUSH_CLOSED:
		g = sw_shard_tensor(sh, h->key)->group;
		sw_group_awaits_closed(s->job, g, s->member,
			(uint32_t)__builtin_ctzll(
				g->closed & ~sw_shard_begun(sh, h).got));
		return true;
	case SW_PUSH_CRC:
		refused = sw_shard_answer(
			sh, h->key, h->round, h->chunk, SW_ANSWER_CRC);
		sw_session_answer(s, &refused);
		return false;
	case SW_PUSH_DIFFERS:
		sw_session_differs(s, h);
		return false;
	default: /* invalid */
		return false;
	}
}

static inline struct sw_pushed push_some(struct sw_session *s,
	const struct sw_rx_frame *f, const struct sw_header *h, uint32_t n)
{
	struct sw_pushed p = sw_shard_push(&s->job->shard, s->member, h, f, n);

	if (p.has_completed)
		sw_job_touch(s->job);
	return p;
}

/* Acknowledge the first @n PUSHes of a run, which the shard holds. */
static inline void accept(struct sw_session *s, const struct sw_header *h,
	uint32_t n, bool has_again)
{
	struct sw_flow *flow = &s->peer.flow;
	uint64_t now_ns = s->srv->now_ns;

	if (n && !has_again)
		sw_flow_accept_run(flow, h, n, now_ns);
	for (uint32_t i = 0; has_again && i < n; i++)
		sw_flow_accept_again(flow, h->class, h[i].psn, now_ns);
}

static void on_pushes(struct sw_session *s, const struct sw_rx_frame *f,
	const struct sw_header *h, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct sw_pushed p = push_some(s, &f[i], &h[i], n - i);

		accept(s, &h[i], p.n_held, p.has_again);
		i += p.n_held;
		if (i < n && refuse(s, &h[i], p.verdict))
			accept(s, &h[i], 1, true);
	}
}

/* Handle a WANT: treat each chunk that it asks for as a push without bytes. */
static __attribute__((noinline)) void on_want(struct sw_session *s,
	const struct sw_rx_frame *f, const struct sw_header *h)
{
	struct sw_header one = *h;
	bool has_new = false;
	struct sw_pushed p;

	if (!sw_shard_may_want(&s->job->shard, h))
		return;
	one.weight = 0;
	for (uint32_t i = 0; i < h->stream.n; i++, one.stream.j++) {
		p = push_some(s, f, &one, 1);
		if (!p.n_held && !refuse(s, &one, p.verdict))
			return;
		has_new |= p.n_held && !p.has_again;
	}
	accept(s, h, 1, !has_new);
}

/* Handle a WANT, or a run of PUSHes. */
static void on_data(struct sw_session *s, const struct sw_rx_frame *f,
	const struct sw_header *h, uint32_t n)
{
	for (uint32_t i = 0, some; i < n; i += some) {
		some = sw_flow_within(&s->peer.flow, &h[i], n - i);
		if (some && h->type == SW_PUSH) {
			on_pushes(s, &f[i], &h[i], some);
		} else if (some) {
			on_want(s, f, h);
		} else {
			sw_peer_overdrew(&s->peer);
			some = 1;
		}
	}
}

/* Tell a member if it waits for members that have left (job->done).  If a
 * member outside job->done has left with an error, the coordinator reports it
 * instead. */
static void miss(
	struct sw_session *s, const struct sw_query *query, uint64_t missing)
{
	struct sw_job *job = s->job;
	const struct sw_shard *sh = &job->shard;
	const struct sw_stensor *t = sw_shard_tensor(sh, query->key);
	uint64_t gone = missing & job->done;
	struct sw_fault why;

	if (!gone)
		return;
	why = sw_member_gone(
		job, (uint32_t)__builtin_ctzll(gone), SW_FAULT_GONE);
	why.key = query->key;
	if (t->mode == SW_MODE_STREAM) {
		sw_group_end(job, t->group, 1, &why);
	} else {
		why.one.number = query->round;
		sw_session_fail_for(s, &why);
	}
}

static void query_one(struct sw_session *s, const struct sw_query *query)
{
	struct sw_shard *sh = &s->job->shard;
	const struct sw_stensor *t = sw_shard_tensor(sh, query->key);
	struct sw_answer answer;

	sw_count(&s->srv->stats.queries, 1);
	if (t && sw_stensor_is_over(t, query->round, s->member))
		return; /* the member is owed END, or has it */
	if (!sw_shard_query(sh, s->member, query, &answer))
		return;
	sw_session_answer(s, &answer);
	miss(s, query, answer.missing);
}

/* Compare streams that make no progress with the other streams of their group
 * here.  Each QUERY compares a few, from a pseudo-random start, so that each
 * stream gets its turn. */
static void check_calls(
	struct sw_session *s, const uint8_t *queries, uint32_t n)
{
	const struct sw_shard *sh = &s->job->shard;
	uint32_t at = s->n_queries++ * 2654435761u >> 16;
	uint32_t n_checked = 0;

	for (uint32_t i = 0; i < n && n_checked < CALLS_MAX; i++) {
		const struct sw_stensor *t;
		struct sw_query query;

		memcpy(&query, queries + (at + i) % n * sizeof(query),
			sizeof(query));
		t = query.chunk ? sw_shard_tensor(sh, query.key) : NULL;
		n_checked += t && sw_session_check_call(s, t, query.chunk);
	}
}

static void on_query(struct sw_session *s, const struct sw_rx_frame *f,
	const struct sw_header *h)
{
	struct sw_query query;

	check_calls(s, f->payload, h->payload_len / sizeof(query));
	for (uint32_t at = 0; at < h->payload_len; at += sizeof(query)) {
		memcpy(&query, (const uint8_t *)f->payload + at, sizeof(query));
		query_one(s, &query);
	}
}

/* Answer a LEAVE. */
static void tell_left(struct sw_session *s)
{
	struct sw_peer *p = &s->peer;
	struct sw_header h = {0};

	if (p->seal)
		sw_flow_send_ctl(&p->flow, &h); /* for its number */
	say_left(s->srv, p->path, p->far_id, p->id, p->seed, p->seal, h.psn);
}

static void on_leave(struct sw_session *s, const uint8_t *payload)
{
	struct sw_server *srv = s->srv;
	char who[SW_MEMBER_TEXT], text[SW_TEXT_MAX];
	struct sw_fault fault;
	bool is_new;

	sw_member_text(s->job, s->member, who);
	if (!sw_fault_read(&fault, payload))
		fault.kind = SW_FAULT_SAID;
	if (fault.err > 0) /* errors are negative */
		fault.err = SW_EPROTO;
	if (fault.err && !fault.kind && !fault.text[0])
		snprintf(fault.text, sizeof(fault.text), "%s left: %s", who,
			sw_error_text(fault.err));
	tell_left(s);
	/* do not log a fault that the server has sent to the member */
	is_new = fault.err && !s->fault.err &&
		 s->job->status.state != SW_JOB_FAILED;
	sw_log(srv->env->log, SW_LOG_INFO, "job %s: %s left%s%s", s->job->name,
		who, is_new ? ": " : "",
		is_new ? sw_shard_fault_text(&s->job->shard, &fault, text)
		       : "");
	sw_count(&srv->stats.sessions_closed, 1);
	sw_job_leave(s, fault.err ? &fault : NULL);
}

/* Handle KEEPALIVE: tell an idle worker that has returned its grant how many
 * bytes it may begin with, and a worker that asks for a grant how many it has.
 */
static void on_keepalive(struct sw_session *s, const struct sw_rx_frame *f,
	const struct sw_header *h)
{
	if (sw_flow_is_spent(&s->peer.flow) || sw_flags_backlog(h->flags))
		sw_session_owe(s, SW_OWE_KEEPALIVE);
}

/* Return whether to answer a PROBE of @bytes.  While the job runs, the answers
 * to one worker must not displace the data of others. */
static bool is_probe_due(struct sw_session *s, uint32_t bytes)
{
	uint64_t now_ns = s->srv->now_ns;

	if (!s->job->is_settled)
		return true;
	if (bytes > s->job->params.payload ||
		now_ns - s->probed_ns < PROBE_GAP_NS)
		return false;
	s->probed_ns = now_ns;
	return true;
}

/* Handle a PROBE: answer with the same number of bytes. */
static void on_probe(struct sw_session *s, const struct sw_rx_frame *f,
	const struct sw_header *h)
{
	if (!is_probe_due(s, h->payload_len)) {
		sw_count(&s->srv->stats.rx_state, 1);
		return;
	}
	s->probe_bytes = h->payload_len;
	sw_session_owe(s, SW_OWE_PROBE);
}

/* Handlers of frames that may arrive before the job runs. */
static void (*const probing[SW_N_TYPES])(struct sw_session *,
	const struct sw_rx_frame *, const struct sw_header *) = {
	[SW_KEEPALIVE] = on_keepalive,
	[SW_PROBE] = on_probe,
	[SW_PATHS] = sw_job_on_paths,
};

/* Handlers of frames that count only while the job runs. */
static void (*const running[SW_N_TYPES])(struct sw_session *,
	const struct sw_rx_frame *, const struct sw_header *) = {
	[SW_QUERY] = on_query,
	[SW_DECLARE] = sw_admit_declare,
	[SW_TUNE] = sw_job_tune,
	[SW_END] = sw_group_on_end,
	[SW_CLOSE] = sw_group_on_end,
};

/* Handle the message number and acknowledgement of a frame.  Returns false if
 * the frame must be dropped. */
static __attribute__((noinline)) bool on_message(
	struct sw_session *s, const struct sw_header *h)
{
	uint32_t n_acked = sw_control_n_acked(&s->peer.control);
	bool is_next = sw_peer_on_message(&s->peer, h);

	if (sw_control_n_acked(&s->peer.control) != n_acked)
		sw_job_on_acked(s->job);
	return is_next;
}

/* Handle a control frame.  LEAVE ends the session. */
static void on_control(struct sw_session *s, const struct sw_rx_frame *f,
	const struct sw_header *h, bool is_late)
{
	bool is_dropped = false;

	if (is_late && sw_peer_is_past(&s->peer, h))
		is_dropped = h->type != SW_ACK;
	else if (sw_peer_says_more(&s->peer, h))
		is_dropped = !on_message(s, h);
	if (is_dropped)
		return;
	if (h->type == SW_LEAVE)
		on_leave(s, f->payload);
	else if (h->type == SW_ACK)
		sw_peer_on_ack(&s->peer, h, f->payload, !is_late);
	else if (probing[h->type])
		probing[h->type](s, f, h);
	else if (s->job->status.state == SW_JOB_RUNNING && running[h->type])
		running[h->type](s, f, h);
	else /* also frames of types that only a server sends */
		sw_count(&s->srv->stats.rx_state, 1);
}

/* Handle one frame, or a run of PUSHes. */
static void on_session(struct sw_session *s, const struct sw_rx_frame *f,
	const struct sw_header *h, uint32_t n)
{
	struct sw_server *srv = s->srv;
	bool is_late = !sw_flow_is_newer(&s->peer.flow, &h[n - 1]);

	if (!is_late) /* an older frame may be a replay */
		s->peer.rx_ns = srv->now_ns;
	sw_bits_add(srv->received, s->peer.index);
	sw_flow_rx(&s->peer.flow, &h[n - 1]);
	if (f->is_marked) {
		sw_flow_mark(&s->peer.flow, h->class, n);
		sw_count(&srv->stats.rx_marked, n);
	}
	if (srv->now_ns >= s->error_at_ns) {
		s->error_at_ns = srv->now_ns + srv->params.retry_min;
		sw_session_owe(s, SW_OWE_ERROR);
	}
	if (h->type != SW_PUSH && h->type != SW_WANT)
		on_control(s, f, h, is_late);
	else if (s->job->status.state != SW_JOB_RUNNING)
		sw_count(&srv->stats.rx_state, n);
	else
		on_data(s, f, h, n);
}

static void on_stranger(
	struct sw_server *srv, const struct sw_rx_frame *f, struct sw_header *h)
{
	if (srv->has_tags && !sw_frame_judge(f, h)) {
		sw_count(&srv->stats.rx_payload_crc, 1);
		return;
	}
	if (h->head_crc)
		sw_count(&srv->stats.rx_head_crc, 1);
	else if (h->type == SW_HELLO)
		sw_admit_hello(srv, f);
	else
		sw_admit_join(srv, f, h);
}

/* Handle the first of @n frames, and the run that shares its lookup; returns
 * the number of frames handled. */
static uint32_t rx_some(struct sw_server *srv, const struct sw_rx_frame *f,
	struct sw_header *h, uint32_t n)
{
	struct sw_session *s;

	if (!h->type) /* dropped */
		return 1;
	if (h->type == SW_HELLO || h->type == SW_JOIN) {
		on_stranger(srv, f, h);
		return 1;
	}
	s = session_of(srv, f, h);
	if (!s)
		return 1;
	n = srv->has_tags
		    ? sw_peer_run_true(&s->peer, f, h, n, SW_PUSH, &srv->stats)
		    : sw_peer_run(f, h, n, SW_PUSH);
	if (!n)
		return 1;
	on_session(s, f, h, n);
	return n;
}

void sw_server_rx(struct sw_engine *engine, uint64_t now_ns, uint32_t port_i,
	const struct sw_rx_frame *frames, uint32_t n)
{
	struct sw_server *srv = (struct sw_server *)engine;
	struct sw_header heads[SW_RX_BURST];

	srv->now_ns = now_ns;
	srv->n_looked = 0;
	sw_frames_open(frames, n, heads, srv->has_tags, &srv->stats);
	for (uint32_t i = 0; i < n;)
		i += rx_some(srv, &frames[i], &heads[i], n - i);
	sw_server_look(srv);
}
