/* probe.c - a worker looks for source ports that lead to the right lcores.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Where a port spreads what comes over its queues by a hash of addresses and
 * ports, the source port decides which lcore finds a frame.  A COOKIE says
 * whether its HELLO landed on a wrong lcore, and may itself have done so here.
 * No state exists yet at the server, so the next HELLO may come from another
 * port of ours.  From the first JOIN on the port stays: it is part of the
 * session.
 */
#include "engine/worker/worker_int.h"

/* How a HELLO leaves, until one lands where it belongs, or all were tried. */
static void next_way(struct sw_worker *w, struct sw_link *l)
{
	l->peer.way = (uint16_t)((l->peer.way + 1) % w->n_ways);
	l->n_probes++;
	l->nonce = w->env->random(w->env->ctx); /* late COOKIEs are none */
	sw_count(&w->stats.probes, 1);
	sw_link_request(w, l);
}

static void give_up(
	struct sw_worker *w, struct sw_link *l, const struct sw_cookie *c)
{
	l->is_settled = true;
	sw_count(&w->stats.probes_failed, 1);
	sw_log(w->env->log, SW_LOG_INFO,
		"job %s, rank %u: none of %u source ports leads to the right "
		"lcore of server %s and back (the last: to its lcore %u): "
		"frames are handed over",
		w->job, w->rank, w->n_ways, l->name, c->landed);
}

bool sw_probe_again(
	struct sw_worker *w, struct sw_link *l, const struct sw_cookie *c)
{
	bool is_misrouted = c->is_misrouted || w->is_misrouted;

	if (l->is_settled || !is_misrouted) {
		l->is_settled = true;
		return false;
	}
	if (l->n_probes + 1u < w->n_ways) {
		next_way(w, l);
		return true;
	}
	give_up(w, l, c);
	return false;
}
