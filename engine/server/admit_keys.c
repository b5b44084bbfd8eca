/* admit_keys.c - admit workers that have a secret (PROTOCOL.md, section 14).
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A JOIN that none of the server's secrets opens costs some hashes, and the
 * server stores nothing for it.  The server exchanges keys once, for a JOIN
 * that opened and gets a place; a duplicate JOIN gets the same ACCEPT. */
#include <stdio.h>
#include <string.h>

#include "engine/server/admit_keys.h"
#include "engine/server/job.h"
#include "engine/server/session.h"

static struct sw_hand_path path_of(
	const struct sw_server *srv, const struct sw_path *path)
{
	return (struct sw_hand_path){
		.worker = path->ip, .server = srv->ip[path->port_i]};
}

const struct sw_secret *sw_admit_secret(
	const struct sw_server *srv, uint64_t key_id)
{
	return sw_keyring_find(srv->keyring, (const uint8_t *)&key_id);
}

bool sw_admit_know(struct sw_server *srv, const struct sw_secret *secret,
	const struct sw_rx_frame *f)
{
	struct sw_hand_path path = path_of(srv, &f->from);

	if (sw_hand_is_good(secret, SW_LABEL_HELLO, &path, f->payload,
		    sizeof(struct sw_hello), offsetof(struct sw_hello, mac)))
		return true;
	sw_count(&srv->stats.rx_tag, 1);
	return false;
}

/* The answer ends the session at its worker, so only the endpoint that had the
 * session may send it.  A neighbour with the same secret knows none of the
 * sessions. */
uint32_t sw_admit_unknown(const struct sw_server *srv,
	const struct sw_rx_frame *f, const struct sw_hello *hello)
{
	uint32_t id = hello->session, i = id >> 16;
	bool is_ours = hello->udp == srv->udp[f->from.port_i] + f->endpoint;

	if (!is_ours || i >= SW_MAX_SESSIONS)
		return 0;
	if (srv->sessions[i])
		return srv->sessions[i]->peer.id == id ? 0 : id;
	return srv->pending[i].id == id ? 0 : id;
}

uint32_t sw_admit_prove(const struct sw_server *srv,
	const struct sw_secret *secret, const struct sw_path *path,
	enum sw_label label, void *payload, uint32_t n)
{
	struct sw_hand_path both = path_of(srv, path);

	return sw_hand_mac(secret, label, &both, payload, n + SW_MAC_BYTES, n)
		       ? n + SW_MAC_BYTES
		       : n;
}

uint32_t sw_admit_again(const struct sw_server *srv, const struct sw_pending *p)
{
	for (uint32_t i = 0; i < srv->n_sessions; i++) {
		const struct sw_pending *has = &srv->pending[i];

		if (has->id && has->seal && has->join.nonce == p->join.nonce &&
			!memcmp(has->e, p->e, sizeof(p->e)) &&
			sw_path_is_same(&has->path, &p->path))
			return i;
	}
	return SW_MAX_SESSIONS;
}

/* Log that a worker has none of the server's keys: the server has no key to
 * prove an answer to that worker. */
static void tell(struct sw_server *srv, const struct sw_pending *p)
{
	char ip[SW_IP_TEXT];

	sw_count(&srv->stats.rx_tag, 1);
	if (!sw_server_may_log(srv, p->path.ip, SW_LINE_KEY))
		return;
	sw_log(srv->env->log, SW_LOG_WARN,
		"an agent at %s has another key than this server (next report "
		"after %u s)",
		sw_ip_text(p->path.ip, ip), SW_QUIET_S);
}

bool sw_admit_unseal(struct sw_server *srv, const struct sw_rx_frame *f,
	const struct sw_secret *secret, struct sw_pending *p,
	struct sw_noise *noise)
{
	struct sw_hand_path path = path_of(srv, &f->from);
	uint8_t e[32];
	bool is_good;

