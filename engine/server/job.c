/* job.c - members and state of a job at a server; the coordinator's part.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The members of a job are fixed.  The job runs when all members have joined.
 * If a member dies or leaves with an error, the job fails, unless a group
 * without that member exists: such groups continue, and each worker ends the
 * groups of the dead member.  Only the coordinator, the first server of the
 * job's list, decides whether the job fails.  It does not tell the other
 * servers: the members leave them. */
#include <stdio.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/server/groups.h"
#include "engine/server/job.h"
#include "engine/server/session.h"
#include "engine/server/share.h"

static uint64_t sessions_bytes(uint32_t n_members)
{
	return n_members * sizeof(struct sw_session);
}

uint64_t sw_job_bytes(uint32_t n_members)
{
	return sw_shard_bytes(n_members) + sessions_bytes(n_members);
}

struct sw_job *sw_job_find(struct sw_server *srv, const char *name)
{
	for (uint32_t i = 0; i < SW_MAX_JOBS; i++)
		if (srv->jobs[i].n_sessions && !strcmp(srv->jobs[i].name, name))
			return &srv->jobs[i];
	return NULL;
}

struct sw_job *sw_job_unused(struct sw_server *srv)
{
	for (uint32_t i = 0; i < SW_MAX_JOBS; i++)
		if (!srv->jobs[i].n_sessions && !srv->jobs[i].is_closing)
			return &srv->jobs[i];
	return NULL;
}

bool sw_server_has_job(const struct sw_server *srv)
{
	for (uint32_t i = 0; i < SW_MAX_JOBS; i++)
		if (srv->jobs[i].n_sessions || srv->jobs[i].is_closing)
			return true;
	return false;
}

struct sw_place_job sw_join_place(const struct sw_join *j)
{
	return (struct sw_place_job){.n_members = j->n_members,
		.n_servers = j->n_servers,
		.n_colocated = j->n_colocated,
		.n_lcores = j->n_lcores};
}

/* --- describe which members a FORMING job waits for --- */

enum {
	/* The first pause between lines; each further pause is twice as long.
	 */
	FIRST_S = 2,
	LONGEST_S = 600,
};

/* Return how many ranks @members have. */
static uint32_t n_ranks(const struct sw_job *job, uint64_t members)
{
	uint32_t n = 0;

	for (; members; members &= members - 1)
		n += job->members[__builtin_ctzll(members)].n_local;
	return n;
}

/* Describe the missing members by number, since their ranks are unknown, and
 * the connected ones by address. */
static void describe(const struct sw_job *job, char *text, size_t size)
{
	const char *sep = "";
	char ip[SW_IP_TEXT];
	uint32_t n;

	text[0] = 0;
	for (uint32_t i = 0; i < job->n_members; i++) {
		const struct sw_member *m = &job->members[i];

		if (job->status.joined >> i & 1 ||
			(!m->refused_err && sw_ip_is_none(m->ip)))
			continue;
		if (m->refused_err)
			sw_text_add(text, size,
				"%sagent %u at %s was refused (%s)", sep, i,
				sw_ip_text(m->refused_ip, ip),
				sw_error_name(m->refused_err));
		else
			sw_text_add(text, size, "%sagent %u left (%.32s, %s)",
				sep, i, m->node, sw_ip_text(m->ip, ip));
		sep = "; ";
	}
	n = n_ranks(job, job->status.joined);
	sw_text_add(text, size, "%s%u rank%s here: agent ", sep, n,
		n == 1 ? "" : "s");
	sep = "";
	for (uint64_t left = job->status.joined; left; left &= left - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(left);

		sw_text_add(text, size, "%s%u %s", sep, i,
			sw_ip_text(job->members[i].ip, ip));
		sep = ", ";
	}
}

const char *sw_member_text(
	const struct sw_job *job, uint32_t member, char out[SW_MEMBER_TEXT])
{
	uint32_t first = sw_shard_rank_of(&job->shard, member);
	uint32_t n = job->members[member].n_local;
	char who[32];

	/* its ranks are known once all agents with smaller numbers have joined
	 */
	if (!sw_shard_is_ranked(&job->shard, member))
		snprintf(who, sizeof(who), "agent %u", member);
	else if (n == 1)
		snprintf(who, sizeof(who), "rank %u", first);
	else
		snprintf(who, sizeof(who), "ranks %u-%u", first, first + n - 1);
	snprintf(out, SW_MEMBER_TEXT, "%s (node %.40s)", who,
		job->members[member].node);
	return out;
}

