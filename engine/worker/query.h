/* query.h - ask a server about late results.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_ENGINE_WORKER_QUERY_H
#define SW_ENGINE_WORKER_QUERY_H

#include "engine/base/bytes.h"
#include "engine/worker/link.h"

/* sw_query_at - return when to look for late results at the link.  The pause
 * doubles while nothing arrives, so that a straggler costs few bytes. */
static inline uint64_t sw_query_at(const struct sw_worker *w, struct sw_link *l)
{
	if (!l->n_folded && !l->n_blocked && !w->is_still)
		return UINT64_MAX;
	if (!l->query_wait_ns)
		l->query_wait_ns = sw_max64(
			4 * sw_flow_srtt(&l->peer.flow), w->params.query_min);
	return l->query_from_ns + l->query_wait_ns;
}

/* sw_query_tick - if it is time, look for some late results, and owe a QUERY
 * about them; returns when to call again.
 * sw_query_build - build that QUERY; returns payload bytes.
 * sw_query_answered - take the server's ANSWER. */
uint64_t sw_query_tick(struct sw_worker *w, struct sw_link *l);
uint32_t sw_query_build(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h);
void sw_query_answered(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload);

#endif
