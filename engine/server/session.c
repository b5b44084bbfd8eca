/* session.c - what a worker is owed, sent and told.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/server/session.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/server/share.h"

void sw_session_refresh(struct sw_server *srv, struct sw_session *s)
{
	struct sw_due *due = &s->job->due[s->peer.path.port_i];
	uint32_t class =
		s->job->state == SW_JOB_RUNNING
			? sw_shard_class(&s->job->shard,
				  sw_shard_next(&s->job->shard, s->member, 0))
			: SW_N_CLASSES;

	sw_count(&srv->stats.session_looks, 1);
	if (!sw_peer_offer(&s->peer, due, class))
		return;
	sw_drr_put(&srv->drr[s->peer.path.port_i], sw_job_index(srv, s->job),
		sw_due_has(due));
}

bool sw_session_fail(struct sw_server *srv, struct sw_session *s, int err,
	uint32_t key, const char *fmt, ...)
{
	va_list ap;

	if (!s->fault.err) {
		s->fault = (struct sw_fault){
			.err = (int16_t)err, .rank = s->member, .key = key};
		va_start(ap, fmt);
		vsnprintf(s->fault.text, sizeof(s->fault.text), fmt, ap);
		va_end(ap);
		sw_log(srv->env->log, SW_LOG_WARN, "job %s: %s", s->job->name,
			s->fault.text);
	}
	s->error_at_ns = srv->now_ns;
	sw_session_owe(srv, s, SW_OWE_ERROR);
	return false;
}

void sw_server_reply(struct sw_server *srv, struct sw_path path,
	const struct sw_header *h, const void *payload)
{
	struct sw_replies *q = &srv->replies[path.port_i];
	struct sw_reply *r;

	if (q->n == SW_REPLIES)
		return;
	r = &q->ring[(q->first + q->n++) % SW_REPLIES];
	r->path = path;
	r->header = *h;
	if (payload)
		memcpy(r->payload, payload, h->payload_len);
}

void sw_session_close(struct sw_server *srv, struct sw_session *s)
{
	uint16_t port_i = s->peer.path.port_i;
	struct sw_due *due = &s->job->due[port_i];

	if (s->job->asker == s->peer.id)
		sw_share_drop(srv, s->job);
	sw_due_put(&srv->due[port_i], SW_CLASS_CTL, s->peer.index, false);
	if (s->peer.due_class < SW_N_CLASSES)
		sw_due_put(due, s->peer.due_class, s->peer.index, false);
	sw_drr_put(
		&srv->drr[port_i], sw_job_index(srv, s->job), sw_due_has(due));
	srv->sessions[s->peer.index] = NULL;
	srv->tick_at_ns[s->peer.index] = UINT64_MAX;
	sw_flow_fini(&s->peer.flow);
	free(s);
}

void sw_session_answer(
	struct sw_server *srv, struct sw_session *s, const struct sw_answer *a)
{
	if (s->n_answers == SW_PULL_MAX)
		return; /* it will be asked for again */
	s->answers[s->n_answers++] = *a;
	sw_session_owe(srv, s, SW_OWE_ANSWER);
}

/* The window of stream @key has moved. */
static void tell_base(struct sw_job *job, uint32_t key)
{
	const struct sw_shard *sh = &job->shard;
	struct sw_answer a = sw_shard_answer(sh, key, 0, 0, SW_ANSWER_BASE);
	uint64_t m = sw_stensor_view(sh, sw_shard_tensor(sh, key)).n_elems;

	for (m &= job->joined; m; m &= m - 1) {
		struct sw_session *s = job->members[__builtin_ctzll(m)].session;

		if (s)
			sw_session_answer(s->srv, s, &a);
	}
}

void sw_session_fate(void *ctx, const struct sw_sent *sent, uint32_t class,
	enum sw_fate fate)
{
	struct sw_session *s = ctx;

	(void)class;
	if (sw_shard_fate(&s->job->shard, s->member, sent->key, sent->cell,
		    sent->round, fate == SW_LOST))
		tell_base(s->job, sent->key);
}