struct sw_fault sw_member_gone(
	const struct sw_job *job, uint32_t member, enum sw_fault_kind kind)
{
	uint16_t first = sw_shard_rank_of(&job->shard, member);
	struct sw_fault f = {.err = SW_EPEER,
		.kind = (uint8_t)kind,
		.key = SW_KEY_NONE,
		.one = {.rank = first, .op = SW_HAS_LEFT},
		.other.rank =
			(uint16_t)(first - 1 + job->members[member].n_local)};

	sw_fault_at(&f, job->members[member].node);
	return f;
}

void sw_job_tell_waiting(struct sw_server *srv)
{
	char agents[SW_AGENTS_TEXT], known[400];

	srv->wait_at_ns = UINT64_MAX;
	for (uint32_t i = 0; i < SW_MAX_JOBS; i++) {
		struct sw_job *job = &srv->jobs[i];
		uint64_t missing;

		if (!job->n_sessions || job->status.state != SW_JOB_FORMING)
			continue;
		if (srv->now_ns >= job->wait_at_ns) {
			missing = sw_job_all(job) & ~job->status.joined;
			describe(job, known, sizeof(known));
			sw_log(srv->env->log, SW_LOG_INFO,
				"job %s: waiting for %s of %u; %s", job->name,
				sw_agents_text(missing, agents), job->n_members,
				known);
			job->wait_ns =
				sw_min64(2 * job->wait_ns, LONGEST_S * SW_S);
			job->wait_at_ns = srv->now_ns + job->wait_ns;
		}
		srv->wait_at_ns = sw_min64(srv->wait_at_ns, job->wait_at_ns);
	}
}

/* --- members come and go --- */

/* Return whether the control thread has prepared the memory for the tables and
 * all sessions. */
bool sw_job_is_ready(struct sw_server *srv, const struct sw_join *join)
{
	const struct sw_env *env = srv->env;
	const uint64_t page = 4096; /* each of the two may take one more page */
	struct sw_job *job = sw_job_unused(srv);

	return !job || !env->mem_ready ||
	       env->mem_ready(env->ctx, (uint32_t)(job - srv->jobs),
		       sw_job_bytes(join->n_members) + 2 * page);
}

struct sw_job *sw_job_open(struct sw_server *srv, const struct sw_join *join)
{
	struct sw_place_job place = sw_join_place(join);
	bool is_coordinated = join->server_i == 0;
	struct sw_job *job = sw_job_unused(srv);

	if (!job)
		return NULL;
	*job = (struct sw_job){.srv = srv,
		.is_coordinated = is_coordinated,
		.status = {.state = is_coordinated ? SW_JOB_FORMING
						   : SW_JOB_RUNNING,
			.epoch = is_coordinated
					 ? srv->env->random(srv->env->ctx) | 1
					 : join->epoch,
			.policy = join->policy,
			.credit_bytes = join->credit_bytes},
		.n_members = join->n_members,
		.terms = *join,
		.close_at = SW_KEY_NONE,
		.opened_ns = srv->now_ns,
		.params = srv->params};
	job->params.has_crc = join->has_crc;
	job->params.is_encrypted = join->is_encrypted;
	job->params.is_by_rank = join->is_by_rank;
	job->params.policy = sw_policy_at(join->policy);
	job->params.credit_bytes = join->credit_bytes;
	sw_share_open(job, join->job);
	for (uint32_t p = 0; p < srv->n_ports; p++)
		sw_drr_open(&srv->drr[p], sw_job_index(job), job->weight);
	memcpy(job->name, join->job, sizeof(job->name));
	if (sw_shard_open(&job->shard, &job->params, srv->env, &srv->stats,
		    &place, join->server_i, sw_epoch_seed(job->status.epoch),
		    &srv->now_ns))
		return NULL;
	job->sessions = srv->env->mem_get(
		srv->env->ctx, sessions_bytes(job->n_members));
	if (!job->sessions) {
		sw_shard_close(&job->shard);
		return NULL;
	}
	sw_crowd_open(&job->crowd, &srv->grants, true, &srv->now_ns);
	job->wait_ns = FIRST_S * SW_S;
	job->wait_at_ns = srv->now_ns + job->wait_ns;
	srv->wait_at_ns = sw_min64(srv->wait_at_ns, job->wait_at_ns);
	sw_log(srv->env->log, SW_LOG_INFO, "job %s: opened for %u agent%s",
		job->name, job->n_members, job->n_members == 1 ? "" : "s");
	return job;
}

