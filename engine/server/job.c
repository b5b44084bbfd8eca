/* job.c - members and state of a job at a server; the coordinator's part.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Members are fixed: the job runs when all have joined, and fails when one
 * dies or leaves with an error.  Only the coordinator, the first server
 * of the job's list, decides that; the other servers learn it from nobody:
 * their members leave.
 */
#include "engine/server/job.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/server/server.h"
#include "engine/server/session.h"
#include "engine/server/share.h"

uint64_t sw_job_bytes(uint32_t n_members)
{
	return sw_shard_bytes(n_members) +
	       n_members * sizeof(struct sw_session);
}

struct sw_job *sw_job_find(struct sw_server *srv, const char *name)
{
	for (uint32_t i = 0; i < SW_MAX_JOBS; i++)
		if (srv->jobs[i].is_used && !strcmp(srv->jobs[i].name, name))
			return &srv->jobs[i];
	return NULL;
}

struct sw_job *sw_job_unused(struct sw_server *srv)
{
	for (uint32_t i = 0; i < SW_MAX_JOBS; i++)
		if (!srv->jobs[i].is_used)
			return &srv->jobs[i];
	return NULL;
}

struct sw_place_job sw_join_place(const struct sw_join *j)
{
	return (struct sw_place_job){.n_members = j->n_members,
		.n_servers = j->n_servers,
		.n_colocated = j->n_colocated,
		.n_lcores = j->n_lcores};
}

struct sw_job *sw_job_open(struct sw_server *srv, const struct sw_join *join)
{
	struct sw_place_job place = sw_join_place(join);
	struct sw_share share = sw_share_of(srv, join->job);
	struct sw_job *job = sw_job_unused(srv);

	if (!job)
		return NULL;
	*job = (struct sw_job){.is_coordinated = join->server_i == 0,
		.state = SW_JOB_FORMING,
		.epoch = join->epoch,
		.n_members = join->n_members,
		.params = srv->params};
	if (job->is_coordinated)
		job->epoch = srv->env->random(srv->env->ctx) | 1;
	else
		job->state = SW_JOB_RUNNING;
	job->params.payload = join->payload;
	job->params.has_crc = join->has_crc;
	job->params.policy = sw_policy_at(join->policy);
	job->params.credit_bytes = join->credit_bytes;
	job->tuning = (struct sw_job_tuning){.policy = job->params.policy,
		.credit_bytes = join->credit_bytes};
	job->params.is_async = join->mode == SW_MODE_ASYNC;
	job->weight = share.weight;
	job->quota_bytes = share.quota_bytes;
	job->all_used = share.all_used;
	for (uint32_t p = 0; p < srv->n_ports; p++)
		sw_drr_open(&srv->drr[p], sw_job_index(srv, job), job->weight);
	memcpy(job->name, join->job, sizeof(job->name));
	if (sw_shard_open(&job->shard, &job->params, srv->env, &srv->stats,
		    &place, join->server_i))
		return NULL;
	job->is_used = true;
	sw_job_wait(srv, job);
	sw_log(srv->env->log, SW_LOG_INFO, "job %s: opened, %u members",
		job->name, job->n_members);
	return job;
}

void sw_job_announce(struct sw_server *srv, struct sw_job *job)
{
	job->seq++;
	for (uint32_t m = 0; m < job->n_members; m++) {
		struct sw_session *s = job->members[m].session;

		if (s) {
			s->status_wait_ns = srv->params.retry_min;
			sw_session_owe(srv, s, SW_OWE_STATUS);
		}
	}
}

void sw_job_note_refused(struct sw_server *srv, const struct sw_pending *p,
	int err, const char *why)
{
	struct sw_job *job = sw_job_find(srv, p->join.job);
	struct sw_member *m;
	char ip[SW_IP_TEXT];

	if (!job || !job->is_coordinated || job->state != SW_JOB_FORMING ||
		p->join.rank >= job->n_members)
		return;
	m = &job->members[p->join.rank];
	if (job->joined >> p->join.rank & 1 ||
		(m->refused_ip == p->path.ip && m->refused_err == err))
		return;
	m->refused_ip = p->path.ip;
	m->refused_err = (int16_t)err;
	sw_log(srv->env->log, SW_LOG_WARN, "job %s: rank %u at %s refused: %s",
		job->name, p->join.rank, sw_ip_text(p->path.ip, ip), why);
	sw_job_describe(job, job->text, sizeof(job->text));
	sw_job_announce(srv, job);
}

void sw_job_enter(struct sw_server *srv, struct sw_job *job,
	struct sw_session *s, const struct sw_join *join)
{
	struct sw_member *m = &job->members[join->rank];
	char ip[SW_IP_TEXT];

