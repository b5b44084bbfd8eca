/* admit.c - how workers get in at a server.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * HELLO and JOIN come from strangers: nothing is stored for a HELLO, nothing
 * before a JOIN has shown its cookie, and no answer is larger than its
 * question.  Every request may come twice; the second gets the same answer.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/bytes.h"
#include "engine/error.h"
#include "engine/sched.h"
#include "engine/server.h"
#include "engine/siphash.h"
#include "engine/terms.h"

/* Local ranks of one worker, so that the sum of all fits into 16 bits. */
enum { LOCAL_MAX = UINT16_MAX / SW_MAX_MEMBERS };

/* Tag over who asks and when; @age 0 is the current cookie, 1 the one before.
 */
static uint64_t make_cookie(const struct sw_server *srv, struct sw_path path,
	uint64_t nonce, uint64_t age)
{
	uint64_t words[3] = {path.ip | (uint64_t)path.udp << 32 |
				     (uint64_t)path.port_i << 48,
		nonce, srv->now_ns / srv->params.cookie_life - age};

	return sw_siphash(srv->secret, words, 3);
}

void sw_admit_hello(struct sw_server *srv, const struct sw_rx_frame *f,
	const uint8_t *payload)
{
	struct sw_header reply = {.type = SW_COOKIE};
	struct sw_cookie cookie = {
		.landed = (uint8_t)f->landed, .is_astray = f->is_astray};

	memcpy(&cookie.nonce, payload, sizeof(cookie.nonce));
	cookie.cookie = make_cookie(srv, f->from, cookie.nonce, 0);
	reply.payload_len = sizeof(cookie);
	sw_server_reply(srv, f->from, &reply, &cookie);
}

