/* server_tick.c - the timers of a server: silence, losses, what is owed.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A session's timers change only when a frame comes from it or goes to it, and
 * none is shorter than the pause between two ticks of a busy loop.  So a tick
 * looks at those sessions alone whose time has come, or that had a frame since
 * the last look: what timers cost a packet does not grow with the members.
 */
#include <stdio.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/server/admit.h"
#include "engine/server/job.h"
#include "engine/server/mismatch.h"
#include "engine/server/session.h"
#include "engine/server/share.h"

static void bury(struct sw_server *srv, struct sw_session *s)
{
	struct sw_job *job = s->job;
	uint16_t rank = s->member;
	char text[SW_TEXT_MAX];

	snprintf(text, sizeof(text), "rank %u (node %.64s) silent for %llu s",
		rank, job->members[rank].node,
		(unsigned long long)(srv->params.dead_after / SW_S));
	sw_log(srv->env->log, SW_LOG_WARN, "job %s: %s", job->name, text);
	sw_count(&srv->stats.sessions_dead, 1);
	sw_session_close(srv, s);
	sw_job_leave(srv, job, rank, SW_EPEER, text);
}

/* Say the state again until the worker has answered. */
static uint64_t tick_status(struct sw_server *srv, struct sw_session *s)
{
	if (!s->job->is_coordinated || s->status_seq == s->job->seq)
		return UINT64_MAX;
	if (srv->now_ns >= s->status_at_ns)
		sw_session_owe(srv, s, SW_OWE_STATUS);
	/* What is owed waits for room; when it goes, the next time is set. */
	return s->peer.owed & 1u << SW_OWE_STATUS ? UINT64_MAX
						  : s->status_at_ns;
}

static uint64_t tick_session(struct sw_server *srv, struct sw_session *s)
{
	uint64_t at = sw_peer_tick(&s->peer, srv->due, &srv->params,
		srv->now_ns, sw_session_fate, s, &srv->stats);

	sw_session_refresh(srv, s);
	at = sw_min64(at, tick_status(srv, s));
	return sw_min64(at, sw_session_tick_unaware(srv, s));
}

static void look(struct sw_server *srv, uint32_t i)
{
	struct sw_session *s = srv->sessions[i];

	if (!s)
		srv->tick_at_ns[i] = sw_pending_tick(srv, i);
	else if (sw_peer_is_silent(&s->peer, &srv->params, srv->now_ns))
		bury(srv, s);
	else
		srv->tick_at_ns[i] = tick_session(srv, s);
}

uint64_t sw_server_tick(struct sw_node *node, uint64_t now_ns, uint64_t gap_ns)
{
	struct sw_server *srv = (struct sw_server *)node;
	uint64_t at = UINT64_MAX;

	srv->now_ns = now_ns;
	srv->gap_ns = gap_ns;
	sw_set_word(&srv->stats.poll_gap_max_us,
		sw_max64(srv->stats.poll_gap_max_us, gap_ns / 1000));
	if (now_ns >= srv->wait_at_ns)
		sw_job_tell_waiting(srv);
	at = sw_min64(sw_share_tick(srv), srv->wait_at_ns);
	for (uint32_t i = 0; i < srv->n_sessions; i++) {
		if (srv->tick_at_ns[i] <= now_ns)
			look(srv, i);
		at = sw_min64(at, srv->tick_at_ns[i]);
	}
	return at;
}
