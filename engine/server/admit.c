/* admit.c - admit workers to a server: HELLO, JOIN, ACCEPT.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * HELLO and JOIN come from strangers.  The server stores nothing for a HELLO,
 * and only a table entry for a JOIN with a valid cookie.  No answer is larger
 * than its question.  A worker gets memory and a place in a job only after its
 * first frame with the offered session id.  Until the memory is ready, the
 * server drops the worker's frames and repeats ACCEPT.  A duplicate request
 * gets the same answer. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/siphash.h"
#include "engine/base/text.h"
#include "engine/server/admit.h"
#include "engine/server/admit_keys.h"
#include "engine/server/job.h"
#include "engine/server/session.h"
#include "engine/server/share.h"

/* Make a cookie over address and time.  @age 0: of the current period; 1: of
 * the previous period. */
static uint64_t make_cookie(const struct sw_server *srv, struct sw_path path,
	uint64_t nonce, uint64_t age)
{
	uint64_t words[] = {path.ip.high, path.ip.low,
		path.udp | (uint64_t)path.port_i << 16, nonce,
		srv->now_ns / srv->params.cookie_life - age};

	return sw_siphash(srv->secret, words, SW_ARRAY_SIZE(words));
}

void sw_admit_hello(struct sw_server *srv, const struct sw_rx_frame *f)
{
	uint8_t payload[sizeof(struct sw_cookie) + SW_MAC_BYTES];
	struct sw_cookie cookie = {
		.landed = (uint8_t)f->landed, .is_misrouted = f->is_misrouted};
	struct sw_header reply = {
		.type = SW_COOKIE, .payload_len = sizeof(cookie)};
	const struct sw_secret *secret;
	struct sw_hello hello;

	/* A flood must not take time from open sessions. */
	if (!sw_token_take(srv, &srv->hello_full_ns, SW_HELLO_EVERY_US * SW_US,
		    SW_HELLO_BURST) &&
		srv->n_open) {
		sw_count(&srv->stats.hellos_limited, 1);
		return;
	}
	memcpy(&hello, f->payload, sizeof(hello));
	secret = sw_admit_secret(srv, hello.key_id);
	if (secret && !sw_admit_know(srv, secret, f))
		return;
	cookie.nonce = hello.nonce;
	cookie.cookie = make_cookie(srv, f->from, cookie.nonce, 0);
	if (secret)
		cookie.unknown = sw_admit_unknown(srv, f, &hello);
	memcpy(payload, &cookie, sizeof(cookie));
	if (secret)
		reply.payload_len = (uint16_t)sw_admit_prove(srv, secret,
			&f->from, SW_LABEL_COOKIE, payload, sizeof(cookie));
	sw_server_reply(srv, f->from, NULL, &reply, payload);
}

/* --- may a worker join? ---
 *
 * A refusal names the worker's value and the right value. */

/* Tell the worker behind a JOIN why it may not join.  Returns false. */
static __attribute__((format(printf, 4, 5))) bool refuse(struct sw_server *srv,
	const struct sw_pending *p, int err, const char *fmt, ...)
{
	struct sw_header reply = {.type = SW_ERROR,
		.session = p->join.session,
		.head_crc = sw_session_seed(p->join.nonce),
		.psn = p->n_accepts ? p->n_accepts + 1 : 0,
		.payload_len = sizeof(struct sw_fault)};
	struct sw_fault fault = {.nonce = p->join.nonce,
		.err = (int16_t)err,
		.key = SW_KEY_NONE};
	const struct sw_secret *secret = sw_admit_secret(srv, p->join.key_id);
	uint8_t payload[sizeof(fault) + SW_MAC_BYTES];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(fault.text, sizeof(fault.text), fmt, ap);
	va_end(ap);
	sw_count(&srv->stats.joins_refused, 1);
	sw_job_note_refused(srv, p, err, fault.text);
	memcpy(payload, &fault, sizeof(fault));
	if (secret)
		reply.payload_len = (uint16_t)sw_admit_prove(srv, secret,
			&p->path, SW_LABEL_REFUSE, payload, sizeof(fault));
	sw_server_reply(srv, p->path, NULL, &reply, payload);
	return false;
}

