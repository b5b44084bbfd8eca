/* path_check.c - notice a path that stops carrying the job's frames.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The payload was probed before the job ran. If a route's MTU falls later, or a
 * filter begins to drop large packets, data frames are lost for ever, while
 * control frames are small and keep the session alive. So when a tensor has
 * made no progress for some time, the worker sends each server PROBEs of the
 * job's payload and small ones in turn. A server echoes both. If only the small
 * ones return, the worker fails and names the path. */
#include "engine/worker/path_check.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/worker/faults.h"

enum {
	SMALL_BYTES = SW_PAYLOAD_UNIT,
	LEAST_TRIES = 4, /* PROBEs of both sizes before a verdict */
};

static uint64_t limit_ns(const struct sw_worker *w)
{
	return sw_min64(w->params.dead_after, w->params.stall_limit);
}

uint64_t sw_paths_doubt_ns(const struct sw_worker *w)
{
	return limit_ns(w) / 4;
}

uint32_t sw_link_build_check(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h)
{
	struct sw_path_check *c = &l->check;
	uint32_t bytes = c->n_tries % 2 ? SMALL_BYTES : w->payload_bytes;

	c->n_tries++;
	h->type = SW_PROBE;
	memset(w->payload, 0, bytes);
	return bytes;
}

void sw_link_on_check(
	struct sw_worker *w, struct sw_link *l, const struct sw_header *h)
{
	struct sw_path_check *c = &l->check;

	/* late answers change nothing: the next check begins anew */
	if (h->payload_len == w->payload_bytes)
		c->is_good |= c->n_tries > 0;
	else if (h->payload_len == SMALL_BYTES)
		c->n_small += c->n_tries > 0;
	else
		sw_count(&w->stats.rx_state, 1);
}

/* Return whether small frames return and full ones do not.  Where one of four
 * small ones is lost, full ones may be lost by chance as well. */
static bool is_narrow(const struct sw_link *l)
{
	const struct sw_path_check *c = &l->check;

	return l->state == SW_LINK_OPEN && !c->is_good &&
	       c->n_tries >= LEAST_TRIES &&
	       c->n_small >= c->n_tries / 2 * 3 / 4;
}

/* Fail. If pushes are still not acknowledged, the direction to the server lost
 * them, else results do not come back. */
static void fail(struct sw_worker *w, const struct sw_link *l)
{
	bool is_out = l->n_todo || sw_flow_is_open(&l->peer.flow);
	struct sw_ip there = l->peer.path.ip;
	uint32_t heads = SW_HEAD_BYTES + (sw_ip_is_v4(there) ? 28 : 48);
	char us[SW_IP_TEXT], ip[SW_IP_TEXT], far[SW_IP_TEXT + 64];

	sw_ip_text(l->here, us);
	snprintf(far, sizeof(far), "server %.40s (%s)", l->name,
		sw_ip_text(there, ip));
	sw_worker_fail(w, SW_EIO, SW_KEY_NONE,
		"packets of %u B (payload %u) no longer pass from %s to %s, "
		"smaller ones do",
		heads + w->payload_bytes, w->payload_bytes, is_out ? us : far,
		is_out ? far : us);
}

void sw_paths_check(struct sw_worker *w, bool is_slow)
{
	if (!is_slow) {
		w->checked_ns = 0;
		return;
	}
	if (w->checked_ns && w->now_ns - w->checked_ns >= limit_ns(w) / 2) {
		for (uint32_t i = 0; i < w->n_links; i++)
			if (is_narrow(&w->links[i])) {
				fail(w, &w->links[i]);
				return;
			}
		w->checked_ns = 0;
	}
	for (uint32_t i = 0; i < w->n_links; i++) {
		struct sw_link *l = &w->links[i];

		if (!w->checked_ns)
			l->check = (struct sw_path_check){.n_tries = 0};
		if (l->state == SW_LINK_OPEN && !l->check.is_good)
			sw_link_owe(w, l, SW_OWE_PROBE);
	}
	if (!w->checked_ns)
		w->checked_ns = w->now_ns;
}
