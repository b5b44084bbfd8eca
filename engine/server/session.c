/* session.c - track the frames that a server owes a worker.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/flow/fanout.h"
#include "engine/server/session.h"
#include "engine/wire/cipher.h"

void sw_session_refresh(struct sw_session *s)
{
	const struct sw_shard *sh = &s->job->shard;
	uint32_t class = SW_N_CLASSES;

	if (s->job->status.state == SW_JOB_RUNNING)
		class = sw_shard_class(
			sh, sw_bitmap_first(&sh->ready[s->member]));
	sw_count(&s->srv->stats.session_looks, 1);
	sw_session_offer(s, class);
	if (class == SW_N_CLASSES && sw_flow_takes_turns(&s->peer.flow))
		sw_fanout_return(&s->peer.flow);
	if (class == SW_N_CLASSES || s->peer.due_class < SW_N_CLASSES)
		return;
	sw_flow_block(&s->peer.flow, s->srv->now_ns);
	sw_session_note_timer(s);
}

/* Check the marked sessions of word @w.  The check for a due ACK runs once,
 * after the whole burst. */
static void look_at_word(struct sw_server *srv, uint32_t w)
{
	uint64_t received = srv->received[w], word = received | srv->touched[w];

	srv->received[w] = srv->touched[w] = 0;
	for (; word; word &= word - 1) {
		uint32_t bit = (uint32_t)__builtin_ctzll(word);
		struct sw_session *s = srv->sessions[w * 64 + bit];

		if (!s) /* ended since it was marked */
			continue;
		sw_session_refresh(s);
		if (!(received >> bit & 1))
			continue;
		sw_session_note_timer(s);
		if (sw_flow_ack_at(&s->peer.flow) == 0)
			sw_session_owe(s, SW_OWE_ACK);
	}
}

/* Let the sessions of jobs with a send ceiling take turns. */
static __attribute__((noinline)) void look_at_crowds(struct sw_server *srv)
{
	struct sw_crowd *c = sw_grants_crowds(&srv->grants), *next;
	struct sw_flow *f;

	for (; c; c = next) {
		next = sw_crowd_next(c);
		while ((f = sw_fanout_next(c)))
			sw_session_refresh(sw_session_of(sw_peer_of(f)));
		sw_crowd_list(c);
	}
}

void sw_server_look(struct sw_server *srv)
{
	for (uint32_t w = 0; w < SW_SESSION_WORDS; w++)
		look_at_word(srv, w);
	if (sw_grants_crowds(&srv->grants))
		look_at_crowds(srv);
	sw_peers_grant(&srv->grants);
}

bool sw_session_fail_for(struct sw_session *s, const struct sw_fault *why)
{
	char text[SW_TEXT_MAX];

	if (!s->fault.err) {
		s->fault = *why;
		sw_log(s->srv->env->log, SW_LOG_WARN, "job %s: %s",
			s->job->name,
			sw_shard_fault_text(&s->job->shard, why, text));
	}
	s->error_at_ns = s->srv->now_ns;
	sw_session_owe(s, SW_OWE_ERROR);
	return false;
}

bool sw_session_fail(
	struct sw_session *s, int err, uint32_t key, const char *fmt, ...)
{
	struct sw_fault why = {.err = (int16_t)err, .key = key};
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why.text, sizeof(why.text), fmt, ap);
	va_end(ap);
	return sw_session_fail_for(s, &why);
}

void sw_server_reply(struct sw_server *srv, struct sw_path path,
	struct sw_seal *seal, const struct sw_header *h, const void *payload)
{
	struct sw_replies *q = h->type == SW_COOKIE
				       ? &srv->cookies[path.port_i]
				       : &srv->replies[path.port_i];
	struct sw_tx_frame frame = {.header = *h};
	struct sw_reply *r;

	/* Leave half of the queue for refusals and other replies. */
	if (q->n >= (h->type == SW_LEFT ? SW_REPLIES / 2 : SW_REPLIES))
		return;
	r = &q->ring[(q->first + q->n++) % SW_REPLIES];
	r->path = path;
	r->is_tagged = seal != NULL;
	if (payload)
		memcpy(r->payload, payload, h->payload_len);
	if (seal) {
		frame.header.class = SW_CLASS_CTL;
		if (h->payload_len && seal->is_encrypted)
			sw_encrypt(seal, &frame.header, r->payload, r->payload);
		sw_frame_tag(&frame, path, r->payload, false, seal);
	}
	r->header = frame.header;
}

struct sw_source *sw_source_of(const struct sw_server *srv,
	struct sw_source *all, uint32_t n, struct sw_ip ip,
	enum sw_source_kind kind)
{
	struct sw_source *found = &all[0];
	struct sw_ip net = sw_ip_net(ip);

	for (uint32_t i = 1; i < n; i++) {
		if (all[i].full_ns <= srv->now_ns)
			found = &all[i];
		else if (all[i].kind == kind && sw_ip_is_same(all[i].net, net))
			return &all[i];
	}
	found->net = net;
	found->kind = kind;
	return found;
}

bool sw_server_may_log(
	struct sw_server *srv, struct sw_ip ip, enum sw_source_kind kind)
{
	struct sw_source *s = sw_source_of(srv, srv->lines, SW_LINES, ip, kind);

	return sw_token_take(srv, &s->full_ns, SW_QUIET_S * SW_S, 1);
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
	struct sw_session *s;

	for (uint64_t m = sw_shard_tensor(sh, key)->members; m; m &= m - 1)
		if ((s = job->members[__builtin_ctzll(m)].session))
			sw_session_answer(s, &a);
}

void sw_session_fate(void *ctx, const struct sw_sent *const *sent, uint32_t n,
	enum sw_fate fate)
{
	struct sw_session *s = sw_session_of(ctx);
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
