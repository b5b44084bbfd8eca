/* probe.c - probe the paths to the servers, and say what all of them carry.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "engine/worker/probe.h"

#include <string.h>

#include "engine/base/bytes.h"
#include "engine/worker/link.h"

static void send_first(struct sw_worker *w, struct sw_link *l)
{
	l->probe.wait_ns = w->params.retry_min;
	if (l->probe.size)
		sw_link_owe(w, l, SW_OWE_PROBE);
}

void sw_link_probe(struct sw_worker *w, struct sw_link *l)
{
	if (!w->size || w->payload_bytes || l->state != SW_LINK_OPEN ||
		l->probe.good)
		return;
	sw_probe_begin(&l->probe,
		(uint32_t)sw_min64(w->params.payload, l->far_payload));
	send_first(w, l);
}

uint32_t sw_link_build_probe(
	struct sw_worker *w, struct sw_link *l, struct sw_header *h)
{
	struct sw_probe *p = &l->probe;
	uint32_t bytes = sw_probe_bytes(p);

	h->type = SW_KEEPALIVE;
	if (!p->size)
		return 0;
	h->type = SW_PROBE;
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
}

uint64_t sw_link_tick_probe(struct sw_worker *w, struct sw_link *l)
{
	struct sw_probe *p = &l->probe;

	if (!p->size || !p->n_sent || w->payload_bytes)
		return UINT64_MAX;
	if (w->now_ns < p->at_ns)
		return p->at_ns;
	if (!sw_probe_has_failed(p)) {
		sw_link_owe(w, l, SW_OWE_PROBE);
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
	h->type = SW_PATHS;
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
