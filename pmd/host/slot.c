/* slot.c - control thread: find, answer and free a client's slot.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "pmd/host/host.h"

enum { LINES = 10, PERIOD_S = 10 };

void sw_host_say_unsaid(struct sw_host *h)
{
	if (!h->n_unsaid ||
		sw_edge_now_ns() - h->period_ns < PERIOD_S * 1000000000ull)
		return;
	sw_log(h->p.log, SW_LOG_WARN,
		"%u more processes were refused, or left before they were "
		"admitted, in %u s",
		h->n_unsaid, PERIOD_S);
	h->n_unsaid = 0;
}

/* Limit the lines, because a process can connect endlessly and fill the log. */
bool sw_host_may_say(struct sw_host *h)
{
	uint64_t now = sw_edge_now_ns();

	sw_host_say_unsaid(h);
	if (now - h->period_ns >= PERIOD_S * 1000000000ull) {
		h->period_ns = now;
		h->n_said = 0;
	}
	if (h->n_said < LINES) {
		h->n_said++;
		return true;
	}
	h->n_unsaid++;
	return false;
}

struct sw_slot *sw_slot_find(struct sw_host *h, uint32_t id)
{
	uint32_t i = id % (1u << SW_HOST_SLOT_BITS);

	if (i >= h->n_slots || h->slots[i].id != id ||
		h->slots[i].state == SW_SLOT_FREE)
		return NULL;
	return &h->slots[i];
}

static void close_sockets(struct sw_slot *s)
{
	if (s->sock >= 0)
		close(s->sock);
	if (s->pid_fd >= 0)
		close(s->pid_fd);
	s->sock = -1;
	s->pid_fd = -1;
}

static bool is_anyone_attached(const struct sw_host *h)
{
	for (uint32_t i = 0; i < h->n_slots; i++)
		if (h->slots[i].state >= SW_SLOT_ATTACHED)
			return true;
	return false;
}

void sw_slot_free(struct sw_slot *s)
{
	struct sw_host *h = s->host;
	uint32_t next = s->id + (1u << SW_HOST_SLOT_BITS);

	close_sockets(s);
	sw_host_client_close(&s->client);
	sw_declared_close(h, &s->declared);
	sw_quota_give(h, s->control.bytes);
	sw_segment_fini(&s->control);
	*s = (struct sw_slot){.host = h, .id = next, .sock = -1, .pid_fd = -1};
	if (!is_anyone_attached(h))
		sw_results_close(h);
}

/* Send a text message without blocking. A client that lets its socket fill up
 * is detached by the next poll. */
void sw_slot_say(struct sw_slot *s, enum sw_edge_kind kind, int err,
	uint32_t batch, const char *text)
{
	struct sw_edge_text m;

	if (s->sock < 0)
		return;
	sw_edge_text(&m, kind, err, batch, text);
	if (sw_edge_send(s->sock, &m, sizeof(m), NULL, 0) == SW_EAGAIN)
		s->is_deaf = true;
}

/* Hang up, and drop the open batch, because other clients may wait for its end.
 * If on_declare was called, the agent may use the batch, so it stays until the
 * agent answers. */
void sw_slot_hang_up(struct sw_slot *s)
{
	const struct sw_batch *b = s->declared->open;

	close_sockets(s);
	s->state = SW_SLOT_DETACHED;
	if (b && b->state != SW_BATCH_ASKED)
		sw_declared_forget(s->host, s->declared);
}

void sw_slot_detach(
	struct sw_slot *s, enum sw_host_why why, const char *fmt, ...)
{
	struct sw_host *h = s->host;
	char text[SW_EDGE_TEXT_BYTES];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (why == SW_HOST_VIOLATION)
		sw_slot_say(s, SW_EDGE_CLOSED, SW_EPROTO, 0, text);
	else if (why == SW_HOST_FAILED)
		sw_slot_say(s, SW_EDGE_CLOSED, SW_ENOMEM, 0, text);
	if (s->state != SW_SLOT_HELLO || sw_host_may_say(h))
		sw_log(h->p.log,
			why == SW_HOST_CLOSED ? SW_LOG_INFO : SW_LOG_WARN,
			"process %u (user %u) %s", s->pid, s->uid, text);
	if (s->state == SW_SLOT_HELLO) {
		sw_slot_free(s);
		return;
	}
	sw_slot_hang_up(s);
	h->p.events.on_detach(h->p.ctx, s->id, why, text);
}

void sw_slot_refuse(struct sw_slot *s, int err, const char *text)
{
	if (sw_host_may_say(s->host))
		sw_log(s->host->p.log, SW_LOG_WARN,
			"process %u (user %u) refused: %s", s->pid, s->uid,
			text);
	sw_slot_say(s, SW_EDGE_REFUSED, err, 0, text);
	sw_slot_free(s);
}
