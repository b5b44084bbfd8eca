/* session.c - keep what a worker is owed; kill tensors that members differ on.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/server/server_int.h"

/* Return the class of the session's next result. */
static uint32_t class_to_send(const struct sw_session *s)
{
	const struct sw_shard *sh = &s->job->shard;

	return s->job->status.state == SW_JOB_RUNNING
		       ? sw_shard_class(sh,
				 sw_bitmap_first(sw_shard_ready(sh, s->member)))
		       : SW_N_CLASSES;
}

void sw_session_refresh(struct sw_session *s)
{
	uint32_t class = class_to_send(s);

	sw_count(&s->srv->stats.session_looks, 1);
	sw_session_offer(s, class);
	if (class == SW_N_CLASSES || s->peer.due_class < SW_N_CLASSES)
		return;
	sw_flow_block(&s->peer.flow, s->srv->now_ns);
	sw_session_note_timer(s);
}

/* Look at one session.  An ACK is due if the whole burst has made it so. */
static void look(struct sw_session *s, bool had_frames)
{
	sw_session_refresh(s);
	if (!had_frames)
		return;
	sw_session_note_timer(s);
	if (sw_flow_ack_at(&s->peer.flow) == 0)
		sw_session_owe(s, SW_OWE_ACK);
}

static void look_at_word(struct sw_server *srv, uint32_t w)
{
	uint64_t received = srv->received[w], word = received | srv->touched[w];

	srv->received[w] = srv->touched[w] = 0;
	for (; word; word &= word - 1) {
		uint32_t bit = (uint32_t)__builtin_ctzll(word);
		struct sw_session *s = srv->sessions[w * 64 + bit];

		if (s) /* the session may have ended since */
			look(s, received >> bit & 1);
	}
}

void sw_server_look(struct sw_server *srv)
{
	for (uint32_t w = 0; w < SW_SESSION_WORDS; w++)
		look_at_word(srv, w);
	sw_peers_grant(&srv->grants, srv->due);
}

bool sw_session_fail(
	struct sw_session *s, int err, uint32_t key, const char *fmt, ...)
{
	va_list ap;

	if (!s->fault.err) {
		s->fault = (struct sw_fault){.err = (int16_t)err, .key = key};
		va_start(ap, fmt);
		vsnprintf(s->fault.text, sizeof(s->fault.text), fmt, ap);
		va_end(ap);
		sw_log(s->srv->env->log, SW_LOG_WARN, "job %s: %s",
			s->job->name, s->fault.text);
	}
	s->error_at_ns = s->srv->now_ns;
	sw_session_owe(s, SW_OWE_ERROR);
	return false;
}

void sw_server_reply(struct sw_server *srv, struct sw_path path,
	const struct sw_header *h, const void *payload)
{
	struct sw_replies *q = &srv->replies[path.port_i];
	struct sw_reply *r;

	/* Frames of unknown sessions must not keep COOKIEs out. */
	if (q->n >= (h->type == SW_LEFT ? SW_REPLIES / 2 : SW_REPLIES))
		return;
	r = &q->ring[(q->first + q->n++) % SW_REPLIES];
	r->path = path;
	r->header = *h;
	if (payload)
		memcpy(r->payload, payload, h->payload_len);
}

void sw_session_answer(struct sw_session *s, const struct sw_answer *a)
{
	if (s->n_answers == SW_QUERY_MAX)
		return; /* the worker will ask again */
	s->answers[s->n_answers++] = *a;
	sw_session_owe(s, SW_OWE_ANSWER);
}

/* Tell all members that the window of stream @key has moved. */
static void tell_base(struct sw_job *job, uint32_t key)
{
	const struct sw_shard *sh = &job->shard;
	struct sw_answer a = sw_shard_answer(sh, key, 0, 0, SW_ANSWER_BASE);
	uint64_t m = sw_stensor_view(sh, sw_shard_tensor(sh, key)).n_elems;

	for (m &= job->status.joined; m; m &= m - 1) {
		struct sw_session *s = job->members[__builtin_ctzll(m)].session;

		if (s)
			sw_session_answer(s, &a);
	}
}

void sw_session_fate(void *ctx, const struct sw_sent *const *sent, uint32_t n,
	enum sw_fate fate)
{
	struct sw_session *s = ctx;
	bool has_moved;

	if (fate == SW_LOST)
		sw_session_touch(s);
	for (uint32_t i = 0, some; i < n; i += some) {
		some = sw_shard_fate(&s->job->shard, s->member, &sent[i], n - i,
			fate == SW_LOST, &has_moved);
		if (has_moved)
			tell_base(s->job, sent[i]->key);
	}
}

/* --- kill tensors that members call differently --- */

/* Return the members that are in the tensor or stream and have not closed it.
 */
static uint64_t members_in(const struct sw_job *job, struct sw_stensor_view t)
{
	uint64_t members =
		t.mode == SW_MODE_STREAM ? t.n_elems : sw_job_all(job);

	return members & ~t.closed;
}