	if (!secret || p->join_bytes < SW_JOIN_KEYED) {
		tell(srv, p);
		return false;
	}
	sw_hand_random(srv->env, e);
	is_good = sw_hand_begin(
			  noise, secret, &path, f->payload, p->join_bytes, e) &&
		  sw_noise_asked(noise, f->payload + SW_JOIN_CLEAR,
			  SW_JOIN_NOISE, (uint8_t *)&p->join + SW_JOIN_CLEAR);
	sw_crypto_wipe(e, sizeof(e));
	if (!is_good)
		tell(srv, p);
	return is_good;
}

/* Choose the keys of results: the open job's keys, else the keys offered to
 * another worker of the same job, else new keys. */
static void choose_results(struct sw_server *srv, struct sw_pending *p)
{
	const struct sw_job *job = sw_job_find(srv, p->join.job);

	p->is_of_run = job && job->results;
	if (p->is_of_run) {
		memcpy(p->results, job->results->secret, sizeof(p->results));
		return;
	}
	for (uint32_t i = 0; i < srv->n_sessions; i++) {
		const struct sw_pending *other = &srv->pending[i];

		if (other->seal && !other->is_of_run &&
			!strncmp(other->join.job, p->join.job,
				sizeof(p->join.job))) {
			memcpy(p->results, other->results, sizeof(p->results));
			return;
		}
	}
	sw_hand_random(srv->env, p->results);
}

struct sw_accept sw_pending_accept(
	const struct sw_server *srv, const struct sw_pending *p)
{
	return (struct sw_accept){.nonce = p->join.nonce,
		.session = p->id,
		.version = SW_VERSION_MAX,
		.is_encrypted = p->join.is_encrypted,
		.payload = (uint16_t)sw_min64(
			srv->params.payload, srv->max_payload[p->path.port_i])};
}

bool sw_admit_answer(
	struct sw_server *srv, struct sw_pending *p, struct sw_noise *noise)
{
	struct sw_accept a = sw_pending_accept(srv, p);
	uint8_t sealed[SW_ACCEPT_SEALED];

	choose_results(srv, p);
	memcpy(sealed, (uint8_t *)&a + SW_ACCEPT_CLEAR,
		sizeof(a) - SW_ACCEPT_CLEAR);
	memcpy(sealed + sizeof(a) - SW_ACCEPT_CLEAR, p->results,
		sizeof(p->results));
	memcpy(p->accept, &a, SW_ACCEPT_CLEAR);
	if (sw_noise_answer(
		    noise, sealed, sizeof(sealed), p->accept + SW_ACCEPT_CLEAR))
		p->seal = sw_hand_finish(noise, true, p->join.is_encrypted);
	sw_crypto_wipe(sealed, sizeof(sealed));
	sw_crypto_wipe(noise, sizeof(*noise));
	return p->seal != NULL;
}

bool sw_admit_is_inner(const struct sw_server *srv, const struct sw_pending *p)
{
	uint32_t i = p->path.port_i;

	return srv->is_inner[i] ||
	       (srv->is_trusted[i] && p->join.is_trusted && !p->join.key_id);
}

const char *sw_admit_key(struct sw_server *srv, const struct sw_pending *p)
{
	const struct sw_job *job = sw_job_find(srv, p->join.job);
	const struct sw_keyring *k = srv->keyring;
	const struct sw_secret *secret;

	if (sw_admit_is_inner(srv, p))
		return NULL;
	if (p->join.is_trusted)
		return "its port is trusted, but not that of the server: set "
		       "[port] trusted alike at both ends";
	if (k && k->encrypting == SW_MUST_ENCRYPT && !p->join.is_encrypted)
		return "the server takes only encrypted jobs: give all agents "
		       "[job] encrypt = yes";
	if (k && k->encrypting == SW_MUST_NOT_ENCRYPT && p->join.is_encrypted)
		return "the server takes no encrypted job ([serve] encrypt = "
		       "refuse): give all agents [job] encrypt = no";
	if (!p->join.key_id) {
		if (k && (k->is_required || sw_keyring_has_job(k, p->join.job)))
			return "the server takes no agent without a key: give "
			       "it [job] key_file";
		if (job && job->key_id)
			return "the job's other agents have a key: give it "
			       "[job] key_file";
		return p->join.is_encrypted ? "it encrypts, but has no key: "
					      "give it [job] key_file"
					    : NULL;
	}
	secret = sw_admit_secret(srv, p->join.key_id);
	if (!secret || !sw_keyring_has(k, secret, p->join.job, srv->now_ns))
		return "the server has no such key for this job";
	if (job && job->key_id && job->key_id != p->join.key_id)
		return "the job's other agents have another key: give all "
		       "agents of a job the same [job] key_file";
	return job && job->is_plain ? "the job's other agents have no key"
				    : NULL;
}

