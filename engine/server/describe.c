/* describe.c - describe jobs and waiting sums to the control thread.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/server/server_int.h"

_Static_assert((int)SW_LOOK_JOBS == (int)SW_MAX_JOBS, "all have a place");

enum { LOOK_BURST = 1024 }; /* tensors and chunks that one call checks */

static void describe_member(
	const struct sw_job *job, uint32_t m, struct sw_server_job *out)
{
	const struct sw_member *from = &job->members[m];
	struct sw_server_member *to = &out->members[m];

	*to = (struct sw_server_member){.n_local = from->n_local,
		.is_ranked = sw_shard_is_ranked(&job->shard, m),
		.first = sw_shard_rank_of(&job->shard, m),
		.is_here = from->session != NULL,
		.has_left = job->left >> m & 1,
		.late = job->shard.late[m],
		.push_bytes = job->shard.push_bytes[m],
		.result_bytes = job->shard.result_bytes[m]};
	memcpy(to->node, from->node, sizeof(to->node));
	out->size += from->n_local;
	if (to->is_here) {
		to->path = sw_peer_look(&from->session->peer);
		to->payload = from->payload;
		out->n_here++;
		out->n_ranks += from->n_local;
	} else {
		out->missing |= 1ULL << m;
	}
}

static void describe_job(
	const struct sw_job *job, uint64_t now_ns, struct sw_server_job *out)
{
	bool is_active = job->n_folded != job->shard.n_folded;
	bool is_known = true; /* no member has n_local 0 */

	*out = (struct sw_server_job){.state = job->status.state,
		.is_closing = job->is_closing,
		.is_keyed = job->key_id != 0,
		.is_encrypted = job->params.is_encrypted,
		.n_members = job->n_members,
		.payload = job->is_settled ? job->params.payload : 0,
		.most_payload = job->srv->params.payload,
		.age_ns = now_ns - sw_min64(now_ns, job->opened_ns),
		.open_chunks = job->shard.n_open,
		.open_slots = job->shard.n_slots,
		.done_chunks = job->shard.n_done};
	if (!is_active)
		out->idle_ns =
			now_ns - sw_min64(now_ns, job->active_ns
							  ? job->active_ns
							  : job->opened_ns);
	for (uint32_t m = 0; m < job->n_members; m++) {
		describe_member(job, m, out);
		is_known &= job->members[m].n_local > 0;
	}
	if (!is_known)
		out->size = 0;
	memcpy(out->name, job->name, sizeof(out->name));
	out->why = job->status.why;
}

static void add_wait(struct sw_server_view *l, const struct sw_shard_wait *wait,
	uint64_t now_ns)
{
	struct sw_server_wait *w = &l->waits[l->n_waits];

	if (l->n_waits == SW_LOOK_WAITS) {
		l->n_more++;
		return;
	}
	l->n_waits++;
	*w = (struct sw_server_wait){.job = l->n_jobs - 1,
		.n_open = wait->n_open,
		.is_stream = wait->is_stream,
		.kind = wait->kind,
		.number = wait->number,
		.still_ns = now_ns - sw_min64(now_ns, wait->since_ns),
		.lacks = wait->lacks};
	memcpy(w->name, wait->name, sizeof(w->name));
}

/* Add the job's waiting tensors to @l.  Returns whether the job is done. */
static bool look_at_job(const struct sw_job *job, uint64_t now_ns,
	struct sw_server_view *l, uint32_t *budget)
{
	struct sw_shard_wait wait;

	while (sw_shard_next_wait(&job->shard, &l->at, budget, &wait))
		add_wait(l, &wait, now_ns);
	return l->at.index >= job->shard.n_keys;
}

bool sw_server_describe(
	const struct sw_server *srv, uint64_t now_ns, struct sw_server_view *l)
{
	uint32_t budget = LOOK_BURST;

	for (; l->slot < SW_MAX_JOBS; l->slot++) {
		const struct sw_job *job = &srv->jobs[l->slot];

		if (!budget)
			return false;
		if ((job->n_sessions || job->is_closing) && !l->is_begun)
			describe_job(job, now_ns, &l->jobs[l->n_jobs++]);
		if (job->n_sessions && !job->is_closing) {
			l->is_begun = true;
			if (!look_at_job(job, now_ns, l, &budget))
				return false;
		}
		l->is_begun = false;
		l->at = (struct sw_shard_look){0};
	}
	return true;
}

static const struct sw_session *session_at(
	const struct sw_engine *engine, uint32_t i)
{
	const struct sw_server *srv = (const struct sw_server *)engine;

	return i < srv->n_sessions ? srv->sessions[i] : NULL;
}

bool sw_server_peer(
	const struct sw_engine *engine, uint32_t i, struct sw_engine_peer *out)
{
	const struct sw_session *s = session_at(engine, i);

	if (!s)
		return false;
	*out = (struct sw_engine_peer){.id = s->peer.id,
		.far_id = s->peer.far_id,
		.seed = s->peer.seed,
		.path = s->peer.path,
		.epoch = s->job->status.epoch,
		.member = s->member};
	memcpy(out->job, s->job->name, sizeof(out->job));
	return true;
}

bool sw_server_tensor(const struct sw_engine *engine, uint32_t i, uint32_t key,
	struct sw_engine_tensor *out)
{
	const struct sw_session *s = session_at(engine, i);
	const struct sw_stensor *t =
		s ? sw_shard_tensor(&s->job->shard, key) : NULL;

	if (!t)
		return false;
	*out = (struct sw_engine_tensor){t->name, t->mode == SW_MODE_STREAM};
	return true;
}
