/* admit_check.c - decide whether a worker may join; if not, tell it why.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A refusal names both values: the worker's, and the right one. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/server/server_int.h"

bool sw_admit_refuse(struct sw_server *srv, const struct sw_pending *p, int err,
	const char *fmt, ...)
{
	struct sw_header reply = {.type = SW_ERROR,
		.session = p->join.session,
		.head_crc = sw_session_seed(p->join.nonce),
		.psn = p->n_accepts ? p->n_accepts + 1 : 0,
		.payload_len = sizeof(struct sw_fault)};
	struct sw_fault fault = {.nonce = p->join.nonce,
		.err = (int16_t)err,
		.key = SW_KEY_NONE};
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(fault.text, sizeof(fault.text), fmt, ap);
	va_end(ap);
	sw_count(&srv->stats.joins_refused, 1);
	sw_job_note_refused(srv, p, err, fault.text);
	sw_server_reply(srv, p->path, &reply, &fault);
	return false;
}

/* --- is the JOIN possible at all? --- */

static bool check_worker(struct sw_server *srv, const struct sw_pending *p)
{
	const struct sw_join *j = &p->join;

	if (!sw_text_is_good(j->job, sizeof(j->job)) ||
		!sw_text_is_good(j->node, sizeof(j->node))) {
		sw_count(&srv->stats.rx_state, 1);
		return false;
	}
	if (j->version_max < SW_VERSION_MIN || j->version_min > SW_VERSION_MAX)
		return sw_admit_refuse(srv, p, SW_EVERSION,
			"agent speaks protocol versions %u to %u, server %u "
			"to %u",
			j->version_min, j->version_max, SW_VERSION_MIN,
			SW_VERSION_MAX);
	if (j->n_members == 0 || j->n_members > SW_MAX_MEMBERS ||
		j->member >= j->n_members || j->n_local == 0 ||
		j->n_local > SW_LOCAL_RANKS)
		return sw_admit_refuse(srv, p, SW_EINVAL,
			"agent %u of %u with %u local ranks: a job has 1 to %u "
			"agents, numbered from 0, of 1 to %u ranks each",
			j->member, j->n_members, j->n_local, SW_MAX_MEMBERS,
			SW_LOCAL_RANKS);
	if (j->first && j->first <= j->member)
		return sw_admit_refuse(srv, p, SW_EINVAL,
			"agent %u has ranks from %u on: each agent before it "
			"has at least one",
			j->member, j->first - 1);
	return true;
}

static bool check_servers(struct sw_server *srv, const struct sw_pending *p)
{
	const struct sw_join *j = &p->join;
	struct sw_place_job place = sw_join_place(j);
	uint32_t n_lcores = j->n_lcores ? j->n_lcores : 1;

	if (j->n_servers == 0 || j->n_servers > SW_MAX_SERVERS ||
		j->server_i >= j->n_servers ||
		(j->server_i != 0) != (j->epoch != 0))
		return sw_admit_refuse(srv, p, SW_EINVAL,
			"server %u of %u: wrong, or without the coordinator's "
			"epoch",
			j->server_i, j->n_servers);
	if (n_lcores != srv->n_lcores)
		return sw_admit_refuse(srv, p, SW_EMISMATCH,
			"agent %u: servers of %u polling cores; this one has "
			"%u "
			"([job] server_lcores)",
			j->member, n_lcores, srv->n_lcores);
	if (!sw_place_check(&place))
		return sw_admit_refuse(srv, p, SW_EINVAL,
			"%u of %u servers are colocated with %u agents: "
			"colocate servers with all agents or with none",
			j->n_colocated, j->n_servers, j->n_members);
	return true;
}

static bool check_options(struct sw_server *srv, const struct sw_pending *p)
{
	const struct sw_join *j = &p->join;
	const char *why =
		sw_sched_check(sw_policy_at(j->policy), 0, j->credit_bytes);

	if (why)
		return sw_admit_refuse(srv, p, SW_EINVAL,
			"policy %u, credit %llu: %s", j->policy,
			(unsigned long long)j->credit_bytes, why);
	if (!sw_payload_is_good(j->payload))
		return sw_admit_refuse(srv, p, SW_EINVAL,
			"payload %u: a multiple of %u from %u to %u expected",
			j->payload, SW_PAYLOAD_UNIT, SW_PAYLOAD_MIN,
			SW_PAYLOAD_MAX);
	if (j->has_crc > 1 || j->mode > SW_MODE_ASYNC || j->is_by_rank > 1)
		return sw_admit_refuse(srv, p, SW_EINVAL,
			"crc %u, mode %u, order %u: 0 or 1 expected",
			j->has_crc, j->mode, j->is_by_rank);
	return true;
}

/* --- terms that all members of a job agree on --- */

/* A term with its number, or its name. */
struct term {
	const char *what;
	uint64_t said, has;
	const char *said_name, *has_name;
};

static const char *order_name(bool is_by_rank)
{
	return is_by_rank ? "rank" : "arrival";
}

