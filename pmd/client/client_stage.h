/* client_stage.h - libsumwire: shared memory through which pieces are copied.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Of a channel, under the client's lock. */
#ifndef SW_PMD_CLIENT_CLIENT_STAGE_H
#define SW_PMD_CLIENT_CLIENT_STAGE_H

#include "pmd/client/client.h"

/* sw_stage_close - another channel may use the memory of its stages. */
void sw_stage_close(struct sw_client *c, struct sw_channel *ch);

/* sw_stage_trim - keep one spare of each kind, the largest; give the agent the
 * memory of all others.  The lock is released meanwhile.  Returns the first
 * error, which stops nothing. */
int sw_stage_trim(struct sw_client *c);

/* sw_stage_open - have stages for pieces of @bytes, of @largest at most.
 * Errors: those of sw_alloc. */
int sw_stage_open(struct sw_client *c, struct sw_channel *ch, uint64_t bytes,
	uint64_t largest);

/* sw_stage_memory - where stages for pieces of @bytes lie, which are open;
 * returns how many bytes. */
uint64_t sw_stage_memory(
	const struct sw_channel *ch, uint64_t bytes, void **base);

#endif
