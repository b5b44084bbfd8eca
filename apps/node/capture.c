/* capture.c - record frames, for sumwire capture.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "apps/cli/clock.h"
#include "apps/node/tracer.h"

/* Return whether the reader wants a frame, by the job of the frame's
 * session. */
static bool is_wanted(
	const struct sw_tap *tap, const uint8_t *head, const struct sw_path *to)
{
	struct sw_tracer *t = tap->tracer;
	struct sw_header h;
	uint16_t peer;

	if (!*t->ask.job)
		return true;
	memcpy(&h, head, SW_HEAD_BYTES);
	peer = sw_trace_find_peer(t, tap->inner, h.session, to);
	return peer != SW_TRACE_NO_PEER &&
	       !strcmp(t->peers[peer].is.job, t->ask.job);
}

/* Put a frame, header and payload, into the ring.  If the ring has no room,
 * count the frame. */
static void put(struct sw_tracer *t, struct sw_trace_frame *f, const void *head,
	const void *payload)
{
	uint32_t whole = f->bytes;
	uint32_t first, n;

	f->kept = whole < t->ask.most ? whole : t->ask.most;
	n = sw_trace_frame_entries(f->kept);
	if (sw_spsc_room(&t->to) < n) {
		sw_count(&t->n_untaken, 1);
		return;
	}
	first = f->kept < SW_HEAD_BYTES ? f->kept : SW_HEAD_BYTES;
	memcpy(t->frame, f, sizeof(*f));
	memcpy(t->frame + sizeof(*f), head, first);
	if (f->kept > first)
		memcpy(t->frame + sizeof(*f) + first, payload, f->kept - first);
	sw_spsc_put(&t->to, t->frame, n);
}

static struct sw_ip our_ip(const struct sw_tracer *t, uint32_t port_i)
{
	return t->ports[port_i]->ip;
}

static void capture_rx(struct sw_engine *engine, uint64_t now_ns,
	uint32_t port_i, const struct sw_rx_frame *frames, uint32_t n)
{
	struct sw_tap *tap = (struct sw_tap *)engine;
	struct sw_tracer *t = tap->tracer;
	uint64_t t_ns = sw_now_ns();

	for (uint32_t i = 0; i < n && t->ask.has_received; i++) {
		const struct sw_rx_frame *r = &frames[i];
		struct sw_trace_frame f = {.t_ns = t_ns,
			.from_udp = r->from.udp,
			.to_udp = (uint16_t)(t->first_udp + r->endpoint),
			.bytes = r->len,
			.port = (uint16_t)port_i,
			.is_marked = r->is_marked};

		if (!is_wanted(tap, r->data, NULL))
			continue;
		f.from = r->from.ip;
		f.to = our_ip(t, port_i);
		put(t, &f, r->data, r->payload);
	}
	tap->inner->rx(tap->inner, now_ns, port_i, frames, n);
}

static uint32_t capture_tx(struct sw_engine *engine, uint64_t now_ns,
	uint32_t port_i, struct sw_tx_frame *out, uint32_t max)
{
	struct sw_tap *tap = (struct sw_tap *)engine;
	struct sw_tracer *t = tap->tracer;
	uint64_t t_ns;
	uint32_t n;

	tap->inner->holds_data = engine->holds_data;
	n = tap->inner->tx(tap->inner, now_ns, port_i, out, max);
	if (!n || !t->ask.has_sent)
		return n;
	t_ns = sw_now_ns();
	for (uint32_t i = 0; i < n; i++) {
		const struct sw_tx_frame *s = &out[i];
		struct sw_trace_frame f = {.t_ns = t_ns,
			.from = our_ip(t, port_i),
			.to = s->to.ip,
			.from_udp = (uint16_t)(t->first_udp + tap->endpoint +
					       s->way * t->n_udp),
			.to_udp = s->to.udp,
			.bytes = SW_HEAD_BYTES + s->payload_len,
			.port = (uint16_t)port_i,
			.is_sent = 1};

		if (is_wanted(tap, s->head, &s->to))
			put(t, &f, s->head, s->payload);
	}
	return n;
}

void sw_capture_tap(struct sw_engine *tap)
{
	tap->rx = capture_rx;
	tap->tx = capture_tx;
}