/* Owe every member the newest state. */
static void announce(struct sw_job *job)
{
	if (job->status.state == SW_JOB_FORMING)
		describe(job, job->status.why.text,
			sizeof(job->status.why.text));
	for (uint32_t m = 0; m < job->n_members; m++)
		if (job->members[m].session)
			sw_session_owe(job->members[m].session, SW_OWE_STATUS);
}

void sw_job_note_refused(struct sw_server *srv, const struct sw_pending *p,
	int err, const char *why)
{
	struct sw_job *job = sw_job_find(srv, p->join.job);
	struct sw_member *m;
	char ip[SW_IP_TEXT];

	if (!job || job->status.state != SW_JOB_FORMING ||
		p->join.member >= job->n_members)
		return;
	m = &job->members[p->join.member];
	if (job->status.joined >> p->join.member & 1 ||
		(sw_ip_is_same(m->refused_ip, p->path.ip) &&
			m->refused_err == err))
		return;
	m->refused_ip = p->path.ip;
	m->refused_err = (int16_t)err;
	sw_log(srv->env->log, SW_LOG_WARN, "job %s: agent %u at %s refused: %s",
		job->name, p->join.member, sw_ip_text(p->path.ip, ip), why);
	announce(job);
}

void sw_job_enter(
	struct sw_job *job, struct sw_session *s, const struct sw_join *join)
{
	struct sw_member *m = &job->members[join->member];
	char ip[SW_IP_TEXT];

	*m = (struct sw_member){
		.session = s, .n_local = join->n_local, .ip = s->peer.path.ip};
	memcpy(m->node, join->node, sizeof(m->node));
	job->n_sessions++;
	sw_shard_join(&job->shard, join, s->peer.has_crc);
	job->status.joined |= 1ULL << s->member;
	sw_shard_rank(&job->shard, job->status.joined);
	sw_log(job->srv->env->log, SW_LOG_INFO,
		"job %s: agent %u joined from node %s at %s with %u rank%s "
		"(%d of %u agents)",
		job->name, s->member, m->node, sw_ip_text(m->ip, ip),
		m->n_local, m->n_local == 1 ? "" : "s",
		__builtin_popcountll(job->status.joined), job->n_members);
	if (!job->is_coordinated)
		return;
	if (job->status.state == SW_JOB_FORMING &&
		job->status.joined == sw_job_all(job)) {
		job->status.state = SW_JOB_PROBING;
		job->status.payload = (uint16_t)job->params.payload;
	}
	announce(job);
}

/* --- the payload: the largest that all paths carry --- */

bool sw_job_settle(struct sw_job *job, uint32_t payload)
{
	if (job->is_settled)
		return payload == job->params.payload;
	if (!sw_payload_is_good(payload) || payload > job->params.payload)
		return false;
	job->is_settled = true;
	job->params.payload = payload;
	for (uint32_t m = 0; m < job->n_members; m++)
		if (job->members[m].session)
			sw_flow_refit(&job->members[m].session->peer.flow);
	return true;
}

/* Start the job when all members that have not left have probed their paths. */
static void check_probed(struct sw_job *job)
{
	uint64_t missing = sw_job_all(job) & ~(job->probed | job->left);

	if (job->status.state != SW_JOB_PROBING || missing)
		return;
	(void)!sw_job_settle(job, job->status.payload);
	job->status.state = SW_JOB_RUNNING;
	sw_log(job->srv->env->log, SW_LOG_INFO,
		"job %s: runs with a payload of %u B", job->name,
		job->params.payload);
	announce(job);
}

