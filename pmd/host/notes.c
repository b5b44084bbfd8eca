/* notes.c - control thread: collect the clients' notes for a trace.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/host/host.h"

enum { SOME = 64 };

static struct sw_edge_control *control_of(const struct sw_slot *s)
{
	return s->control.base;
}

/* Return whether the slot has a control segment. A client that ended may have
 * left notes in it. */
static bool has_notes(const struct sw_slot *s)
{
	return (s->state == SW_SLOT_ATTACHED || s->state == SW_SLOT_DETACHED) &&
	       s->client;
}

/* Take up to @max notes of a client; detach a client that wrote an impossible
 * index. */
static uint32_t take(struct sw_slot *s, struct sw_edge_note *out, uint32_t max)
{
	int n = sw_spsc_take(&s->notes, out, max);

	if (n < 0 && s->state == SW_SLOT_ATTACHED)
		sw_slot_detach(s, SW_HOST_VIOLATION,
			"wrote an impossible index into the ring of notes");
	return n < 0 ? 0 : (uint32_t)n;
}

/* Return how many notes the client has lost since the last call. */
static uint32_t count_lost(struct sw_slot *s)
{
	uint32_t now = atomic_load_explicit(
		&control_of(s)->n_unnoted, memory_order_relaxed);
	uint32_t n = now - s->n_unnoted;

	s->n_unnoted = now;
	return n;
}

void sw_slot_trace(struct sw_slot *s)
{
	atomic_store_explicit(&control_of(s)->is_traced, s->host->is_traced,
		memory_order_relaxed);
}

void sw_host_trace(struct sw_host *h, bool is_on)
{
	struct sw_edge_note old[SOME];

	h->is_traced = is_on;
	for (uint32_t i = 0; i < h->n_slots; i++) {
		struct sw_slot *s = &h->slots[i];
		uint32_t n_left = SW_EDGE_NOTES / SOME;

		if (!has_notes(s))
			continue;
		while (is_on && n_left-- && take(s, old, SOME))
			;
		count_lost(s);
		sw_slot_trace(s);
	}
	if (is_on)
		h->n_unnoted = 0;
}

uint32_t sw_host_take_notes(struct sw_host *h, struct sw_host_note *out,
	uint32_t max, uint32_t *n_lost)
{
	struct sw_edge_note some[SOME];
	uint32_t n = 0;

	for (uint32_t i = 0; i < h->n_slots && n < max; i++) {
		struct sw_slot *s = &h->slots[i];
		uint32_t got;

		if (!has_notes(s))
			continue;
		got = take(s, some, max - n < SOME ? max - n : SOME);
		h->n_unnoted += count_lost(s);
		for (uint32_t k = 0; k < got; k++)
			if (some[k].kind < SW_EDGE_N_NOTES)
				out[n++] = (struct sw_host_note){
					some[k], s->local_rank};
	}
	*n_lost = h->n_unnoted;
	return n;
}