static void refuse(struct sw_server *srv, struct sw_path path,
	const struct sw_join *join, int err, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

static void refuse(struct sw_server *srv, struct sw_path path,
	const struct sw_join *join, int err, const char *fmt, ...)
{
	struct sw_header reply = {.type = SW_ERROR,
		.session = join->session,
		.payload_len = sizeof(struct sw_fault)};
	struct sw_fault fault = {.nonce = join->nonce,
		.err = (int16_t)err,
		.rank = join->rank,
		.key = SW_KEY_NONE};
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(fault.text, sizeof(fault.text), fmt, ap);
	va_end(ap);
	srv->stats.joins_refused++;
	sw_server_reply(srv, path, &reply, &fault);
}

struct sw_place_job sw_join_place(const struct sw_join *j)
{
	return (struct sw_place_job){.n_members = j->n_members,
		.n_servers = j->n_servers,
		.n_colocated = j->n_colocated,
		.n_lcores = j->n_lcores,
		.policy = j->placement};
}

/* Is the JOIN possible at all?  A refusal names both values. */
static bool check_join(
	struct sw_server *srv, struct sw_path path, const struct sw_join *j)
{
	struct sw_place_job place = sw_join_place(j);

	if (!sw_wire_is_text(j->job, sizeof(j->job)) ||
		!sw_wire_is_text(j->node, sizeof(j->node))) {
		srv->stats.rx_state++;
		return false;
	}
	if (j->version_max < SW_VERSION_MIN || j->version_min > SW_VERSION_MAX)
		refuse(srv, path, j, SW_EVERSION,
			"worker speaks protocol versions %u to %u, server %u "
			"to %u",
			j->version_min, j->version_max, SW_VERSION_MIN,
			SW_VERSION_MAX);
	else if (j->n_members == 0 || j->n_members > SW_MAX_MEMBERS ||
		 j->rank >= j->n_members || j->n_local == 0 ||
		 j->n_local > LOCAL_MAX)
		refuse(srv, path, j, SW_EINVAL,
			"rank %u of %u workers (%u local): ranks are 0 to "
			"workers - 1, workers 1 to %u, local 1 to %u",
			j->rank, j->n_members, j->n_local, SW_MAX_MEMBERS,
			LOCAL_MAX);
	else if (j->n_servers == 0 || j->n_servers > SW_MAX_SERVERS ||
		 j->server_i >= j->n_servers ||
		 (j->server_i != 0) != (j->epoch != 0))
		refuse(srv, path, j, SW_EINVAL,
			"server %u of %u: wrong, or without the coordinator's "
			"epoch",
			j->server_i, j->n_servers);
	else if ((j->n_lcores ? j->n_lcores : 1) != srv->n_lcores)
		refuse(srv, path, j, SW_EMISMATCH,
			"rank %u: servers of %u polling cores; this one has %u "
			"([job] server_lcores)",
			j->rank, j->n_lcores ? j->n_lcores : 1, srv->n_lcores);
	else if (!sw_place_check(&place))
		refuse(srv, path, j, SW_EINVAL,
			"placement %u with %u of %u servers on the machines of "
			"%u workers: there are placements 0 to %u, and servers "
			"on all of these machines or on none",
			j->placement, j->n_colocated, j->n_servers,
			j->n_members, SW_N_PLACE_POLICIES - 1);
	else if (sw_sched_check(sw_policy_at(j->policy), 0, j->credit_bytes))
		refuse(srv, path, j, SW_EINVAL, "policy %u, credit %llu: %s",
			j->policy, (unsigned long long)j->credit_bytes,
			sw_sched_check(
				sw_policy_at(j->policy), 0, j->credit_bytes));
	else if (!sw_port_is_class(j->payload) ||
		 j->payload > srv->max_payload[path.port_i])
		refuse(srv, path, j, SW_EINVAL,
			"payload class %u: this port carries 1344, 3328 or "
			"8192 up to %u",
			j->payload, srv->max_payload[path.port_i]);
	else if (j->has_crc > 1 || j->mode >= SW_N_MODES)
		refuse(srv, path, j, SW_EINVAL,
			"crc %u, mode %u: 0 or 1 expected", j->has_crc,
			j->mode);
	else if (srv->is_stopping)
		refuse(srv, path, j, SW_EREFUSED, "the server is stopping");
	else
		return true;
	return false;
}

/* Has the rank said a later JOIN, in this or in a later start? */
static bool is_outdated(const struct sw_server *srv, const struct sw_header *h,
	const struct sw_join *j, const struct sw_job *job)
{
	const struct sw_member *m = &job->members[j->rank % SW_MAX_MEMBERS];

	if (j->incarnation != m->incarnation || m->session_i == SW_NO_SESSION)
		return j->incarnation < m->incarnation;
	return h->psn <= srv->sessions[m->session_i]->flow.heard[SW_CLASS_CTL];
}

/* Does the JOIN fit the job that has its name? */
static bool check_job(struct sw_server *srv, struct sw_path path,
	const struct sw_header *h, const struct sw_join *j,
	const struct sw_job *job)
{
	const struct sw_member *m = &job->members[j->rank % SW_MAX_MEMBERS];
	char text[SW_TEXT_MAX];

	if (is_outdated(srv, h, j, job))
		refuse(srv, path, j, SW_EBUSY,
			"rank %u of job %.32s was taken by a later start, on "
			"node %.64s",
			j->rank, job->name, m->node);
	else if (sw_terms_differ(job, j, text))
		refuse(srv, path, j, SW_EMISMATCH, "%s", text);
	else if (m->session_i != SW_NO_SESSION)
		refuse(srv, path, j, SW_EBUSY,
			"rank %u of job %.32s is held by node %.64s, which is "
			"alive",
			j->rank, job->name, m->node);
	else if (m->has_left || (j->epoch && j->epoch != job->epoch) ||
		 (job->is_coordinated && job->state != SW_JOB_FORMING))
		refuse(srv, path, j, SW_EBUSY,
			"job %.32s of an earlier run still has members",
			job->name);
	else
		return true;
	return false;
}

static struct sw_session *open_session(
	struct sw_server *srv, struct sw_path path, const struct sw_join *j)
{
	uint32_t i = 0;
	struct sw_session *s;

	while (i < SW_MAX_SESSIONS && srv->sessions[i])
		i++;
	s = i < SW_MAX_SESSIONS ? calloc(1, sizeof(*s)) : NULL;
	if (!s)
		return NULL;
	/* A generation is never 0, so no session id is. */
	if (!++srv->generations[i])
		srv->generations[i] = 1;
	s->id = i << 16 | srv->generations[i];
	s->peer = j->session;
	s->path = path;
	s->member = j->rank;
	s->due_class = SW_N_CLASSES;
	s->nonce = j->nonce;
	s->incarnation = j->incarnation;
	s->heard_ns = s->sent_ns = srv->now_ns;
	srv->sessions[i] = s;
	srv->tick_at_ns[i] = 0;
	srv->n_sessions = (uint32_t)sw_max64(srv->n_sessions, i + 1);
	srv->stats.sessions_opened++;
	return s;
}

/* The session of an earlier, identical JOIN, whose ACCEPT was lost. */
static struct sw_session *same_join(const struct sw_server *srv,
	struct sw_path path, const struct sw_join *j, const struct sw_job *job)
{
	uint16_t i = j->rank < SW_MAX_MEMBERS ? job->members[j->rank].session_i
					      : SW_NO_SESSION;
	struct sw_session *s = i == SW_NO_SESSION ? NULL : srv->sessions[i];

	return s && s->nonce == j->nonce && s->incarnation == j->incarnation &&
			       !memcmp(&s->path, &path, sizeof(path))
		       ? s
		       : NULL;
}

/* What nobody has spoken for yet yields to a newer JOIN: the session that has
 * its rank, and a job of other terms without confirmed members.  Returns the
 * job, NULL when it went. */
static struct sw_job *make_way(struct sw_server *srv, const struct sw_header *h,
	const struct sw_join *j, struct sw_job *job)
{
	char text[SW_TEXT_MAX];
	bool is_other = sw_terms_differ(job, j, text) ||
			(j->epoch && j->epoch != job->epoch);

	if (is_outdated(srv, h, j, job) || (is_other && job->joined))
		return job;
	for (uint32_t m = 0; m < SW_MAX_MEMBERS && job->is_used; m++) {
		uint16_t i = job->members[m].session_i;

		if (i != SW_NO_SESSION && !srv->sessions[i]->is_confirmed &&
			(m == j->rank || is_other))
			sw_session_drop(srv, srv->sessions[i]);
	}
	return job->is_used ? job : NULL;
}

static void enter(struct sw_server *srv, struct sw_path path,
	const struct sw_header *h, const struct sw_join *j, struct sw_job *job)
{
	struct sw_session *s = open_session(srv, path, j);

	if (!s) {
		refuse(srv, path, j, SW_EREFUSED,
			"the server has no room for another session");
		sw_job_forget(srv, job, j->rank); /* if opened for it */
		return;
	}
	s->job = job;
	s->join_bytes = h->payload_len;
	s->has_crc = job->params.has_crc && !srv->is_inner[path.port_i];
	sw_flow_init(&s->flow, &job->params);
	sw_flow_share(&s->flow, &srv->grants);
	sw_flow_hear(&s->flow, h);
	sw_job_enter(srv, job, s, j);
}

void sw_admit_join(struct sw_server *srv, struct sw_path path,
	const struct sw_header *h, const uint8_t *payload)
{
	struct sw_join j;
	struct sw_job *job;
	struct sw_session *again;

	memcpy(&j, payload, sizeof(j));
	if (j.cookie != make_cookie(srv, path, j.nonce, 0) &&
		j.cookie != make_cookie(srv, path, j.nonce, 1)) {
		srv->stats.rx_state++;
		return;
	}
	if (!check_join(srv, path, &j))
		return;
	job = sw_job_find(srv, j.job);
	again = job ? same_join(srv, path, &j, job) : NULL;
	if (again) {
		if (!again->is_confirmed) /* later it speaks for itself */
			again->heard_ns = srv->now_ns;
		again->join_bytes = h->payload_len;
		sw_session_owe(srv, again, SW_OWE_ACCEPT);
		return;
	}
	if (job)
		job = make_way(srv, h, &j, job);
	if (job && !check_job(srv, path, h, &j, job))
		return;
	if (!job)
		job = sw_job_open(srv, &j);
	if (job)
		enter(srv, path, h, &j, job);
	else
		refuse(srv, path, &j, SW_EREFUSED,
			"the server has no room for another job (%u)",
			SW_MAX_JOBS);
}
