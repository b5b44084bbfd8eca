/* admit_pending.c - JOINs whose workers have not spoken yet.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A JOIN may be a late copy, or of somebody who wants nothing but our time.  So
 * it gets a place in a table and the offer of a session, ACCEPT, and only a
 * frame under that session's id makes it one, with memory, a rank and, if it is
 * the first of its name, a job.  Where there are more JOINs than places, the
 * the one that has been silent longest goes.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/server/admit.h"
#include "engine/server/job.h"
#include "engine/server/mismatch.h"

static bool is_of(const struct sw_pending *p, const struct sw_path *path)
{
	return p->id && !memcmp(&p->path, path, sizeof(*path));
}

/* A path has one place; else the first free one, or the oldest. */
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

void sw_pending_drop(struct sw_server *srv, uint32_t i)
{
	struct sw_pending *p = &srv->pending[i];

	sw_due_put(&srv->due[p->path.port_i], SW_CLASS_CTL, i, false);
	srv->tick_at_ns[i] = UINT64_MAX;
	*p = (struct sw_pending){0};
}

static void owe(struct sw_server *srv, uint32_t i)
{
	struct sw_pending *p = &srv->pending[i];

	p->is_owed = true;
	sw_due_put(&srv->due[p->path.port_i], SW_CLASS_CTL, i, true);
}

static void forget(struct sw_server *srv, uint32_t i)
{
	sw_count(&srv->stats.sessions_dropped, 1);
	sw_pending_drop(srv, i);
}

/* A new offer at place @i. */
static void offer(
	struct sw_server *srv, uint32_t i, const struct sw_pending *from)
{
	struct sw_pending *p = &srv->pending[i];

	if (p->id)
		forget(srv, i);
	/* A generation is never 0, so no session id is. */
	if (!++srv->generations[i])
		srv->generations[i] = 1;
	*p = *from;
	p->id = i << 16 | srv->generations[i];
	p->accept_wait_ns = srv->params.retry_min;
	srv->n_sessions = (uint32_t)sw_max64(srv->n_sessions, i + 1);
}

bool sw_pending_put(struct sw_server *srv, const struct sw_pending *from)
{
	uint32_t i = place_for(srv, &from->path);
	struct sw_pending *p = &srv->pending[i];

	if (i == SW_MAX_SESSIONS)
		return false;
	if (!is_of(p, &from->path) || p->join.nonce != from->join.nonce)
		offer(srv, i, from);
	p->rx_ns = srv->now_ns;
	p->join_bytes = from->join_bytes;
	srv->tick_at_ns[i] = srv->now_ns;
	owe(srv, i);
	return true;
}

static void begin(struct sw_server *srv, struct sw_session *s,
	const struct sw_pending *p, struct sw_job *job)
{
	s->peer.index = p->id >> 16;
	s->peer.id = p->id;
	s->peer.far_id = p->join.session;
	s->peer.path = p->path;
	s->srv = srv;
	s->job = job;
	s->member = p->join.rank;
	s->peer.due_class = SW_N_CLASSES;
	sw_session_init_keys(s);
	s->peer.has_crc = job->params.has_crc && !srv->is_inner[p->path.port_i];
	s->nonce = p->join.nonce;
	s->peer.rx_ns = s->peer.sent_ns = srv->now_ns;
	sw_flow_init(&s->peer.flow, &job->params, &srv->grants, p->n_accepts);
	srv->sessions[s->peer.index] = s;
	srv->tick_at_ns[s->peer.index] = 0;
	sw_count(&srv->stats.sessions_opened, 1);
}

struct sw_session *sw_pending_confirm(struct sw_server *srv, uint32_t i)
{
	struct sw_pending p = srv->pending[i];
	struct sw_job *job = sw_job_find(srv, p.join.job);
	struct sw_session *s;

	sw_pending_drop(srv, i);
	if (!sw_admit_check(srv, &p)) /* others were faster */
		return NULL;
	s = calloc(1, sizeof(*s));
	if (s && !job)
		job = sw_job_open(srv, &p.join);
	if (!s || !job) {
		free(s);
		sw_admit_refuse(srv, &p, SW_EREFUSED,
			"the server has no memory for rank %u of job %.64s",
			p.join.rank, p.join.job);
		return NULL;
	}
	begin(srv, s, &p, job);
	sw_job_enter(srv, job, s, &p.join);
	return s;
}

void sw_pending_build(
	struct sw_server *srv, uint32_t i, struct sw_tx_frame *out)
{
	struct sw_pending *p = &srv->pending[i];
	struct sw_accept a = {.nonce = p->join.nonce,
		.session = p->id,
		.version = SW_VERSION_MAX};
	struct sw_header h = {.type = SW_ACCEPT,
		.class = SW_CLASS_CTL,
		.session = p->join.session,
		.psn = ++p->n_accepts,
		.payload_len = p->join_bytes};

	p->is_owed = false;
	sw_due_put(&srv->due[p->path.port_i], SW_CLASS_CTL, i, false);
	p->accept_at_ns = srv->now_ns + p->accept_wait_ns;
	p->accept_wait_ns =
		sw_min64(2 * p->accept_wait_ns, srv->params.retry_max);
	srv->tick_at_ns[i] = sw_min64(srv->tick_at_ns[i], p->accept_at_ns);
	memcpy(srv->payload, &a, sizeof(a));
	/* The way back carries it too, or the worker will not receive it. */
	memset(srv->payload + sizeof(a), 0, p->join_bytes - sizeof(a));
	sw_frame_build(&h, p->path, srv->payload, false, out, &srv->stats);
}

uint64_t sw_pending_tick(struct sw_server *srv, uint32_t i)
{
	struct sw_pending *p = &srv->pending[i];
	uint64_t dead_at_ns = p->rx_ns + srv->params.dead_after;

	if (!p->id)
		return UINT64_MAX;
	if (srv->now_ns >= dead_at_ns) { /* nobody was behind that JOIN */
		forget(srv, i);
		return UINT64_MAX;
	}
	if (!p->is_owed && srv->now_ns >= p->accept_at_ns)
		owe(srv, i);
	return p->is_owed ? dead_at_ns : sw_min64(p->accept_at_ns, dead_at_ns);
}