/* Kill one tensor or stream.  Returns false if it was dead before. */
static bool kill_one(struct sw_job *job, uint32_t key, uint32_t round,
	const struct sw_fault *why)
{
	struct sw_shard *sh = &job->shard;
	struct sw_stensor *t = sw_shard_tensor(sh, key);
	uint64_t m;

	if (!sw_shard_kill(sh, t, round, why))
		return false;
	for (m = members_in(job, sw_stensor_view(sh, t)); m; m &= m - 1) {
		struct sw_session *s = job->members[__builtin_ctzll(m)].session;

		if (!s)
			continue;
		sw_bitmap_add(&s->ends, sw_key_index(key));
		sw_session_owe(s, SW_OWE_END);
	}
	return true;
}

void sw_job_kill(struct sw_job *job, uint32_t key, uint32_t round,
	const struct sw_fault *why)
{
	const struct sw_shard *sh = &job->shard;
	struct sw_stensor_view t =
		sw_stensor_view(sh, sw_shard_tensor(sh, key));
	char text[SW_TEXT_MAX];

	if (!kill_one(job, key, round, why))
		return;
	sw_log(job->srv->env->log, SW_LOG_WARN, "job %s: %s", job->name,
		sw_fault_text(t.why, t.mode == SW_MODE_STREAM, t.name, text));
	if (t.mode != SW_MODE_STREAM)
		return;
	for (uint32_t k = SW_KEY_NONE;
		(k = sw_shard_kin(sh, t.name, k)) != SW_KEY_NONE;)
		kill_one(job, k, 1, t.why);
}

/* --- groups that members close --- */

/* Take back an END that the member is owed, since it has closed the stream.
 * The index of @key may soon be another stream's. */
static void forget(struct sw_session *s, uint32_t key)
{
	sw_bitmap_remove(&s->ends, sw_key_index(key));
	if (sw_bitmap_is_empty(&s->ends))
		s->peer.owed &= ~(1u << SW_OWE_END);
	sw_peer_put_due(&s->peer, s->srv->due);
}

/* Close a stream for @members.  If that frees the window, results marked in it
 * are stale, so all sessions are looked at. */
static void close_one(struct sw_job *job, uint32_t key, uint64_t members)
{
	struct sw_shard *sh = &job->shard;
	uint64_t bytes;

	if (!sw_shard_close_stream(
		    sh, sw_shard_tensor(sh, key), members, job->left, &bytes))
		return;
	sw_share_give(job, bytes);
	sw_job_touch(job);
	for (uint32_t m = 0; m < job->n_members; m++)
		if (job->members[m].session)
			forget(job->members[m].session, key);
}

void sw_job_awaits_closed(
	struct sw_job *job, uint32_t key, uint32_t who, uint32_t closed)
{
	const struct sw_shard *sh = &job->shard;
	const struct sw_fault why = {.err = SW_EABORTED,
		.kind = SW_FAULT_CLOSED,
		.one.rank = sw_shard_rank_of(sh, who),
		.other.rank = sw_shard_rank_of(sh, closed)};

	sw_job_kill(job, key, 1, &why);
}

/* Close the group of stream @key for the session's member. */
static void close_group(struct sw_session *s, uint32_t key)
{
	struct sw_job *job = s->job;
	const struct sw_shard *sh = &job->shard;
	uint32_t member = s->member;
	char name[SW_NAME_MAX];
	uint32_t next;

	memcpy(name, sw_stensor_view(sh, sw_shard_tensor(sh, key)).name,
		sizeof(name));
	for (uint32_t k = sw_shard_kin(sh, name, SW_KEY_NONE); k != SW_KEY_NONE;
		k = next) {
		const struct sw_stensor *t = sw_shard_tensor(sh, k);
		uint32_t who = sw_shard_waits_for(t, member);

		/* before close_one may free it */
		next = sw_shard_kin(sh, name, k);
		if (sw_stensor_view(sh, t).closed >> member & 1)
			continue;
		if (who < SW_MAX_MEMBERS)
			sw_job_awaits_closed(job, k, who, member);
		forget(s, k);
		close_one(job, k, 1ULL << member);
	}
}

/* Is the stream alive, with all its members in the job? */
static bool lives_on(const struct sw_job *job, uint32_t key)
{
	const struct sw_shard *sh = &job->shard;
	struct sw_stensor_view t =
		sw_stensor_view(sh, sw_shard_tensor(sh, key));

	return !t.dead_from && !(t.n_elems & job->left) &&
	       t.n_elems & ~t.closed;
}

