/* admit.c - how workers get in at a server.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * HELLO and JOIN come from strangers: nothing is stored for a HELLO, nothing
 * before a JOIN has shown its cookie, then a place in a table, and no answer is
 * larger than its question.  Memory, a rank, a job's name are only for those
 * that have spoken under their session (admit_pending.c).  Every request may
 * come twice; the second gets the same answer.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/siphash.h"
#include "engine/base/text.h"
#include "engine/sched/sched.h"
#include "engine/server/server.h"
#include "engine/server/terms.h"

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

void sw_admit_refuse(struct sw_server *srv, const struct sw_pending *p, int err,
	const char *fmt, ...)
{
	struct sw_header reply = {.type = SW_ERROR,
		.session = p->join.session,
		.psn = p->n_accepts ? p->n_accepts + 1 : 0,
		.payload_len = sizeof(struct sw_fault)};
	struct sw_fault fault = {.nonce = p->join.nonce,
		.err = (int16_t)err,
		.rank = p->join.rank,
		.key = SW_KEY_NONE};
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(fault.text, sizeof(fault.text), fmt, ap);
	va_end(ap);
	sw_count(&srv->stats.joins_refused, 1);
	sw_job_note_refused(srv, p, err, fault.text);
	sw_server_reply(srv, p->path, &reply, &fault);
}

struct sw_place_job sw_join_place(const struct sw_join *j)
{
	return (struct sw_place_job){.n_members = j->n_members,
		.n_servers = j->n_servers,
		.n_colocated = j->n_colocated,
		.n_lcores = j->n_lcores};
}

/* Is the JOIN possible at all?  A refusal names both values. */
static bool check_join(struct sw_server *srv, const struct sw_pending *p)
{
	const struct sw_join *j = &p->join;
	uint32_t max_payload = srv->max_payload[p->path.port_i];
	struct sw_place_job place = sw_join_place(j);

	if (!sw_text_is_good(j->job, sizeof(j->job)) ||
		!sw_text_is_good(j->node, sizeof(j->node))) {
		sw_count(&srv->stats.rx_state, 1);
		return false;
	}
	if (j->version_max < SW_VERSION_MIN || j->version_min > SW_VERSION_MAX)
		sw_admit_refuse(srv, p, SW_EVERSION,
			"worker speaks protocol versions %u to %u, server %u "
			"to %u",
			j->version_min, j->version_max, SW_VERSION_MIN,
			SW_VERSION_MAX);
	else if (j->n_members == 0 || j->n_members > SW_MAX_MEMBERS ||
		 j->rank >= j->n_members || j->n_local == 0 ||
		 j->n_local > LOCAL_MAX)
		sw_admit_refuse(srv, p, SW_EINVAL,
			"rank %u of %u workers (%u local): ranks are 0 to "
			"workers - 1, workers 1 to %u, local 1 to %u",
			j->rank, j->n_members, j->n_local, SW_MAX_MEMBERS,
			LOCAL_MAX);
	else if (j->n_servers == 0 || j->n_servers > SW_MAX_SERVERS ||
		 j->server_i >= j->n_servers ||
		 (j->server_i != 0) != (j->epoch != 0))
		sw_admit_refuse(srv, p, SW_EINVAL,
			"server %u of %u: wrong, or without the coordinator's "
			"epoch",
			j->server_i, j->n_servers);
	else if ((j->n_lcores ? j->n_lcores : 1) != srv->n_lcores)
		sw_admit_refuse(srv, p, SW_EMISMATCH,
			"rank %u: servers of %u polling cores; this one has %u "
			"([job] server_lcores)",
			j->rank, j->n_lcores ? j->n_lcores : 1, srv->n_lcores);
	else if (!sw_place_check(&place))
		sw_admit_refuse(srv, p, SW_EINVAL,
			"%u of %u servers on the machines of %u workers: there "
			"are servers on all of these machines or on none",
			j->n_colocated, j->n_servers, j->n_members);
	else if (sw_sched_check(sw_policy_at(j->policy), 0, j->credit_bytes))
		sw_admit_refuse(srv, p, SW_EINVAL, "policy %u, credit %llu: %s",
			j->policy, (unsigned long long)j->credit_bytes,
			sw_sched_check(
				sw_policy_at(j->policy), 0, j->credit_bytes));
	else if (!sw_port_is_class(j->payload) || j->payload > max_payload)
		sw_admit_refuse(srv, p, SW_EINVAL,
			"payload class %u: this port carries 1344, 3328 or "
			"8192 up to %u",
			j->payload, max_payload);
	else if (j->has_crc > 1 || j->mode >= SW_N_MODES)
		sw_admit_refuse(srv, p, SW_EINVAL,
			"crc %u, mode %u: 0 or 1 expected", j->has_crc,
			j->mode);
	else if (srv->is_stopping)
		sw_admit_refuse(srv, p, SW_EREFUSED, "the server is stopping");
	else
		return true;
	return false;
}

