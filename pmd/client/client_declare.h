/* client_declare.h - libsumwire: tensors, memory, streams of groups, stages.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_CLIENT_CLIENT_DECLARE_H
#define SW_PMD_CLIENT_CLIENT_DECLARE_H

#include "pmd/client/client_group.h"

/* Stages of a closed channel, for the next one: @n of @each bytes, one behind
 * the other. */
struct sw_stage_spare {
	struct sw_stage_spare *next;
	struct sw_stage first;
	uint64_t each;
	uint32_t n;
};

/* sw_client_declare - as sw_declare; growing tensors are pushed before all of
 * their bytes are written. */
int sw_client_declare(struct sw_client *c, const struct sw_tensor_desc *descs,
	uint32_t n, bool are_growing, struct sw_tensor **out);

/* sw_group_open_stream - open the group's stream for @kind, unless it is open;
 * waits until all members have. */
int sw_group_open_stream(struct sw_group *g, enum sw_coll_kind kind);

/* sw_client_find_memory - find the memory of sw_alloc that holds @bytes at @p.
 * Returns false if not found. */
bool sw_client_find_memory(const struct sw_client *c, const void *p,
	uint64_t bytes, struct sw_edge_place_at *out);

/* sw_client_give - have the agent release memory that nothing uses, or the
 * stream of a closed group; its index may then be used again. */
int sw_client_give(struct sw_client *c, struct sw_tensor *t);

/* sw_stage_open - make stages for pieces of @bytes, and of @largest at most.
 * Errors: as for sw_alloc. */
int sw_stage_open(struct sw_client *c, struct sw_channel *ch, uint64_t bytes,
	uint64_t largest);

/* sw_stage_memory - say where the open stages for pieces of @bytes lie. Returns
 * how many bytes they have. */
uint64_t sw_stage_memory(
	const struct sw_channel *ch, uint64_t bytes, void **base);

/* sw_stage_close - make spares of the stages of @ch. */
void sw_stage_close(struct sw_client *c, struct sw_channel *ch);

/* sw_stage_trim - keep the largest spare of each kind, and give the agent the
 * memory of the others.  Releases the lock meanwhile.  Returns the first error,
 * which stops nothing. */
int sw_stage_trim(struct sw_client *c);

#endif
