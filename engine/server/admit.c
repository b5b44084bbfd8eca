/* admit.c - how workers get in at a server.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * HELLO and JOIN come from strangers: nothing is stored for a HELLO, nothing
 * before a JOIN has shown its cookie, then a place in a table, and no answer is
 * larger than its question.  Memory, a rank, a job's name are only for those
 * that have spoken under their session (admit_pending.c).  Every request may
 * come twice; the second gets the same answer.
 */
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/siphash.h"
#include "engine/server/admit.h"
#include "engine/server/session.h"

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
		.landed = (uint8_t)f->landed, .is_misrouted = f->is_misrouted};

	memcpy(&cookie.nonce, payload, sizeof(cookie.nonce));
	cookie.cookie = make_cookie(srv, f->from, cookie.nonce, 0);
	reply.payload_len = sizeof(cookie);
	sw_server_reply(srv, f->from, &reply, &cookie);
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