void sw_job_on_paths(struct sw_session *s, const struct sw_rx_frame *f,
	const struct sw_header *h)
{
	struct sw_job *job = s->job;
	struct sw_paths said;

	memcpy(&said, f->payload, sizeof(said));
	if (job->status.state != SW_JOB_PROBING ||
		job->probed >> s->member & 1 ||
		!sw_payload_is_good(said.payload)) {
		sw_count(&s->srv->stats.rx_state, 1);
		return;
	}
	job->probed |= 1ULL << s->member;
	job->members[s->member].payload = said.payload;
	if (said.payload < job->status.payload)
		job->status.payload = said.payload;
	check_probed(job);
}

static void fail(struct sw_job *job, const struct sw_fault *why)
{
	char text[SW_TEXT_MAX];

	if (job->status.state == SW_JOB_FAILED)
		return;
	job->status.state = SW_JOB_FAILED;
	job->status.member = job->lost_member;
	job->status.why = *why;
	/* Do not name the member: it may only have noticed the failure. */
	sw_log(job->srv->env->log, SW_LOG_WARN, "job %s failed: %s", job->name,
		sw_shard_fault_text(&job->shard, why, text));
	announce(job);
	sw_job_touch(job); /* stop sending results */
}

static void close_session(struct sw_session *s)
{
	uint32_t i = s->peer.index;

	if (s->job->asker == s->peer.id)
		sw_share_drop(s->job);
	sw_session_offer(s, SW_N_CLASSES);
	sw_due_put(&s->srv->due[s->peer.path.port_i], SW_CLASS_CTL, i, false);
	sw_bits_put(s->job->here, i, false);
	sw_due_set_put(&s->srv->aside, i, false);
	s->srv->sessions[i] = NULL;
	s->srv->tick_at_ns[i] = UINT64_MAX;
	sw_sessions_note(s->srv, i);
	s->job->members[s->member].session = NULL;
	s->job->asking &= ~(1ULL << s->member);
	s->job->n_sessions--;
	sw_flow_fini(&s->peer.flow);
	sw_seal_free(s->peer.seal);
	s->peer.seal = NULL;
}

static void close_some(struct sw_job *job)
{
	const struct sw_env *env = job->srv->env;

	job->is_closing = !sw_shard_close(&job->shard);
	if (job->is_closing)
		return;
	sw_share_give(job, job->quota.used_bytes);
	sw_result_keys_free(job->results);
	job->results = NULL;
	env->mem_put(env->ctx, job->sessions, sessions_bytes(job->n_members));
	sw_log(env->log, SW_LOG_INFO, "job %s: closed", job->name);
}

/* Decide, after a member has left the running job with an error and all its
 * groups are closed: if a group that has lost no member is alive, the job
 * continues, else it fails. */
static void judge(struct sw_job *job)
{
	const struct sw_fault f = job->lost;
	uint16_t member = job->lost_member;
	char who[SW_MEMBER_TEXT], text[SW_TEXT_MAX];

	job->lost.err = 0;
	if (!f.err || job->status.state == SW_JOB_FAILED)
		return;
	if (!job->is_needed) {
		fail(job, &f);
		return;
	}
	sw_log(job->srv->env->log, SW_LOG_WARN,
		"job %s continues without %s: %s", job->name,
		sw_member_text(job, member, who),
		sw_shard_fault_text(&job->shard, &f, text));
	if (job->done >> member & 1)
		return; /* miss (server_rx.c) tells members that wait for it */
	job->status.joined &= ~job->left | job->done;
	job->status.member = member;
	job->status.why = f;
	announce(job);
}

static void close_left(struct sw_job *job)
{
	if (sw_job_close_left(job))
		judge(job);
}

bool sw_jobs_end(struct sw_server *srv)
{
	bool is_more = false;

	for (uint32_t i = 0; i < SW_MAX_JOBS; i++) {
		struct sw_job *job = &srv->jobs[i];

		if (job->is_closing)
			close_some(job);
		else if (job->n_sessions)
			close_left(job);
		is_more |= job->is_closing ||
			   (job->n_sessions && job->close_at != SW_KEY_NONE);
	}
	srv->is_ending = is_more;
	return is_more;
}

void sw_job_close(struct sw_job *job)
{
	job->srv->is_ending = true;
	sw_share_drop(job);
	close_some(job);
}