/* Does the JOIN fit the job that has its name? */
static bool check_job(struct sw_server *srv, const struct sw_pending *p,
	const struct sw_job *job)
{
	const struct sw_join *j = &p->join;
	const struct sw_member *m = &job->members[j->rank];
	char text[SW_TEXT_MAX];

	if (sw_terms_differ(job, j, text))
		sw_admit_refuse(srv, p, SW_EMISMATCH, "%s", text);
	else if (m->session_i != SW_NO_SESSION)
		sw_admit_refuse(srv, p, SW_EBUSY,
			"rank %u of job %.32s is held by node %.64s, which is "
			"alive",
			j->rank, job->name, m->node);
	else if (m->has_left || (j->epoch && j->epoch != job->epoch) ||
		 (job->is_coordinated && job->state != SW_JOB_FORMING))
		sw_admit_refuse(srv, p, SW_EBUSY,
			"job %.32s of an earlier run still has members",
			job->name);
	else
		return true;
	return false;
}

bool sw_admit_check(struct sw_server *srv, const struct sw_pending *p)
{
	const struct sw_job *job;

	if (!check_join(srv, p))
		return false;
	job = sw_job_find(srv, p->join.job);
	if (job)
		return check_job(srv, p, job);
	if (sw_job_has_room(srv))
		return true;
	sw_admit_refuse(srv, p, SW_EREFUSED,
		"the server is full: it serves at most %u jobs", SW_MAX_JOBS);
	return false;
}

/* Is it the JOIN of a session that is open, said again on its way? */
static bool is_late(const struct sw_server *srv, const struct sw_pending *p)
{
	for (uint32_t i = 0; i < srv->n_sessions; i++) {
		const struct sw_session *s = srv->sessions[i];

		if (s && s->nonce == p->join.nonce &&
			!memcmp(&s->peer.path, &p->path, sizeof(p->path)))
			return true;
	}
	return false;
}

void sw_admit_join(struct sw_server *srv, struct sw_path path,
	const struct sw_header *h, const uint8_t *payload)
{
	struct sw_pending p = {.path = path, .join_bytes = h->payload_len};
	const struct sw_join *j = &p.join;

	memcpy(&p.join, payload, sizeof(p.join));
	if (j->cookie != make_cookie(srv, path, j->nonce, 0) &&
		j->cookie != make_cookie(srv, path, j->nonce, 1)) {
		sw_count(&srv->stats.rx_state, 1);
		return;
	}
	if (!srv->is_inner[path.port_i] && !sw_admit_allows(srv, path.ip))
		return;
	if (is_late(srv, &p) || !sw_admit_check(srv, &p))
		return;
	if (!sw_pending_put(srv, &p))
		sw_admit_refuse(srv, &p, SW_EREFUSED,
			"the server is full: it has at most %u sessions",
			SW_MAX_SESSIONS);
}
