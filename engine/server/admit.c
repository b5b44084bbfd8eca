/* admit.c - admit workers to a server: HELLO, JOIN, ACCEPT.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * HELLO and JOIN come from strangers.  The server stores nothing for a HELLO,
 * and only a place in a table for a JOIN with a valid cookie.  No answer is
 * larger than its question.  A worker gets memory, a place and a job only after
 * it has spoken under its session; until the memory is there, its frames do not
 * count, and the server repeats ACCEPT.  A duplicate request gets the same
 * answer. */
#include <string.h>

#include "engine/base/siphash.h"
#include "engine/server/server_int.h"

/* Make a cookie over address and time; @age 0: the current one, 1: the one
 * before. */
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
	struct sw_cookie cookie = {
		.landed = (uint8_t)f->landed, .is_misrouted = f->is_misrouted};
	struct sw_header reply = {
		.type = SW_COOKIE, .payload_len = sizeof(cookie)};

	memcpy(&cookie.nonce, f->payload, sizeof(cookie.nonce));
	cookie.cookie = make_cookie(srv, f->from, cookie.nonce, 0);
	sw_server_reply(srv, f->from, &reply, &cookie);
}

/* --- how many JOINs a source may send ---
 *
 * A JOIN costs a look at all places, a confirmed one memory and log lines.  So
 * each source, an IPv4 address or an IPv6 network of 64 bits, has a bucket of
 * tokens, kept as the time when it is full.  Only the address itself receives
 * its cookie, so nobody can empty the bucket of another. */

enum { QUIET_S = 60 };

static const uint64_t every_ns = SW_JOIN_EVERY_MS * SW_MS;

/* Return the bucket of @ip, or a full one, which is free.  If none is full,
 * return the one that all other sources share. */
static struct sw_source *source_of(struct sw_server *srv, struct sw_ip ip)
{
	struct sw_source *found = &srv->sources[0];
	struct sw_ip net = sw_ip_is_v4(ip) ? ip : sw_ip_mask(ip, 64);

	for (uint32_t i = 1; i < SW_JOIN_SOURCES; i++) {
		struct sw_source *s = &srv->sources[i];

		if (s->full_ns <= srv->now_ns)
			found = s;
		else if (sw_ip_is_same(s->net, net))
			return s;
	}
	found->net = net;
	return found;
}

/* May @ip, which has shown a cookie, send one more JOIN?  If not, counts it,
 * and logs it at most once in QUIET_S. */
static bool allows(struct sw_server *srv, struct sw_ip ip)
{
	struct sw_source *s = source_of(srv, ip);
	uint64_t full_ns = sw_max64(s->full_ns, srv->now_ns) + every_ns;
	char text[SW_IP_TEXT];

	if (full_ns - srv->now_ns <= SW_JOIN_BURST * every_ns) {
		s->full_ns = full_ns;
		return true;
	}
	sw_count(&srv->stats.joins_limited, 1);
	if (srv->now_ns < srv->limit_line_ns)
		return false;
	srv->limit_line_ns = srv->now_ns + QUIET_S * SW_S;
	sw_log(srv->env->log, SW_LOG_WARN,
		"%s sends more than %u JOINs a second: dropping the others "
		"(counter joins_limited; next report after %u s)",
		sw_ip_text(ip, text), 1000 / SW_JOIN_EVERY_MS, QUIET_S);
	return false;
}

/* --- JOINs whose workers have not spoken yet (PROTOCOL.md, section 4.2) ---
 *
 * A JOIN may be a late copy, or sent to waste our time.  It gets a place in a
 * table and ACCEPT; a frame under the offered id makes it a session.  If the
 * table is full, the JOIN that has been silent longest is evicted. */

static bool is_of(const struct sw_pending *p, const struct sw_path *path)
{
	return p->id && sw_path_is_same(&p->path, path);
}

/* Find the place of @path: its own, else the first free one, else the oldest.
 */