void sw_job_leave(struct sw_session *s, const struct sw_fault *why)
{
	struct sw_job *job = s->job;
	uint16_t member = s->member;
	bool goes_on = job->terms.mode == SW_MODE_ASYNC &&
		       job->status.state == SW_JOB_RUNNING;

	s->srv->is_ending = true;
	close_session(s);
	if (!job->n_sessions) {
		sw_job_close(job);
		return;
	}
	if (job->status.state == SW_JOB_FORMING && !why) {
		job->status.joined &= ~(1ULL << member); /* it may join again */
		announce(job);
		return;
	}
	/* A member that leaves without an error has all results of its pushes,
	 * but other members may still wait for the same results.  miss
	 * (server_rx.c) names it only to members that wait for it. */
	job->left |= 1ULL << member;
	job->done |= (uint64_t)(!why || goes_on) << member;
	/* STATUS names the member, because a restarted server, or a server that
	 * closed the job when its last member left, cannot. */
	if (goes_on && job->is_coordinated) {
		job->status.joined &= ~(1ULL << member);
		announce(job);
	}
	if (why && job->is_coordinated) {
		job->lost = *why;
		job->lost_member = member;
	}
	job->is_needed = goes_on;
	job->close_at = 0;
	close_left(job);
	check_probed(job);
}

void sw_job_status(
	const struct sw_job *job, uint16_t member, struct sw_status *out)
{
	*out = job->status;
	if (job->status.state != SW_JOB_RUNNING)
		out->payload = 0;
	for (uint32_t m = 0; m < job->n_members; m++)
		out->n_local[m] = job->members[m].n_local;
	out->size = (uint16_t)n_ranks(job, sw_job_all(job));
	out->first = (uint16_t)n_ranks(job, (1ULL << member) - 1);
}

/* --- tuning: number each state; STATUS carries the newest ---
 *
 * The server puts aside a TUNE that must wait, like a DECLARE, so that it never
 * blocks the control stream (PROTOCOL.md 5.1). */

static void number(struct sw_job *job, const struct sw_tune_ask *ask)
{
	job->status.number++;
	job->status.policy = ask->policy;
	job->status.part_bytes = ask->part_bytes;
	job->status.credit_bytes = ask->credit_bytes;
	sw_count(&job->srv->stats.tuning_changes, 1);
	sw_log(job->srv->env->log, SW_LOG_INFO,
		"job %s: tuning %u: policy %s, partition %llu, credit %llu "
		"(0: the policy's)",
		job->name, job->status.number, sw_policy_at(ask->policy)->name,
		(unsigned long long)ask->part_bytes,
		(unsigned long long)ask->credit_bytes);
	announce(job);
}

/* Number the next TUNE when all connected members know the last state, so that
 * a member that keeps asking costs one state per round trip.  Members take
 * turns, from the successor of the last one on. */
void sw_job_on_acked(struct sw_job *job)
{
	uint64_t later = job->asking & ~((2ULL << job->asked_last) - 1);

	if (!job->asking)
		return;
	for (uint32_t m = 0; m < job->n_members; m++) {
		const struct sw_session *s = job->members[m].session;

		if (s && (s->peer.owed >> SW_OWE_STATUS & 1 ||
				 !sw_control_has_acked(
					 &s->peer.control, s->status_number)))
			return;
	}
	job->asked_last =
		(uint16_t)__builtin_ctzll(later ? later : job->asking);
	job->asking &= ~(1ULL << job->asked_last);
	number(job, &job->members[job->asked_last].session->ask);
}

void sw_job_tune(struct sw_session *s, const struct sw_rx_frame *f,
	const struct sw_header *h)
{
	struct sw_job *job = s->job;
	struct sw_tune_ask ask;
	const char *why;

	memcpy(&ask, f->payload, sizeof(ask));
	if (!job->is_coordinated) {
		sw_count(&s->srv->stats.rx_state, 1);
		return;
	}
	why = sw_sched_check(
		sw_policy_at(ask.policy), ask.part_bytes, ask.credit_bytes);
	if (why) {
		sw_session_fail(s, SW_EINVAL, SW_KEY_NONE,
			"rank %u asks for policy %u, partition %llu, credit "
			"%llu: %s",
			sw_shard_rank_of(&job->shard, s->member), ask.policy,
			(unsigned long long)ask.part_bytes,
			(unsigned long long)ask.credit_bytes, why);
		return;
	}
	s->ask = ask;
	job->asking |= 1ULL << s->member;
	sw_job_on_acked(job);
}
