/* mismatch.c - tensors that members call differently: they are dead.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/server/mismatch.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/server/session.h"

_Static_assert(SW_MAX_TENSORS == 64 * 64, "two levels of a bitmap");

void sw_session_init_keys(struct sw_session *s)
{
	uint64_t *words = s->key_words;

	words = sw_bitmap_init(&s->to_tell, SW_MAX_TENSORS, words);
	sw_bitmap_init(&s->unaware, SW_MAX_TENSORS, words);
}

void sw_session_tell_dead(
	struct sw_server *srv, struct sw_session *s, uint32_t key)
{
	sw_bitmap_add(&s->to_tell, key);
	sw_session_owe(srv, s, SW_OWE_MISMATCH);
}

void sw_job_kill(struct sw_server *srv, struct sw_job *job, uint32_t key,
	uint32_t round, const char *why)
{
	struct sw_stensor *t = sw_shard_tensor(&job->shard, key);

	if (!sw_shard_kill(&job->shard, t, round, why))
		return;
	sw_log(srv->env->log, SW_LOG_WARN, "job %s: %s", job->name,
		sw_stensor_view(&job->shard, t).why);
	for (uint32_t m = 0; m < job->n_members; m++)
		if (job->members[m].session)
			sw_session_tell_dead(srv, job->members[m].session, key);
}

/* Of a tensor that one was refused, a member may know nothing: it may have
 * nothing to push here, and whoever was refused has no key to tell it by. */
void sw_job_await_aware(
	struct sw_server *srv, struct sw_job *job, uint32_t key, uint16_t but)
{
	for (uint32_t m = 0; m < job->n_members; m++) {
		struct sw_session *s = job->members[m].session;

		if (!s || m == but || sw_bitmap_has(&s->unaware, key))
			continue;
		sw_bitmap_add(&s->unaware, key);
		s->unaware_wait_ns = srv->params.retry_min;
		s->unaware_at_ns = srv->now_ns + s->unaware_wait_ns;
	}
}

void sw_session_is_aware(struct sw_session *s, uint32_t key)
{
	sw_bitmap_remove(&s->unaware, key);
}

uint64_t sw_session_tick_unaware(struct sw_server *srv, struct sw_session *s)
{
	uint32_t key = sw_bitmap_first(&s->unaware);

	if (key == SW_BITMAP_NONE)
		return UINT64_MAX;
	if (srv->now_ns < s->unaware_at_ns)
		return s->unaware_at_ns;
	for (; key != SW_BITMAP_NONE;
		key = sw_bitmap_next(&s->unaware, key + 1))
		sw_session_tell_dead(srv, s, key);
	s->unaware_wait_ns =
		sw_min64(2 * s->unaware_wait_ns, srv->params.retry_max);
	s->unaware_at_ns = srv->now_ns + s->unaware_wait_ns;
	return s->unaware_at_ns;
}

void sw_session_on_mismatch(struct sw_server *srv, struct sw_session *s,
	const struct sw_header *h, const uint8_t *payload)
{
	struct sw_fault fault;

	memcpy(&fault, payload, sizeof(fault));
	sw_text_clean(fault.text, sizeof(fault.text));
	if (s->job->state != SW_JOB_RUNNING || !fault.text[0]) {
		sw_count(&srv->stats.rx_state, 1);
		return;
	}
	if (!sw_shard_tensor(&s->job->shard, fault.key)) {
		sw_count(&srv->stats.rx_key, 1);
		return;
	}
	sw_job_kill(srv, s->job, fault.key, h->round, fault.text);
	sw_session_is_aware(s, fault.key);
	/* So the worker knows that we do. */
	sw_session_tell_dead(srv, s, fault.key);
}

/* The same of a collective. */
static void describe_stream(const char *name, uint32_t i,
	const struct sw_header *h, uint32_t first, const struct sw_begun *b,
	char text[SW_TEXT_MAX])
{
	const char *mine = sw_coll_name(sw_coll_kind_of(h->op));
	const char *theirs = sw_coll_name(sw_coll_kind_of(b->op));

	if (h->op != b->op || h->dtype != b->dtype)
		snprintf(text, SW_TEXT_MAX,
			"stream %.40s: rank %u calls %s of %s, rank %u %s of "
			"%s (collective %u)",
			name, i, mine, sw_dtype_name(h->dtype), first, theirs,
			sw_dtype_name(b->dtype), b->number);
	else if (h->chunk != b->number || h->step != b->step ||
		 (h->payload_len && b->bytes && h->payload_len != b->bytes))
		snprintf(text, SW_TEXT_MAX,
			"stream %.40s: rank %u calls %s with another count "
			"than rank %u (collective %u)",
			name, i, mine, first, b->number);
	else
		snprintf(text, SW_TEXT_MAX,
			"stream %.40s: rank %u calls %s with root %u, rank %u "
			"with root %u (collective %u)",
			name, i, mine, h->aux, first, b->root, b->number);
}

/* What rank @i does, and what rank @first, the first of the round, began. */
static void describe(const char *name, uint32_t i, const struct sw_header *h,
	uint32_t first, const struct sw_begun *b, char text[SW_TEXT_MAX])
{
	const char *const ops[] = {"a sum", "a broadcast"};

	if (h->op != b->op)
		snprintf(text, SW_TEXT_MAX,
			"tensor %.64s: rank %u takes part in %s, rank %u in %s",
			name, i, ops[h->op], first, ops[b->op]);
	else if (h->aux != b->root)
		snprintf(text, SW_TEXT_MAX,
			"tensor %.64s: rank %u broadcasts from rank %u, rank "
			"%u from rank %u",
			name, i, h->aux, first, b->root);
	else
		snprintf(text, SW_TEXT_MAX,
			"tensor %.64s: rank %u pushes step %u, rank %u pushes "
			"step %u",
			name, i, h->step, first, b->step);
}

/* A node without the root pushes a broadcast's bytes, or the root's none. */
static void fail_giver(struct sw_server *srv, struct sw_session *s,
	const struct sw_header *h, const char *name)
{
	uint32_t first = sw_shard_rank_of(&s->job->shard, s->member);

	sw_session_fail(srv, s, SW_EPROTO, h->key,
		"tensor %.64s: rank %u pushes %u B of a broadcast from rank "
		"%u, and has local ranks %u to %u",
		name, s->member, h->payload_len, h->aux, first,
		first + s->job->members[s->member].n_local - 1);
}

void sw_session_differs(
	struct sw_server *srv, struct sw_session *s, const struct sw_header *h)
{
	const struct sw_shard *sh = &s->job->shard;
	const struct sw_stensor_view t =
		sw_stensor_view(sh, sw_shard_tensor(sh, h->key));
	bool is_stream = t.mode == SW_MODE_STREAM;
	struct sw_begun begun;
	char text[SW_TEXT_MAX];

	if (!is_stream && !sw_shard_has_root(sh, s->member, h)) {
		fail_giver(srv, s, h, t.name);
		return;
	}
	sw_flow_accept(&s->peer.flow, h->class, h->psn, srv->now_ns);
	begun = sw_shard_begun(sh, h);
	(is_stream ? describe_stream : describe)(t.name,
		sw_shard_rank_of(sh, s->member), h,
		sw_shard_rank_of(sh, (uint32_t)__builtin_ctzll(begun.got)),
		&begun, text);
	sw_job_kill(srv, s->job, h->key, h->round, text);
}
