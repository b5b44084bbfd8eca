/* client_declare.h - libsumwire: tensors, memory, streams of groups, stages.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_CLIENT_CLIENT_DECLARE_H
#define SW_PMD_CLIENT_CLIENT_DECLARE_H

#include "pmd/client/client_group.h"

/* Stages of a closed channel, for the next channel: @n stages of @each bytes,
 * contiguous. */
struct sw_stage_spare {
	struct sw_stage_spare *next;
	struct sw_stage first;
	uint64_t each;
	uint32_t n;
};

/* sw_client_declare - as sw_declare; @are_growing: the tensors are pushed
 * before all of their bytes are written. */
int sw_client_declare(struct sw_client *c, const struct sw_tensor_desc *descs,
	uint32_t n, bool are_growing, struct sw_tensor **out);

/* sw_group_open_stream - open the group's stream for @kind, unless it is open;
 * waits for the
 * agent's answer. */
int sw_group_open_stream(struct sw_group *g, enum sw_coll_kind kind);

/* sw_client_find_memory - find the memory of sw_alloc that holds @bytes at @p.
 * Returns false if not found. */
bool sw_client_find_memory(const struct sw_client *c, const void *p,
	uint64_t bytes, struct sw_edge_place_at *out);

/* sw_client_give - have the agent release unused memory, or the stream of a
 * closed group; its index may then be reused. */
int sw_client_give(struct sw_client *c, struct sw_tensor *t);

/* sw_stage_open - make stages for pieces of @bytes; later pieces of the channel
 * have at most @largest bytes.
 * Errors: as for sw_alloc. */
int sw_stage_open(struct sw_client *c, struct sw_channel *ch, uint64_t bytes,
	uint64_t largest);

/* sw_stage_memory - set *@base to the open stages for pieces of @bytes.
 * Returns their size in bytes. */
uint64_t sw_stage_memory(
	const struct sw_channel *ch, uint64_t bytes, void **base);

/* sw_stage_close - turn the stages of @ch into spares. */
void sw_stage_close(struct sw_client *c, struct sw_channel *ch);

/* sw_stage_trim - keep the largest spare of each kind, and release the others
 * at the agent.  Releases the lock meanwhile.  Continues after an error;
 * returns the first error. */
int sw_stage_trim(struct sw_client *c);

#endif
