/* chakra.h - execution traces of Chakra (schema/protobuf/et_def.proto).
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A file is a sequence of protobuf messages, each preceded by its length:
 * metadata, then nodes.  The reader uses a node's type, duration, dependencies,
 * and the attributes comm_type and comm_size, and skips everything else.
 */
#ifndef SW_APPS_LAB_SIM_CHAKRA_H
#define SW_APPS_LAB_SIM_CHAKRA_H

#include <stddef.h>
#include <stdint.h>

enum { SW_CHAKRA_NODES = 65536 };

/* A computation, or a collective. */
struct sw_chakra_node {
	uint64_t id, duration_ns;
	uint32_t kind;  /* enum sw_coll_kind; SW_COLL_NONE: a computation */
	uint64_t bytes; /* input of a rank, for a collective */
	uint32_t first_dep, n_deps; /* in deps */
};

struct sw_chakra {
	struct sw_chakra_node *nodes; /* dependencies first */
	uint32_t n_nodes, n_colls;
	uint32_t *deps; /* indices of nodes */
	uint32_t n_deps;
};

/* sw_chakra_open - read the trace of a rank.  After an error, @why of @size
 * bytes has the cause with file and node.  Errors: SW_ENOENT, SW_EIO, SW_ECONF.
 * After 0 the caller must close @t. */
int sw_chakra_open(
	struct sw_chakra *t, const char *path, char *why, size_t size);
void sw_chakra_close(struct sw_chakra *t);

/* sw_chakra_check - check that a trace has the same collectives, in the same
 * order, as the rank @first.  Errors: SW_ECONF, with @why as in
 * sw_chakra_open. */
int sw_chakra_check(const struct sw_chakra *t, const struct sw_chakra *first,
	const char *path, char *why, size_t size);

#endif