/* Does the JOIN have the same terms as @job?  If not, refuses it. */
static bool check_terms(struct sw_server *srv, const struct sw_pending *p,
	const struct sw_job *job)
{
	const struct sw_join *j = &p->join;
	const struct sw_join *has = &job->terms;
	const struct term terms[] = {
		{"agents", j->n_members, has->n_members, NULL, NULL},
		{"crc", j->has_crc, has->has_crc, NULL, NULL},
		{"servers", j->n_servers, has->n_servers, NULL, NULL},
		{"number of this server", j->server_i, has->server_i, NULL,
			NULL},
		{"colocated servers", j->n_colocated, has->n_colocated, NULL,
			NULL},
		{"policy", j->policy, has->policy,
			sw_policy_at(j->policy)->name,
			sw_policy_at(has->policy)->name},
		{"credit (0: the policy's)", j->credit_bytes, has->credit_bytes,
			NULL, NULL},
		{"mode", j->mode, has->mode, sw_mode_name(j->mode),
			sw_mode_name(has->mode)},
		{"order", j->is_by_rank, has->is_by_rank,
			order_name(j->is_by_rank), order_name(has->is_by_rank)},
	};

	for (size_t i = 0; i < SW_ARRAY_SIZE(terms); i++) {
		const struct term *t = &terms[i];
		char said[24], here[24];

		if (t->said == t->has)
			continue;
		snprintf(said, sizeof(said), "%llu",
			(unsigned long long)t->said);
		snprintf(
			here, sizeof(here), "%llu", (unsigned long long)t->has);
		return sw_admit_refuse(srv, p, SW_EMISMATCH,
			"agent %u has %s = %s, job %.32s has %s: all its nodes "
			"need the same",
			j->member, t->what, t->said_name ? t->said_name : said,
			job->name, t->has_name ? t->has_name : here);
	}
	return true;
}

/* Does the JOIN fit the job of its name?  If not, refuses it. */
static bool check_job(struct sw_server *srv, const struct sw_pending *p,
	const struct sw_job *job)
{
	const struct sw_join *j = &p->join;
	const struct sw_member *m = &job->members[j->member];
	char ip[SW_IP_TEXT];

	if (!check_terms(srv, p, job))
		return false;
	if (m->session)
		return sw_admit_refuse(srv, p, SW_EBUSY,
			"agent %u of job %.32s is node %.36s at %s: give each "
			"agent its own [job] agent",
			j->member, job->name, m->node, sw_ip_text(m->ip, ip));
	if (job->left >> j->member & 1 ||
		(j->epoch && j->epoch != job->status.epoch) ||
		(job->is_coordinated && job->status.state != SW_JOB_FORMING))
		return sw_admit_refuse(srv, p, SW_EBUSY,
			"job %.32s of an earlier run still has members",
			job->name);
	return true;
}

/* --- may it join here? --- */

static bool has_job(const char *names, const char *job)
{
	size_t n;

	for (; *names; names += n + (names[n] == ',')) {
		for (n = 0; names[n] && names[n] != ',';)
			n++;
		if (n && names[n - 1] == '*'
				? !strncmp(job, names, n - 1)
				: strlen(job) == n && !memcmp(job, names, n))
			return true;
	}
	return false;
}

static bool has_net(const struct sw_guests *g, struct sw_ip ip)
{
	for (uint32_t i = 0; i < g->n_nets; i++)
		if (sw_ip_is_near(ip, g->nets[i].ip, g->nets[i].bits))
			return true;
	return false;
}

/* Strangers learn nothing of the jobs and networks that may. */
static bool check_guest(struct sw_server *srv, const struct sw_pending *p)
{
	const struct sw_guests *g = srv->guests;
	char ip[SW_IP_TEXT];

	if (!g)
		return true;
	if (g->n_nets && !srv->is_inner[p->path.port_i] &&
		!has_net(g, p->path.ip))
		return sw_admit_refuse(srv, p, SW_EREFUSED,
			"the server takes no agents at %s: add their network "
			"to its [serve] from",
			sw_ip_text(p->path.ip, ip));
	if (*g->jobs && !has_job(g->jobs, p->join.job))
		return sw_admit_refuse(srv, p, SW_EREFUSED,
			"the server does not serve job %.32s: add it to its "
			"[serve] jobs",
			p->join.job);
	return true;
}

void sw_server_limit(struct sw_server *srv, const struct sw_guests *guests)
{
	srv->guests = guests;
}

bool sw_admit_check(struct sw_server *srv, const struct sw_pending *p)
{
	const struct sw_job *job;

	if (!check_worker(srv, p) || !check_guest(srv, p) ||
		!check_servers(srv, p) || !check_options(srv, p))
		return false;
	if (srv->is_stopping)
		return sw_admit_refuse(
			srv, p, SW_EREFUSED, "the server is stopping");
	job = sw_job_find(srv, p->join.job);
	if (job)
		return check_job(srv, p, job);
	if (sw_job_unused(srv))
		return true;
	return sw_admit_refuse(srv, p, SW_EREFUSED,
		"the server is full: it serves at most %u jobs", SW_MAX_JOBS);
}
