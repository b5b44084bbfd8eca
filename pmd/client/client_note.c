/* client_note.c - libsumwire: notes for a trace of the agent.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pmd/client/client_note.h"

int sw_is_traced(const struct sw_client *c)
{
	return sw_client_is_traced(c);
}

void sw_note_copy(struct sw_client *c, uint64_t handle, int is_out,
	uint64_t from_ns, uint64_t to_ns, uint64_t bytes)
{
	if (from_ns > to_ns || !sw_client_is_traced(c) || !sw_client_lock(c))
		return;
	if (handle & SW_EDGE_COLL_HANDLE)
		handle = sw_calls_piece(&c->calls, handle, is_out);
	if (handle)
		sw_client_note(c, is_out ? SW_EDGE_COPY_OUT : SW_EDGE_COPY_IN,
			handle, from_ns, to_ns, bytes);
	sw_client_unlock(c);
}

void sw_client_note(struct sw_client *c, enum sw_edge_note_kind kind,
	uint64_t handle, uint64_t from_ns, uint64_t to_ns, uint64_t bytes)
{
	uint64_t ns = to_ns - from_ns;
	struct sw_edge_note n = {.t_ns = to_ns,
		.handle = handle,
		.bytes = bytes,
		.ns = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX,
		.kind = kind};

	if (sw_spsc_put(&c->notes, &n, 1) != 1)
		atomic_fetch_add_explicit(
			&c->control->n_unnoted, 1, memory_order_relaxed);
}