/* --- is the JOIN valid?  --- */

static bool check_worker(struct sw_server *srv, const struct sw_pending *p)
{
	const struct sw_join *j = &p->join;

	if (!sw_text_is_good(j->job, sizeof(j->job)) ||
		!sw_text_is_good(j->node, sizeof(j->node))) {
		sw_count(&srv->stats.rx_state, 1);
		return false;
	}
	if (j->version_max < SW_VERSION_MIN || j->version_min > SW_VERSION_MAX)
		return refuse(srv, p, SW_EVERSION,
			"agent speaks protocol versions %u to %u, server %u "
			"to %u",
			j->version_min, j->version_max, SW_VERSION_MIN,
			SW_VERSION_MAX);
	if (j->n_members == 0 || j->n_members > SW_MAX_MEMBERS ||
		j->member >= j->n_members || j->n_local == 0 ||
		j->n_local > SW_LOCAL_RANKS)
		return refuse(srv, p, SW_EINVAL,
			"agent %u of %u with %u local ranks: a job has 1 to %u "
			"agents, numbered from 0, of 1 to %u ranks each",
			j->member, j->n_members, j->n_local, SW_MAX_MEMBERS,
			SW_LOCAL_RANKS);
	if (j->first && j->first <= j->member)
		return refuse(srv, p, SW_EINVAL,
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
		return refuse(srv, p, SW_EINVAL,
			"server %u of %u: wrong, or without the coordinator's "
			"epoch",
			j->server_i, j->n_servers);
	if (n_lcores != srv->n_lcores)
		return refuse(srv, p, SW_EMISMATCH,
			"agent %u: servers of %u polling cores; this one has "
			"%u "
			"([job] server_lcores)",
			j->member, n_lcores, srv->n_lcores);
	if (!sw_place_check(&place))
		return refuse(srv, p, SW_EINVAL,
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
		return refuse(srv, p, SW_EINVAL, "policy %u, credit %llu: %s",
			j->policy, (unsigned long long)j->credit_bytes, why);
	if (!sw_payload_is_good(j->payload))
		return refuse(srv, p, SW_EINVAL,
			"payload %u: a multiple of %u from %u to %u expected",
			j->payload, SW_PAYLOAD_UNIT, SW_PAYLOAD_MIN,
			SW_PAYLOAD_MAX);
	if (j->has_crc > 1 || j->mode > SW_MODE_ASYNC || j->is_by_rank > 1 ||
		j->is_encrypted > 1)
		return refuse(srv, p, SW_EINVAL,
			"crc %u, mode %u, order %u, encrypt %u: 0 or 1 "
			"expected",
			j->has_crc, j->mode, j->is_by_rank, j->is_encrypted);
	return true;
}

/* --- terms that all members of a job agree on --- */

/* A term, as a number or by its name. */
struct term {
	const char *what;
	uint64_t said, has;
	const char *said_name, *has_name;
};

/* Does the JOIN have the same terms as @job?  If not, refuses it. */
static bool check_terms(struct sw_server *srv, const struct sw_pending *p,
	const struct sw_job *job)
{
	const struct sw_join *j = &p->join;
	const struct sw_join *has = &job->terms;
	static const char *const orders[] = {"arrival", "rank"};
	static const char *const answers[] = {"no", "yes"};
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
		{"order", j->is_by_rank, has->is_by_rank, orders[j->is_by_rank],
			orders[has->is_by_rank]},
		{"encrypt", j->is_encrypted, has->is_encrypted,
			answers[j->is_encrypted], answers[has->is_encrypted]},
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
		return refuse(srv, p, SW_EMISMATCH,
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
		return refuse(srv, p, SW_EBUSY,
			"agent %u of job %.32s is node %.36s at %s: give each "
			"agent its own [job] agent",
			j->member, job->name, m->node, sw_ip_text(m->ip, ip));
	if (job->left >> j->member & 1 ||
		(j->epoch && j->epoch != job->status.epoch) ||
		(job->is_coordinated && job->status.state != SW_JOB_FORMING))
		return refuse(srv, p, SW_EBUSY,
			"job %.32s of an earlier run still has members",
			job->name);
	return true;
}

/* --- may the worker join this server?  --- */

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

/* Check @p against the guests.  A refusal does not reveal the guests to
 * strangers. */
static bool check_guest(struct sw_server *srv, const struct sw_pending *p)
{
	const struct sw_guests *g = srv->guests;
	char ip[SW_IP_TEXT];

	if (!g)
		return true;
	if (g->n_nets && !srv->is_inner[p->path.port_i] &&
		!has_net(g, p->path.ip))
		return refuse(srv, p, SW_EREFUSED,
			"the server takes no agents at %s: add their network "
			"to its [serve] from",
			sw_ip_text(p->path.ip, ip));
	if (*g->jobs && !has_job(g->jobs, p->join.job))
		return refuse(srv, p, SW_EREFUSED,
			"the server does not serve job %.32s: add it to its "
			"[serve] jobs",
			p->join.job);
	return true;
}

void sw_server_limit(struct sw_server *srv, const struct sw_guests *guests)
{
	srv->guests = guests;
}

/* Return whether the worker behind @p may join now; if not, tell it why. */
static bool may_join(struct sw_server *srv, const struct sw_pending *p)
{
	const struct sw_job *job;
	const char *why;

	if (!check_worker(srv, p) || !check_guest(srv, p) ||
		!check_servers(srv, p) || !check_options(srv, p))
		return false;
	why = sw_admit_key(srv, p);
	if (why)
		return refuse(srv, p, SW_EREFUSED, "agent %u of job %.32s: %s",
			p->join.member, p->join.job, why);
	if (srv->is_stopping)
		return refuse(srv, p, SW_EREFUSED, "the server is stopping");
	job = sw_job_find(srv, p->join.job);
	if (job)
		return check_job(srv, p, job);
	if (sw_job_unused(srv))
		return true;
	return refuse(srv, p, SW_EREFUSED,
		"the server is full: it serves at most %u jobs", SW_MAX_JOBS);
}

/* --- how many JOINs a source may send ---
 *
 * A JOIN costs a scan of all places; a confirmed JOIN costs memory and log
 * lines.  So each source, an IPv4 address or an IPv6 /64 network, has a token
 * bucket.  Only the address itself receives its cookie, so no other host can
 * empty its bucket. */

/* Return whether @ip, which has shown a cookie, may send one more JOIN; if not,
 * count the JOIN and warn. */
static bool allows(struct sw_server *srv, struct sw_ip ip)
{
	struct sw_source *s =
		sw_source_of(srv, srv->sources, SW_JOIN_SOURCES, ip, SW_JOINS);
	char text[SW_IP_TEXT];

	if (sw_token_take(
		    srv, &s->full_ns, SW_JOIN_EVERY_MS * SW_MS, SW_JOIN_BURST))
		return true;
	sw_count(&srv->stats.joins_limited, 1);
	if (!sw_server_may_log(srv, ip, SW_LINE_JOINS))
		return false;
	sw_log(srv->env->log, SW_LOG_WARN,
		"%s sends more than %u JOINs a second: dropping the others "
		"(counter joins_limited; next report after %u s)",
		sw_ip_text(ip, text), 1000 / SW_JOIN_EVERY_MS, SW_QUIET_S);
	return false;
}

/* --- JOINs whose workers have not spoken yet (PROTOCOL.md, section 4.2) ---
 *
 * A JOIN may be a late duplicate, or part of a flood.  The server gives it a
 * table entry and sends ACCEPT; a frame with the offered id makes it a session.
 * If the table is full, the server evicts the JOIN that has been silent
 * longest. */

/* Does @p hold a JOIN without a key from @path? */
static bool is_of(const struct sw_pending *p, const struct sw_path *path)
{
	return p->id && !p->seal && sw_path_is_same(&p->path, path);
}

/* Return whether to evict @p before @other: keyed JOINs, which have proven the
 * secret, go last. */
static bool goes_before(
	const struct sw_pending *p, const struct sw_pending *other)
{
	return !p->seal != !other->seal ? !p->seal : p->rx_ns < other->rx_ns;
}

/* Find a place for a JOIN from @path: the path's own, else the first free
 * place, else the place of the oldest JOIN.  A keyed JOIN (@is_keyed) displaces
 * no JOIN of its path, because it may be a replay; a plain JOIN displaces no
 * keyed one. */
static uint32_t place_for(
	const struct sw_server *srv, const struct sw_path *path, bool is_keyed)
{
	const struct sw_pending *all = srv->pending;
	uint32_t best = SW_MAX_SESSIONS;

	for (uint32_t i = 0; i < SW_MAX_SESSIONS; i++) {
		if (!is_keyed && is_of(&all[i], path))
			return i;
		if (srv->sessions[i] || (all[i].seal && !is_keyed))
			continue;
		if (best == SW_MAX_SESSIONS || goes_before(&all[i], &all[best]))
			best = i;
	}
	return best;
}

/* Note whether ACCEPT is due. */
static void owe(struct sw_server *srv, uint32_t i, bool is_owed)
{
	struct sw_pending *p = &srv->pending[i];

	p->is_owed = is_owed;
	sw_due_put(&srv->due[p->path.port_i], SW_CLASS_CTL, i, is_owed);
}

void sw_pending_drop(struct sw_server *srv, uint32_t i)
{
	owe(srv, i, false);
	srv->tick_at_ns[i] = UINT64_MAX;
	sw_seal_free(srv->pending[i].seal);
	srv->pending[i] = (struct sw_pending){0};
	sw_places_note(srv, i);
}

static void forget_pending(struct sw_server *srv, uint32_t i)
{
	sw_count(&srv->stats.sessions_dropped, 1);
	sw_pending_drop(srv, i);
}

/* Owe ACCEPT to the JOIN at @i, since its worker has sent a JOIN now. */
static void offer(struct sw_server *srv, uint32_t i)
{
	srv->pending[i].rx_ns = srv->now_ns;
	srv->tick_at_ns[i] = srv->now_ns;
	owe(srv, i, true);
}

/* Store the JOIN and offer a session; a duplicate gets the same offer.  @noise:
 * the handshake of a keyed JOIN, which is never a duplicate here; NULL: no key.
 * Returns false if sessions take all places. */
static bool put_pending(struct sw_server *srv, const struct sw_pending *from,
	struct sw_noise *noise)
{
	uint32_t i = place_for(srv, &from->path, noise != NULL);
	struct sw_pending *p = &srv->pending[i];

	if (i == SW_MAX_SESSIONS)
		return false;
	if (!is_of(p, &from->path) || p->join.nonce != from->join.nonce ||
		noise) {
		if (p->id)
			forget_pending(srv, i);
		/* A keyed session's id is random: strangers fail to guess it
		 * before they fail the tag. */
		if (noise)
			srv->generations[i] ^=
				(uint16_t)srv->env->random(srv->env->ctx);
		/* A generation is never 0, so that no session id is 0. */
		if (!++srv->generations[i])
			srv->generations[i] = 1;
		*p = *from;
		p->id = i << 16 | srv->generations[i];
		p->accept_wait_ns = srv->params.retry_min;
		sw_places_note(srv, i);
		if (noise && !sw_admit_answer(srv, p, noise)) {
			forget_pending(srv, i);
			return true; /* the worker will ask again */
		}
	}
	p->join_bytes = from->join_bytes;
	offer(srv, i);
	return true;
}

/* --- JOIN --- */

/* Return whether @p is a late duplicate of an open session's JOIN. */
static bool is_late(const struct sw_server *srv, const struct sw_pending *p)
{
	for (uint32_t i = 0; i < srv->n_sessions; i++) {
		const struct sw_session *s = srv->sessions[i];

		if (s && s->nonce == p->join.nonce &&
			sw_path_is_same(&s->peer.path, &p->path))
			return true;
	}
	return false;
}

/* Read a keyed JOIN.  Returns false if it is done: dropped, refused, or a
 * duplicate, whose ACCEPT is due again. */
static bool read_keyed(struct sw_server *srv, const struct sw_rx_frame *f,
	struct sw_pending *p, struct sw_noise *noise)
{
	const struct sw_secret *secret = sw_admit_secret(srv, p->join.key_id);
	uint32_t i;

	memcpy(p->e, f->payload + SW_JOIN_CLEAR, sizeof(p->e));
	i = sw_admit_again(srv, p);
	if (i < SW_MAX_SESSIONS) {
		offer(srv, i);
		return false;
	}
	if (sw_admit_unseal(srv, f, secret, p, noise))
		return true;
	if (!secret)
		refuse(srv, p, SW_EREFUSED, "it has no such key");
	return false;
}

void sw_admit_join(struct sw_server *srv, const struct sw_rx_frame *f,
	const struct sw_header *h)
{
	struct sw_pending p = {.path = f->from, .join_bytes = h->payload_len};
	const struct sw_join *j = &p.join;
	struct sw_noise noise;

	memcpy(&p.join, f->payload, SW_JOIN_CLEAR);
	if (j->cookie != make_cookie(srv, p.path, j->nonce, 0) &&
		j->cookie != make_cookie(srv, p.path, j->nonce, 1)) {
		sw_count(&srv->stats.rx_state, 1);
		return;
	}
	if ((!srv->is_inner[p.path.port_i] && !allows(srv, p.path.ip)) ||
		is_late(srv, &p))
		return;
	if (!j->key_id)
		memcpy(&p.join, f->payload, sizeof(p.join));
	else if (!read_keyed(srv, f, &p, &noise))
		return;
	if (may_join(srv, &p) &&
		!put_pending(srv, &p, j->key_id ? &noise : NULL))
		refuse(srv, &p, SW_EREFUSED,
			"the server is full: it has at most %u sessions",
			SW_MAX_SESSIONS);
	if (j->key_id)
		sw_crypto_wipe(&noise, sizeof(noise));
}

/* --- confirmed and expired JOINs --- */

static void begin(
	struct sw_session *s, const struct sw_pending *p, struct sw_job *job)
{
	struct sw_server *srv = job->srv;
	bool is_far = !srv->is_inner[p->path.port_i];

	if (s->srv) /* a member that left has used the place */
		memset(s, 0, sizeof(*s));
	s->srv = srv;
	s->peer.hub = &srv->hub;
	s->peer.index = p->id >> 16;
	s->peer.id = p->id;
	s->peer.far_id = p->join.session;
	s->peer.seed = sw_session_seed(p->join.nonce);
	s->peer.path = p->path;
	s->job = job;
	s->member = p->join.member;
	s->peer.due_class = SW_N_CLASSES;
	s->peer.has_crc = job->params.has_crc && !sw_admit_is_inner(srv, p);
	s->peer.seal = p->seal;
	s->nonce = p->join.nonce;
	s->key_id = p->seal ? p->join.key_id : 0;
	s->has_own_key = sw_keyring_has_job(srv->keyring, job->name);
	s->error_at_ns = UINT64_MAX;
	sw_bitmap_init(&s->ends, SW_MAX_TENSORS, s->end_words);
	s->peer.rx_ns = s->peer.sent_ns = srv->now_ns;
	sw_flow_init(&s->peer.flow, &job->params, is_far ? &srv->grants : NULL,
		is_far, p->n_accepts);
	sw_flow_note_rtts(&s->peer.flow, &srv->stats.rtt_ns);
	sw_flow_wait(&s->peer.flow);
	if (is_far)
		sw_crowd_add(&job->crowd, &s->peer.flow);
	srv->sessions[s->peer.index] = s;
	sw_sessions_note(srv, s->peer.index);
	sw_bits_add(job->here, s->peer.index);
	srv->tick_at_ns[s->peer.index] = 0;
	sw_count(&srv->stats.sessions_opened, 1);
}

struct sw_session *sw_pending_confirm(struct sw_server *srv, uint32_t i)
{
	struct sw_pending p = srv->pending[i];
	struct sw_job *job = sw_job_find(srv, p.join.job);
	/* Check again: another worker may have joined meanwhile. */
	bool may = may_join(srv, &p);
	struct sw_session *s;

	if (may && !job && !sw_job_is_ready(srv, &p.join))
		return NULL;
	srv->pending[i].seal = NULL; /* the session's */
	sw_pending_drop(srv, i);
	if (may && !job)
		job = sw_job_open(srv, &p.join);
	if (may && !job)
		may = refuse(srv, &p, SW_EREFUSED,
			"the server has no memory for agent %u of job %.64s",
			p.join.member, p.join.job);
	if (may && !sw_job_keyed(job, &p))
		may = refuse(srv, &p, SW_EBUSY,
			"agent %u of job %.64s has keys of an earlier run",
			p.join.member, p.join.job);
	if (!may) {
		sw_seal_free(p.seal);
		if (job &&
			!job->n_sessions) /* opened above, and has no member */
			sw_job_close(job);
		return NULL;
	}
	s = &job->sessions[p.join.member];
	begin(s, &p, job);
	sw_job_enter(job, s, &p.join);
	return s;
}

void sw_pending_build(
	struct sw_server *srv, uint32_t i, struct sw_tx_frame *out)
{
	struct sw_pending *p = &srv->pending[i];
	struct sw_accept a = sw_pending_accept(srv, p);
	uint32_t n = p->seal ? (uint32_t)sizeof(p->accept) : sizeof(a);

	out->header = (struct sw_header){.type = SW_ACCEPT,
		.class = SW_CLASS_CTL,
		.session = p->join.session,
		.head_crc = sw_session_seed(p->join.nonce),
		.psn = ++p->n_accepts,
		.payload_len = p->join_bytes};
	owe(srv, i, false);
	p->accept_at_ns = srv->now_ns + p->accept_wait_ns;
	p->accept_wait_ns =
		sw_min64(2 * p->accept_wait_ns, srv->params.retry_max);
	srv->tick_at_ns[i] = sw_min64(srv->tick_at_ns[i], p->accept_at_ns);
	memcpy(srv->next, p->seal ? p->accept : (const uint8_t *)&a, n);
	/* Pad it, to check that the return path carries the JOIN's length. */
	memset(srv->next + n, 0, p->join_bytes - n);
	sw_frame_build(out, p->path, srv->next, false, &srv->stats);
}

uint64_t sw_pending_tick(struct sw_server *srv, uint32_t i)
{
	struct sw_pending *p = &srv->pending[i];
	uint64_t dead_at_ns = p->rx_ns + srv->params.dead_after;

	if (!p->id)
		return UINT64_MAX;
	if (srv->now_ns >= dead_at_ns) { /* no worker confirmed the JOIN */
		forget_pending(srv, i);
		return UINT64_MAX;
	}
	if (!p->is_owed && srv->now_ns >= p->accept_at_ns)
		owe(srv, i, true);
	return p->is_owed ? dead_at_ns : sw_min64(p->accept_at_ns, dead_at_ns);
}