	*m = (struct sw_member){
		.session = s, .n_local = join->n_local, .ip = s->peer.path.ip};
	memcpy(m->node, join->node, sizeof(m->node));
	sw_shard_set_weight(&job->shard, join->rank, join->n_local);
	sw_shard_set_crc(&job->shard, join->rank, s->peer.has_crc);
	job->joined |= 1ULL << s->member;
	sw_shard_rank(&job->shard, job->joined);
	sw_log(srv->env->log, SW_LOG_INFO,
		"job %s: rank %u joined from node %s at %s (%d of %u)",
		job->name, s->member, m->node, sw_ip_text(m->ip, ip),
		__builtin_popcountll(job->joined), job->n_members);
	if (!job->is_coordinated)
		return;
	if (job->state == SW_JOB_FORMING &&
		__builtin_popcountll(job->joined) == job->n_members)
		job->state = SW_JOB_RUNNING;
	if (job->state == SW_JOB_FORMING)
		sw_job_describe(job, job->text, sizeof(job->text));
	sw_job_announce(srv, job);
}

static void fail(struct sw_server *srv, struct sw_job *job, uint16_t rank,
	int err, const char *text)
{
	if (job->state == SW_JOB_FAILED)
		return;
	job->state = SW_JOB_FAILED;
	job->err = (int16_t)err;
	job->err_rank = rank;
	snprintf(job->text, sizeof(job->text), "%s", text);
	/* why is in the line before, of who found it */
	sw_log(srv->env->log, SW_LOG_WARN, "job %s failed by rank %u",
		job->name, rank);
	sw_job_announce(srv, job);
}

void sw_job_close(struct sw_server *srv, struct sw_job *job)
{
	sw_share_drop(srv, job);
	sw_share_give(srv, job, job->used_bytes);
	sw_shard_close(&job->shard);
	job->is_used = false;
	sw_log(srv->env->log, SW_LOG_INFO, "job %s: closed", job->name);
}

/* The session of @rank is closed.  Returns whether it was the last one, and
 * the job with it. */
static bool close_if_last(
	struct sw_server *srv, struct sw_job *job, uint16_t rank)
{
	job->members[rank].session = NULL;
	for (uint32_t m = 0; m < job->n_members; m++)
		if (job->members[m].session)
			return false;
	sw_job_close(srv, job);
	return true;
}

/* Does it go on without a member that died? */
static bool outlives(const struct sw_job *job)
{
	return job->params.is_async && job->state == SW_JOB_RUNNING;
}

void sw_job_leave(struct sw_server *srv, struct sw_job *job, uint16_t rank,
	int err, const char *text)
{
	if (close_if_last(srv, job, rank))
		return;
	if (job->state == SW_JOB_FORMING && !err) {
		job->joined &= ~(1ULL << rank); /* it may come again */
		sw_job_describe(job, job->text, sizeof(job->text));
		sw_job_announce(srv, job);
		return;
	}
	job->members[rank].has_left = true;
	job->members[rank].is_done = !err;
	/* Who leaves without an error holds all that it pushed, and the others
	 * may still wait for the same results: it is named to those that push
	 * more than it did (sw_job_left). */
	if (!err || !job->is_coordinated)
		return;
	if (outlives(job))
		sw_log(srv->env->log, SW_LOG_WARN,
			"job %s continues without rank %u: %s", job->name, rank,
			text);
	else
		fail(srv, job, rank, err, text);
}

uint32_t sw_job_left(const struct sw_job *job, uint64_t members)
{
	for (; members; members &= members - 1) {
		uint32_t m = (uint32_t)__builtin_ctzll(members);

		if (job->members[m].is_done ||
			(job->params.is_async && job->members[m].has_left))
			return m;
	}
	return SW_MAX_MEMBERS;
}

void sw_job_status(
	const struct sw_job *job, uint16_t rank, struct sw_status *out)
{
	const struct sw_job_tuning *k = &job->tuning;

	*out = (struct sw_status){.joined = job->joined,
		.seq = job->seq,
		.state = (uint8_t)job->state,
		.policy = (uint8_t)sw_policy_id(k->policy),
		.err = job->err,
		.rank = job->err_rank,
		.number = k->number,
		.part_bytes = k->part_bytes,
		.credit_bytes = k->credit_bytes,
		.request = job->members[rank].request,
		.epoch = job->epoch};
	for (uint32_t m = 0; m < job->n_members; m++) {
		out->size += job->members[m].n_local;
		if (m < rank)
			out->first += job->members[m].n_local;
	}
	memcpy(out->text, job->text, sizeof(out->text));
}
