/* admit_limit.c - how many JOINs a source address may send.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A JOIN costs a look at all places and perhaps an answer, one that is
 * confirmed memory and lines in the log.  So each source has a bucket of
 * tokens, which is kept as the time when it is full again.  Whoever fills a
 * bucket can receive at the address: nobody empties that of another.
 */
#include "engine/base/bytes.h"
#include "engine/server/admit.h"

enum { QUIET_S = 60 };

static const uint64_t every_ns = SW_JOIN_EVERY_MS * SW_MS;

/* The bucket of @ip, or one that is full and so nobody's; when there is none
 * left, that of all others. */
static struct sw_source *source_of(
	struct sw_sources *all, uint32_t ip, uint64_t now_ns)
{
	struct sw_source *found = &all->of[0];

	for (uint32_t i = 1; i < SW_JOIN_SOURCES; i++) {
		struct sw_source *s = &all->of[i];

		if (s->full_ns <= now_ns)
			found = s;
		else if (s->ip == ip)
			return s;
	}
	found->ip = ip;
	return found;
}

static void tell(struct sw_server *srv, uint32_t ip)
{
	char text[SW_IP_TEXT];

	if (srv->now_ns < srv->sources.quiet_ns)
		return;
	srv->sources.quiet_ns = srv->now_ns + QUIET_S * SW_S;
	sw_log(srv->env->log, SW_LOG_WARN,
		"%s sends more than %u JOINs a second: dropping the others "
		"(counter joins_limited; next report after %u s)",
		sw_ip_text(ip, text), 1000 / SW_JOIN_EVERY_MS, QUIET_S);
}

bool sw_admit_allows(struct sw_server *srv, uint32_t ip)
{
	struct sw_source *s = source_of(&srv->sources, ip, srv->now_ns);
	uint64_t full_ns = sw_max64(s->full_ns, srv->now_ns) + every_ns;

	if (full_ns - srv->now_ns > SW_JOIN_BURST * every_ns) {
		sw_count(&srv->stats.joins_limited, 1);
		tell(srv, ip);
		return false;
	}
	s->full_ns = full_ns;
	return true;
}