/* Use the keys of results that @p was told in this run alone: the next run
 * repeats nonces, so it must not use these keys. */
static void open_results(struct sw_job *job, const struct sw_pending *p)
{
	struct sw_server *srv = job->srv;

	job->results = sw_result_keys_new(p->results, job->params.is_encrypted);
	for (uint32_t i = 0; i < SW_MAX_SESSIONS; i++) {
		struct sw_pending *other = &srv->pending[i];

		if (other->seal &&
			!memcmp(other->results, p->results, sizeof(p->results)))
			other->is_of_run = true;
	}
}

bool sw_job_keyed(struct sw_job *job, const struct sw_pending *p)
{
	if (sw_admit_is_inner(job->srv, p)) {
		job->has_inner = true;
		return true;
	}
	if (!p->seal) {
		job->is_plain = true;
		return true;
	}
	if (!job->results && !p->is_of_run)
		open_results(job, p);
	if (!job->results || memcmp(job->results->secret, p->results,
				     sizeof(p->results)) != 0)
		return false;
	job->key_id = p->join.key_id;
	p->seal->era = job->results->era;
	job->params.has_crc = false; /* no member of a keyed job reads CRCs */
	return true;
}

/* Return a member that has not confirmed the current era of @job; NULL: all
 * have. */
static struct sw_session *find_unconfirmed(const struct sw_job *job)
{
	for (uint32_t i = 0; i < job->n_members; i++) {
		struct sw_session *s = job->members[i].session;

		if (s && s->peer.seal &&
			s->peer.seal->confirmed != job->results->era)
			return s;
	}
	return NULL;
}

/* End a session that has not confirmed the new key in time, before nonces
 * repeat. */
static void end_unconfirmed(struct sw_session *s)
{
	struct sw_fault why = {.err = SW_EPROTO, .key = SW_KEY_NONE};
	char who[SW_MEMBER_TEXT];

	snprintf(why.text, sizeof(why.text),
		"%s confirms no new key of results",
		sw_member_text(s->job, s->member, who));
	sw_log(s->srv->env->log, SW_LOG_WARN, "job %s: %s", s->job->name,
		why.text);
	sw_job_leave(s, &why);
}

static void renew(struct sw_job *job)
{
	struct sw_result_keys *r = job->results;
	uint64_t n_folded = job->shard.n_folded;
	struct sw_session *s;

	if (n_folded - r->era_from < job->params.era_folds)
		return;
	s = find_unconfirmed(job);
	if (s) {
		if (job->srv->now_ns - r->era_ns >= job->params.dead_after)
			end_unconfirmed(s);
		return;
	}
	r->era++;
	r->era_from = n_folded;
	r->era_ns = job->srv->now_ns;
	for (uint32_t i = 0; i < job->n_members; i++) {
		s = job->members[i].session;
		if (!s || !s->peer.seal)
			continue;
		s->peer.seal->era = r->era;
		sw_session_owe(s, SW_OWE_KEEPALIVE);
	}
}

void sw_jobs_renew(struct sw_server *srv)
{
	for (uint32_t i = 0; i < SW_MAX_JOBS; i++)
		if (srv->jobs[i].n_sessions && srv->jobs[i].results)
			renew(&srv->jobs[i]);
}
