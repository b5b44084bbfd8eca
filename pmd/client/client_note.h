/* client_note.h - libsumwire: notes for a trace of the agent.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_CLIENT_CLIENT_NOTE_H
#define SW_PMD_CLIENT_CLIENT_NOTE_H

#include "pmd/client/client.h"

/* sw_client_is_traced - return whether the agent wants notes. */
static inline bool sw_client_is_traced(const struct sw_client *c)
{
	return c->control && atomic_load_explicit(&c->control->is_traced,
				     memory_order_relaxed);
}

/* sw_client_note - note that the call of @handle did @kind from @from_ns to
 * @to_ns.  Call with the lock held.  If the ring is full, count the note as
 * lost. */
void sw_client_note(struct sw_client *c, enum sw_edge_note_kind kind,
	uint64_t handle, uint64_t from_ns, uint64_t to_ns, uint64_t bytes);

#endif
