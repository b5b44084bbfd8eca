/* mismatch.c - tensors that members call differently: they are dead.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/server/mismatch.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/server/session.h"

void sw_session_tell_dead(
	struct sw_server *srv, struct sw_session *s, struct sw_stensor *t)
{
	if (t->to_tell >> s->member & 1)
		return;
	t->to_tell |= 1ULL << s->member;
	s->n_to_tell++;
	sw_session_owe(srv, s, SW_OWE_MISMATCH);
}

void sw_job_kill(struct sw_server *srv, struct sw_job *job,
	struct sw_stensor *t, uint32_t round, const char *why)
{
	if (!sw_shard_kill(&job->shard, t, round, why))
		return;
	sw_log(srv->env->log, SW_LOG_WARN, "job %s: %s", job->name, t->why);
	for (uint32_t m = 0; m < job->n_members; m++)
		if (job->members[m].session)
			sw_session_tell_dead(srv, job->members[m].session, t);
}

/* Of a tensor that one was refused, a member may know nothing: it may have
 * nothing to push here, and whoever was refused has no key to tell it by. */
void sw_job_await_aware(struct sw_server *srv, struct sw_job *job,
	struct sw_stensor *t, uint16_t but)
{
	for (uint32_t m = 0; m < job->n_members; m++) {
		struct sw_session *s = job->members[m].session;

		if (!s || m == but || t->unaware >> m & 1)
			continue;
		t->unaware |= 1ULL << m;
		s->n_unaware++;
		s->unaware_wait_ns = srv->params.retry_min;
		s->unaware_at_ns = srv->now_ns + s->unaware_wait_ns;
	}
}

void sw_session_is_aware(struct sw_session *s, struct sw_stensor *t)
{
	s->n_unaware -= t->unaware >> s->member & 1;
	t->unaware &= ~(1ULL << s->member);
}

uint64_t sw_session_tick_unaware(struct sw_server *srv, struct sw_session *s)
{
	struct sw_shard *sh = &s->job->shard;

	if (!s->n_unaware)
		return UINT64_MAX;
	if (srv->now_ns < s->unaware_at_ns)
		return s->unaware_at_ns;
	for (uint32_t k = 0; k < sh->n_keys; k++)
		if (sh->tensors[k].unaware >> s->member & 1)
			sw_session_tell_dead(srv, s, &sh->tensors[k]);
	s->unaware_wait_ns =
		sw_min64(2 * s->unaware_wait_ns, srv->params.retry_max);
	s->unaware_at_ns = srv->now_ns + s->unaware_wait_ns;
	return s->unaware_at_ns;
}

void sw_session_on_mismatch(struct sw_server *srv, struct sw_session *s,
	const struct sw_header *h, const uint8_t *payload)
{
	struct sw_shard *sh = &s->job->shard;
	struct sw_fault fault;

	memcpy(&fault, payload, sizeof(fault));
	sw_text_clean(fault.text, sizeof(fault.text));
	if (s->job->state != SW_JOB_RUNNING || !fault.text[0]) {
		sw_count(&srv->stats.rx_state, 1);
		return;
	}
	if (fault.key >= SW_MAX_TENSORS ||
		!sh->tensors[fault.key].is_admitted) {
		sw_count(&srv->stats.rx_key, 1);
		return;
	}
	sw_job_kill(srv, s->job, &sh->tensors[fault.key], h->round, fault.text);
	sw_session_is_aware(s, &sh->tensors[fault.key]);
	/* So the worker knows that we do. */
	sw_session_tell_dead(srv, s, &sh->tensors[fault.key]);
}

/* What rank @i does, and what rank @first, the first of the round, began. */
static void describe(const struct sw_stensor *t, uint32_t i,
	const struct sw_header *h, uint32_t first, const struct sw_begun *b,
	char text[SW_TEXT_MAX])
{
	const char *const ops[] = {"a sum", "a broadcast"};

	if (h->op != b->op)
		snprintf(text, SW_TEXT_MAX,
			"tensor %.64s: rank %u takes part in %s, rank %u in %s",
			t->name, i, ops[h->op], first, ops[b->op]);
	else if (h->aux != b->root)
		snprintf(text, SW_TEXT_MAX,
			"tensor %.64s: rank %u broadcasts from rank %u, rank "
			"%u from rank %u",
			t->name, i, h->aux, first, b->root);
	else
		snprintf(text, SW_TEXT_MAX,
			"tensor %.64s: rank %u pushes step %u, rank %u pushes "
			"step %u",
			t->name, i, h->step, first, b->step);
}

/* A node without the root pushes a broadcast's bytes, or the root's none. */
static void fail_giver(struct sw_server *srv, struct sw_session *s,
	const struct sw_header *h, const struct sw_stensor *t)
{
	const struct sw_shard *sh = &s->job->shard;
	uint32_t first = sh->first[s->member];

	sw_session_fail(srv, s, SW_EPROTO, h->key,
		"tensor %.64s: rank %u pushes %u B of a broadcast from rank "
		"%u, and has local ranks %u to %u",
		t->name, s->member, h->payload_len, h->aux, first,
		first + sh->weights[s->member] - 1);
}

void sw_session_differs(
	struct sw_server *srv, struct sw_session *s, const struct sw_header *h)
{
	struct sw_shard *sh = &s->job->shard;
	struct sw_stensor *t = &sh->tensors[h->key];
	struct sw_begun begun;
	char text[SW_TEXT_MAX];

	if (!sw_shard_has_root(sh, s->member, h)) {
		fail_giver(srv, s, h, t);
		return;
	}
	sw_flow_accept(&s->peer.flow, h->class, h->psn, srv->now_ns);
	begun = sw_shard_begun(sh, h);
	describe(t, sw_shard_rank_of(sh, s->member), h,
		sw_shard_rank_of(sh, (uint32_t)__builtin_ctzll(begun.got)),
		&begun, text);
	sw_job_kill(srv, s->job, t, h->round, text);
}