bool sw_job_close_left(struct sw_job *job)
{
	const struct sw_shard *sh = &job->shard;

	for (uint32_t n = 0; n < SW_JOB_BURST && job->close_at != SW_KEY_NONE;
		n++, job->close_at++) {
		job->close_at = sw_shard_next_stream(sh, job->close_at);
		if (job->close_at == SW_KEY_NONE)
			break;
		job->is_needed |=
			lives_on(job, sw_shard_key_at(sh, job->close_at));
		close_one(job, sw_shard_key_at(sh, job->close_at), 0);
	}
	return job->close_at == SW_KEY_NONE;
}

void sw_session_on_end(struct sw_session *s, const struct sw_rx_frame *f,
	const struct sw_header *h)
{
	const struct sw_shard *sh = &s->job->shard;
	const struct sw_stensor *t;
	struct sw_fault fault;
	bool is_stream;

	if (!sw_fault_read(&fault, f->payload)) {
		sw_count(&s->srv->stats.rx_state, 1);
		return;
	}
	t = sw_shard_tensor(sh, fault.key);
	if (!t) {
		sw_count(&s->srv->stats.rx_key,
			!sw_shard_is_past(sh, fault.key));
		return;
	}
	is_stream = sw_stensor_view(sh, t).mode == SW_MODE_STREAM;
	if (h->type == SW_CLOSE ? !is_stream : !fault.kind && !fault.text[0]) {
		sw_count(&s->srv->stats.rx_state, 1);
		return;
	}
	fault.err = (int16_t)sw_fault_death(fault.err);
	if (h->type == SW_CLOSE)
		close_group(s, fault.key);
	else
		sw_job_kill(s->job, fault.key, h->round, &fault);
}

/* Fail a node that pushes a broadcast's bytes without the root, or none with
 * it. */
static void fail_giver(
	struct sw_session *s, const struct sw_header *h, const char *name)
{
	uint32_t first = sw_shard_rank_of(&s->job->shard, s->member);

	sw_session_fail(s, SW_EPROTO, h->key,
		"tensor %.64s: rank %u pushes %u B of a broadcast from rank "
		"%u, and has local ranks %u to %u",
		name, first, h->payload_len, h->aux, first,
		first + s->job->members[s->member].n_local - 1);
}

/* Note two collectives in one chunk.  A frame names the root by its member. */
static void note_collectives(const struct sw_shard *sh,
	const struct sw_header *h, const struct sw_begun *b,
	struct sw_fault *out)
{
	out->kind = SW_FAULT_CALLED;
	out->one.number = h->stream.collective;
	out->one.dtype = h->dtype;
	out->other.number = b->number;
	out->other.dtype = b->dtype;
	if (!sw_shard_is_ranked(sh, h->stream.root) ||
		!sw_shard_is_ranked(sh, b->root))
		return;
	out->one.root = sw_shard_rank_of(sh, h->stream.root);
	out->other.root = sw_shard_rank_of(sh, b->root);
}

void sw_session_differs(struct sw_session *s, const struct sw_header *h)
{
	const struct sw_shard *sh = &s->job->shard;
	const struct sw_stensor_view t =
		sw_stensor_view(sh, sw_shard_tensor(sh, h->key));
	struct sw_fault why = {.err = SW_EMISMATCH,
		.one = {.rank = sw_shard_rank_of(sh, s->member), .op = h->op}};
	struct sw_begun b;

	if (t.mode != SW_MODE_STREAM && !sw_shard_has_root(sh, s->member, h)) {
		fail_giver(s, h, t.name);
		return;
	}
	sw_flow_accept_again(&s->peer.flow, h->class, h->psn, s->srv->now_ns);
	b = sw_shard_begun(sh, h);
	why.other.rank = sw_shard_rank_of(sh, (uint32_t)__builtin_ctzll(b.got));
	why.other.op = b.op;
	if (t.mode == SW_MODE_STREAM) {
		note_collectives(sh, h, &b, &why);
	} else {
		why.kind = SW_FAULT_ROUND;
		why.one.root = h->aux;
		why.one.step = h->step;
		why.other.root = b.root;
		why.other.step = b.step;
	}
	sw_job_kill(s->job, h->key, h->round, &why);
}

bool sw_session_check_call(
	struct sw_session *s, const struct sw_stensor *t, uint32_t number)
{
	const struct sw_shard *sh = &s->job->shard;
	struct sw_stensor_view v = sw_stensor_view(sh, t);
	struct sw_fault why = {.err = SW_EMISMATCH,
		.kind = SW_FAULT_KINDS,
		.one.rank = sw_shard_rank_of(sh, s->member)};
	struct sw_begun other;

	if (v.mode != SW_MODE_STREAM || v.dead_from)
		return false;
	other = sw_shard_other_call(sh, t, number);
	if (!other.got)
		return true;
	snprintf(why.text, sizeof(why.text), "%s", sw_coll_last(v.name));
	why.other = (struct sw_fault_call){.number = number,
		.rank = sw_shard_rank_of(
			sh, (uint32_t)__builtin_ctzll(other.got)),
		.op = other.op};
	sw_job_kill(s->job, v.key, 1, &why);
	return true;
}