static uint32_t place_for(
	const struct sw_server *srv, const struct sw_path *path)
{
	const struct sw_pending *all = srv->pending;
	uint32_t best = SW_MAX_SESSIONS;

	for (uint32_t i = 0; i < SW_MAX_SESSIONS; i++) {
		if (is_of(&all[i], path))
			return i;
		if (!srv->sessions[i] &&
			(best == SW_MAX_SESSIONS ||
				all[i].rx_ns < all[best].rx_ns))
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
	srv->pending[i] = (struct sw_pending){0};
	sw_places_note(srv, i);
}

static void forget(struct sw_server *srv, uint32_t i)
{
	sw_count(&srv->stats.sessions_dropped, 1);
	sw_pending_drop(srv, i);
}

/* Keep the JOIN and offer a session; a duplicate gets the same offer.  Returns
 * false if sessions take all places. */
static bool put_pending(struct sw_server *srv, const struct sw_pending *from)
{
	uint32_t i = place_for(srv, &from->path);
	struct sw_pending *p = &srv->pending[i];

	if (i == SW_MAX_SESSIONS)
		return false;
	if (!is_of(p, &from->path) || p->join.nonce != from->join.nonce) {
		if (p->id)
			forget(srv, i);
		/* A generation is never 0, so no session id is. */
		if (!++srv->generations[i])
			srv->generations[i] = 1;
		*p = *from;
		p->id = i << 16 | srv->generations[i];
		p->accept_wait_ns = srv->params.retry_min;
		sw_places_note(srv, i);
	}
	p->rx_ns = srv->now_ns;
	p->join_bytes = from->join_bytes;
	srv->tick_at_ns[i] = srv->now_ns;
	owe(srv, i, true);
	return true;
}

/* --- JOIN --- */

/* Is it a late duplicate of the JOIN of an open session? */
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

void sw_admit_join(struct sw_server *srv, const struct sw_rx_frame *f,
	const struct sw_header *h)
{
	struct sw_pending p = {.path = f->from, .join_bytes = h->payload_len};
	const struct sw_join *j = &p.join;

	memcpy(&p.join, f->payload, sizeof(p.join));
	if (j->cookie != make_cookie(srv, p.path, j->nonce, 0) &&
		j->cookie != make_cookie(srv, p.path, j->nonce, 1)) {
		sw_count(&srv->stats.rx_state, 1);
		return;
	}
	if ((!srv->is_inner[p.path.port_i] && !allows(srv, p.path.ip)) ||
		is_late(srv, &p) || !sw_admit_check(srv, &p))
		return;
	if (!put_pending(srv, &p))
		sw_admit_refuse(srv, &p, SW_EREFUSED,
			"the server is full: it has at most %u sessions",
			SW_MAX_SESSIONS);
}

/* --- confirmed and expired JOINs --- */

static void begin(
	struct sw_session *s, const struct sw_pending *p, struct sw_job *job)
{
	struct sw_server *srv = job->srv;

	if (s->srv) /* a member that left had used it */
		memset(s, 0, sizeof(*s));
	s->srv = srv;
	s->peer.index = p->id >> 16;
	s->peer.id = p->id;
	s->peer.far_id = p->join.session;
	s->peer.seed = sw_session_seed(p->join.nonce);
	s->peer.path = p->path;
	s->job = job;
	s->member = p->join.member;
	s->peer.due_class = SW_N_CLASSES;
	s->peer.has_crc = job->params.has_crc && !srv->is_inner[p->path.port_i];
	s->nonce = p->join.nonce;
	s->error_at_ns = UINT64_MAX;
	sw_bitmap_init(&s->ends, SW_MAX_TENSORS, s->end_words);
	s->peer.rx_ns = s->peer.sent_ns = srv->now_ns;
	sw_flow_init(&s->peer.flow, &job->params,
		srv->is_inner[p->path.port_i] ? NULL : &srv->grants,
		p->n_accepts);
	sw_flow_wait(&s->peer.flow);
	srv->sessions[s->peer.index] = s;
	sw_sessions_note(srv, s->peer.index);
	sw_session_set(job->here, s, true);
	srv->tick_at_ns[s->peer.index] = 0;
	sw_count(&srv->stats.sessions_opened, 1);
}

struct sw_session *sw_pending_confirm(struct sw_server *srv, uint32_t i)
{
	struct sw_pending p = srv->pending[i];
	struct sw_job *job = sw_job_find(srv, p.join.job);
	/* Another worker may have been faster. */
	bool may = sw_admit_check(srv, &p);
	struct sw_session *s;

	if (may && !job && !sw_job_is_ready(srv, &p.join))
		return NULL;
	sw_pending_drop(srv, i);
	if (!may)
		return NULL;
	if (!job)
		job = sw_job_open(srv, &p.join);
	if (!job) {
		sw_admit_refuse(srv, &p, SW_EREFUSED,
			"the server has no memory for agent %u of job %.64s",
			p.join.member, p.join.job);
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
	struct sw_accept a = {.nonce = p->join.nonce,
		.session = p->id,
		.version = SW_VERSION_MAX,
		.payload = (uint16_t)sw_min64(
			srv->params.payload, srv->max_payload[p->path.port_i])};

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
	memcpy(srv->next, &a, sizeof(a));
	/* Check that the way back carries this length as well. */
	memset(srv->next + sizeof(a), 0, p->join_bytes - sizeof(a));
	sw_frame_build(out, p->path, srv->next, false, &srv->stats);
}

uint64_t sw_pending_tick(struct sw_server *srv, uint32_t i)
{
	struct sw_pending *p = &srv->pending[i];
	uint64_t dead_at_ns = p->rx_ns + srv->params.dead_after;

	if (!p->id)
		return UINT64_MAX;
	if (srv->now_ns >= dead_at_ns) { /* no worker confirmed the JOIN */
		forget(srv, i);
		return UINT64_MAX;
	}
	if (!p->is_owed && srv->now_ns >= p->accept_at_ns)
		owe(srv, i, true);
	return p->is_owed ? dead_at_ns : sw_min64(p->accept_at_ns, dead_at_ns);
}
