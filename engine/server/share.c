/* share.c - divide a server among jobs: memory, and bandwidth under load.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The server sends results by weight (drr.h).  Pushes arrive as fast as their
 * senders' windows allow, and queues in a switch or a ring serve pushes in
 * order of arrival.  So the server sets the windows of active jobs in
 * proportion to their weights, for any number of members.  If one job alone is
 * active, it has the whole window. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "engine/server/session.h"
#include "engine/server/share.h"

enum {
	LOOK_NS = 1000000,    /* between two checks for active jobs */
	ACTIVE_NS = 20000000, /* since the last fold */
	FRAMES_MIN = 2,       /* in the smallest window */
};

int sw_server_share(
	struct sw_server *srv, const struct sw_share *shares, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!shares[i].weight || shares[i].weight > SW_MAX_WEIGHT)
			return SW_EINVAL;
	srv->shares = shares;
	srv->n_shares = n;
	return 0;
}

void sw_share_open(struct sw_job *job, const char *name)
{
	const struct sw_server *srv = job->srv;
	struct sw_share share = {.weight = 1, .quota_bytes = UINT64_MAX};

	for (uint32_t i = 0; i < srv->n_shares; i++)
		if (!strcmp(srv->shares[i].job, name))
			share = srv->shares[i];
	job->weight = share.weight;
	job->quota.bytes = share.quota_bytes;
	job->quota.all_used = share.all_used;
}

void sw_server_reshare(struct sw_server *srv)
{
	for (uint32_t i = 0; i < SW_MAX_JOBS; i++) {
		struct sw_job *job = &srv->jobs[i];

		if (!job->n_sessions)
			continue;
		sw_share_open(job, job->name);
		for (uint32_t p = 0; p < srv->n_ports; p++)
			sw_drr_set_weight(&srv->drr[p], i, job->weight);
	}
	srv->has_changed = true;
}

/* --- quotas --- */

/* A quota that was reduced may be exceeded. */
static uint64_t left_of(const struct sw_quota *q)
{
	uint64_t used = q->all_used ? atomic_load(q->all_used) : q->used_bytes;

	return q->bytes - sw_min64(q->bytes, used);
}

static bool take_bytes(struct sw_quota *q, uint64_t need)
{
	uint64_t left = left_of(q), used = q->bytes - left;

	do
		if (used > q->bytes || need > q->bytes - used)
			return false;
	while (q->all_used &&
		!atomic_compare_exchange_weak(q->all_used, &used, used + need));
	q->used_bytes += need;
	return true;
}

static void give_bytes(struct sw_quota *q, uint64_t bytes)
{
	if (q->all_used)
		atomic_fetch_sub(q->all_used, bytes);
	q->used_bytes -= bytes;
}

bool sw_share_take(struct sw_job *job, uint64_t need, char text[SW_TEXT_MAX])
{
	const uint64_t mib = 1 << 20;
	struct sw_quota *q = &job->quota;
	char whose[48];

	snprintf(whose, sizeof(whose), " of job %.32s", job->name);
	if (take_bytes(q, need)) {
		q = &job->srv->quota;
		if (take_bytes(q, need))
			return true;
		give_bytes(&job->quota, need);
		whose[0] = 0;
	}
	/* Round the need up and the remainder down. */
	snprintf(text, SW_TEXT_MAX,
		"quota%s: the tensors need %llu MiB, %llu of %llu MiB are left",
		whose, (unsigned long long)((need + mib - 1) / mib),
		(unsigned long long)(left_of(q) / mib),
		(unsigned long long)(q->bytes / mib));
	return false;
}

void sw_share_give(struct sw_job *job, uint64_t bytes)
{
	give_bytes(&job->srv->quota, bytes);
	give_bytes(&job->quota, bytes);
}

void sw_share_drop(struct sw_job *job)
{
	const struct sw_env *env = job->srv->env;

	if (!job->asked_bytes)
		return;
	if (env->mem_drop)
		env->mem_drop(env->ctx, sw_job_index(job));
	sw_share_give(job, job->asked_bytes);
	job->asked_bytes = 0;
}

/* --- sessions and their places --- */

void sw_places_note(struct sw_server *srv, uint32_t i)
{
	uint32_t n = (uint32_t)sw_max64(srv->n_sessions, i + 1);

	while (n && !srv->sessions[n - 1] && !srv->pending[n - 1].id)
		n--;
	srv->n_sessions = n;
}

void sw_sessions_note(struct sw_server *srv, uint32_t i)
{
	sw_places_note(srv, i);
	srv->n_open = 0;
	for (i = 0; i < srv->n_sessions; i++)
		srv->n_open += srv->sessions[i] != NULL;
	if (srv->n_open)
		sw_grants_divide(&srv->grants, srv->n_open);
	srv->has_changed = true;
}

/* --- shares under load --- */

/* Return the weight of one flow: the job's weight divided among its members. */
static uint64_t flow_weight(const struct sw_job *job)
{
	return ((uint64_t)job->weight << 16) / job->n_members;
}

static void set_windows(struct sw_server *srv, uint32_t active)
{
	uint64_t whole = srv->params.window_bytes, most = 0;

	for (uint32_t m = active; m; m &= m - 1)
		most = sw_max64(
			most, flow_weight(&srv->jobs[__builtin_ctz(m)]));
	for (uint32_t i = 0; i < srv->n_sessions; i++) {
		struct sw_session *s = srv->sessions[i];
		uint64_t bytes = whole;

		if (!s)
			continue;
		s->peer.tick_at_ns = 0;
		srv->tick_at_ns[i] =
			0; /* a smaller window makes an ACK due earlier */
		if (active >> sw_job_index(s->job) & 1)
			bytes = sw_max64(whole * flow_weight(s->job) / most,
				FRAMES_MIN * s->job->params.payload);
		sw_flow_set_window(
			&s->peer.flow, (uint32_t)sw_min64(bytes, whole));
	}
}

/* A job without others has the whole window, active or not, so it needs no
 * timer. */
uint64_t sw_share_tick(struct sw_server *srv)
{
	uint32_t active = 0, n_jobs = 0;

	if (srv->now_ns < srv->look_at_ns)
		return srv->is_shared || srv->has_changed ? srv->look_at_ns
							  : UINT64_MAX;
	for (uint32_t i = 0; i < SW_MAX_JOBS; i++) {
		struct sw_job *job = &srv->jobs[i];

		if (!job->n_sessions)
			continue;
		n_jobs++;
		if (job->n_folded != job->shard.n_folded) {
			job->n_folded = job->shard.n_folded;
			job->active_ns = srv->now_ns;
		}
		if (srv->now_ns - job->active_ns < ACTIVE_NS)
			active |= 1u << i;
	}
	if (active != srv->active || srv->has_changed)
		set_windows(srv, active);
	srv->active = active;
	srv->is_shared = active && n_jobs > 1;
	srv->has_changed = false;
	srv->look_at_ns = srv->now_ns + LOOK_NS;
	return srv->is_shared ? srv->look_at_ns : UINT64_MAX;
}
