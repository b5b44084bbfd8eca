/* groups.c - end groups, close groups for members, and tell the other members.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A tensor is a group of its own.  A group ends when a worker sends END, two
 * members differ, one member closes the group while another waits, or memory
 * runs out; the first reason counts.  The server owes END to all members that
 * have not closed the group. */
#include <stdio.h>

#include "engine/server/groups.h"
#include "engine/server/session.h"
#include "engine/server/share.h"

void sw_group_end(struct sw_job *job, struct sw_sgroup *g, uint32_t round,
	const struct sw_fault *why)
{
	const char *name = sw_sgroup_name(&job->shard, g);
	char text[SW_TEXT_MAX];

	if (!sw_sgroup_end(&job->shard, g, round, why))
		return;
	sw_log(job->srv->env->log, SW_LOG_WARN, "job %s: %s", job->name,
		sw_fault_text(why, g->streams, name, text));
	for (uint64_t m = g->members & ~g->closed; m; m &= m - 1) {
		struct sw_session *s = job->members[__builtin_ctzll(m)].session;

		if (!s)
			continue;
		sw_bitmap_add(&s->ends, sw_key_index(g->key));
		sw_session_owe(s, SW_OWE_END);
	}
}

/* --- groups that members close --- */

/* Cancel the END that the member is owed, since the group is closed.  Another
 * group may reuse the index. */
static void forget_end(struct sw_session *s, uint32_t key)
{
	sw_bitmap_remove(&s->ends, sw_key_index(key));
	if (sw_bitmap_is_empty(&s->ends))
		s->peer.owed &= ~(1u << SW_OWE_END);
	sw_peer_put_due(&s->peer);
}

/* Close a group for @members.  If that frees the group, results marked in its
 * windows are stale, so mark all sessions for a check. */
static void close_for(struct sw_job *job, struct sw_sgroup *g, uint64_t members)
{
	uint32_t key = g->key;
	uint64_t bytes;

	if (!sw_sgroup_close(&job->shard, g, members, job->left, &bytes))
		return;
	sw_share_give(job, bytes);
	sw_job_touch(job);
	for (uint32_t m = 0; m < job->n_members; m++)
		if (job->members[m].session)
			forget_end(job->members[m].session, key);
}

void sw_group_awaits_closed(
	struct sw_job *job, struct sw_sgroup *g, uint32_t who, uint32_t closed)
{
	const struct sw_shard *sh = &job->shard;
	const struct sw_fault why = {.err = SW_EABORTED,
		.kind = SW_FAULT_CLOSED,
		.one.rank = sw_shard_rank_of(sh, who),
		.other.rank = sw_shard_rank_of(sh, closed)};

	sw_group_end(job, g, 1, &why);
}

bool sw_job_close_left(struct sw_job *job)
{
	for (uint32_t n = 0; n < SW_JOB_BURST && job->close_at != SW_KEY_NONE;
		n++) {
		struct sw_sgroup *g =
			sw_shard_stream_group(&job->shard, &job->close_at);

		if (!g)
			break;
		job->is_needed |= !g->from && !(g->members & job->left) &&
				  g->members & ~g->closed;
		close_for(job, g, 0);
		job->close_at++;
	}
	return job->close_at == SW_KEY_NONE;
}

void sw_group_on_end(struct sw_session *s, const struct sw_rx_frame *f,
	const struct sw_header *h)
{
	const struct sw_shard *sh = &s->job->shard;
	uint64_t bit = 1ULL << s->member;
	struct sw_fault fault;
	struct sw_sgroup *g;
	bool is_known = sw_fault_read(&fault, f->payload);

	g = sw_shard_group(sh, fault.key);
	if (!g) {
		sw_count(&s->srv->stats.rx_key,
			!sw_shard_is_past(sh, fault.key));
		return;
	}
	if (!is_known || !(g->members & bit) ||
		(h->type == SW_CLOSE ? !g->streams
				     : !fault.kind && !fault.text[0])) {
		sw_count(&s->srv->stats.rx_state, 1);
		return;
	}
	if (g->closed & bit)
		return; /* closed members may not do so again */
	if (h->type == SW_END) {
		fault.err = (int16_t)sw_fault_death(fault.err);
		sw_group_end(s->job, g, h->round, &fault);
		return;
	}
	if (sw_sgroup_waits_for(sh, g, s->member) < SW_MAX_MEMBERS)
		sw_group_awaits_closed(s->job, g,
			sw_sgroup_waits_for(sh, g, s->member), s->member);
	forget_end(s, g->key);
	close_for(s->job, g, bit);
}

/* --- members that call differently --- */

/* Describe two collectives that use one chunk.  A frame names the root by its
 * member. */
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
	const struct sw_stensor *t = sw_shard_tensor(sh, h->key);
	uint16_t first = sw_shard_rank_of(sh, s->member);
	struct sw_fault why = {
		.err = SW_EMISMATCH, .one = {.rank = first, .op = h->op}};
	struct sw_begun b;

	if (t->mode != SW_MODE_STREAM && !sw_shard_has_root(sh, s->member, h)) {
		sw_session_fail(s, SW_EPROTO, h->key,
			"tensor %.64s: rank %u pushes %u B of a broadcast from "
			"rank %u, and has local ranks %u to %u",
			t->name, first, h->payload_len, h->aux, first,
			first + s->job->members[s->member].n_local - 1);
		return;
	}
	sw_flow_accept_again(&s->peer.flow, h->class, h->psn, s->srv->now_ns);
	b = sw_shard_begun(sh, h);
	why.other.rank = sw_shard_rank_of(sh, (uint32_t)__builtin_ctzll(b.got));
	why.other.op = b.op;
	if (t->mode == SW_MODE_STREAM) {
		note_collectives(sh, h, &b, &why);
	} else {
		why.one.root = h->aux;
		why.one.step = h->step;
		why.other.root = b.root;
		why.other.step = b.step;
		why.kind = (uint8_t)sw_fault_rounds(&why.one, &why.other);
	}
	sw_group_end(s->job, t->group, h->round, &why);
}

bool sw_session_check_call(
	struct sw_session *s, const struct sw_stensor *t, uint32_t number)
{
	const struct sw_shard *sh = &s->job->shard;
	struct sw_fault why = {.err = SW_EMISMATCH,
		.kind = SW_FAULT_KINDS,
		.one.rank = sw_shard_rank_of(sh, s->member)};
	struct sw_begun other;

	if (t->mode != SW_MODE_STREAM || t->group->from)
		return false;
	other = sw_shard_other_call(sh, t, number);
	if (!other.got)
		return true;
	snprintf(why.text, sizeof(why.text), "%s", sw_coll_last(t->name));
	why.other = (struct sw_fault_call){.number = number,
		.rank = sw_shard_rank_of(
			sh, (uint32_t)__builtin_ctzll(other.got)),
		.op = other.op};
	sw_group_end(s->job, t->group, 1, &why);
	return true;
}
