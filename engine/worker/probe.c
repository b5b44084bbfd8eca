/* probe.c - find the payload that the paths to all servers carry.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/probe.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/worker/faults.h"

static void send_first(struct sw_worker *w, struct sw_link *l)
{
	l->probe.wait_ns = w->params.retry_min;
	if (l->probe.size)
		sw_link_owe(l, SW_OWE_PROBE);
}

void sw_link_probe(struct sw_worker *w, struct sw_link *l)
{
	if (!w->size || w->payload_bytes || l->state != SW_LINK_OPEN ||
		l->probe.good)
		return;
	sw_probe_begin(&l->probe, SW_PAYLOAD_MIN,
		(uint32_t)sw_min64(w->params.payload, l->far_payload));
	send_first(w, l);
}

uint32_t sw_link_build_probe(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h)
{
	struct sw_probe *p = &l->probe;
	uint32_t bytes = p->n_sent % 2 ? p->good : p->size;

	if (!p->size)
		return 0;
	p->n_sent++;
	p->at_ns = w->now_ns + p->wait_ns;
	p->wait_ns = sw_min64(2 * p->wait_ns, SW_PROBE_WAIT_MS * SW_MS);
	memset(w->payload, 0, bytes);
	return bytes;
}

void sw_link_on_probe(struct sw_worker *w, struct sw_link *l,
	const struct sw_header *h, const uint8_t *payload)
{
	uint32_t good = l->probe.good;

	(void)payload;
	if (!sw_probe_answered(&l->probe, h->payload_len))
		sw_count(&w->stats.rx_state, 1);
	else if (l->probe.good != good)
		send_first(w, l);
	w->is_unsettled = true;
}

uint64_t sw_link_tick_probe(struct sw_worker *w, struct sw_link *l)
{
	struct sw_probe *p = &l->probe;

	if (!p->size || !p->n_sent || w->payload_bytes)
		return UINT64_MAX;
	if (w->now_ns < p->at_ns)
		return p->at_ns;
	if (p->n_sent < SW_PROBE_TRIES || p->n_alive < SW_PROBE_ALIVE) {
		sw_link_owe(l, SW_OWE_PROBE);
		return UINT64_MAX;
	}
	sw_log(w->env->log, SW_LOG_INFO,
		"job %s, agent %u: no frames of %u B pass to server %.64s and "
		"back",
		w->job, w->member, p->size, l->name);
	sw_probe_failed(p);
	send_first(w, l);
	return UINT64_MAX;
}

uint32_t sw_worker_carries(const struct sw_worker *w)
{
	uint32_t least = w->carried;

	for (uint32_t i = 0; i < w->n_links; i++) {
		const struct sw_probe *p = &w->links[i].probe;

		if (!sw_probe_is_over(p))
			return 0;
		least = (uint32_t)sw_min64(least, p->good);
	}
	return least;
}

uint32_t sw_link_build_paths(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h)
{
	struct sw_paths said = {.payload = (uint16_t)sw_worker_carries(w)};

	(void)l;
	memcpy(w->payload, &said, sizeof(said));
	return sizeof(said);
}

void sw_worker_use_payload(struct sw_worker *w, uint32_t payload)
{
	w->payload_bytes = w->params.payload = payload;
	for (uint32_t i = 0; i < w->n_links; i++) {
		w->links[i].probe.size = 0;
		sw_flow_refit(&w->links[i].peer.flow);
	}
}

/* --- a path that stops carrying the job's frames ---
 *
 * The payload was probed before the job ran. If a route's MTU falls later, or a
 * filter begins to drop large packets, all large data frames are lost, while
 * control frames are small and keep the session alive. So when a tensor has
 * made no progress for some time, the worker sends each server PROBEs of the
 * job's payload and small ones in turn. A server echoes both. If only the small
 * ones return, the worker fails and names the path. */

enum {
	SMALL_BYTES = SW_PAYLOAD_UNIT,
	LEAST_SENT = 4, /* PROBEs of both sizes before a verdict */
};

static uint64_t limit_ns(const struct sw_worker *w)
{
	return sw_min64(w->params.dead_after, w->params.stall_limit);
}

uint64_t sw_paths_doubt_ns(const struct sw_worker *w)
{
	return limit_ns(w) / 4;
}

/* Return whether small frames return and full ones do not.  If one of four
 * small frames is lost, full frames may also be lost by chance. */
static bool is_narrow(const struct sw_link *l)
{
	const struct sw_probe *p = &l->probe;

	return l->state == SW_LINK_OPEN && p->size && p->n_sent >= LEAST_SENT &&
	       p->n_alive >= p->n_sent / 2 * 3 / 4;
}

/* Fail the worker.  If pushes are still not acknowledged, the path to the
 * server loses pushes, else the path back loses results. */
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
			sw_probe_begin(
				&l->probe, SMALL_BYTES, w->payload_bytes);
		if (l->state == SW_LINK_OPEN && l->probe.size)
			sw_link_owe(l, SW_OWE_PROBE);
	}
	if (!w->checked_ns)
		w->checked_ns = w->now_ns;
}
