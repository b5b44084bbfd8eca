/* client_declare.h - libsumwire: declare tensors, memory and streams.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_CLIENT_CLIENT_DECLARE_H
#define SW_PMD_CLIENT_CLIENT_DECLARE_H

#include "pmd/client/client_group.h"

/* sw_client_declare - as sw_declare; growing tensors are pushed before all of
 * their bytes are written. */
int sw_client_declare(struct sw_client *c, const struct sw_tensor_desc *descs,
	uint32_t n, bool are_growing, struct sw_tensor **out);

/* sw_client_map - have the agent map memory of @bytes.  The caller leads. */
int sw_client_map(struct sw_client *c, uint64_t bytes, struct sw_tensor **out);

/* sw_group_open_stream - open the group's stream for @kind, unless it is open;
 * waits until all members have. */
int sw_group_open_stream(struct sw_group *g, enum sw_coll_kind kind);

#endif
