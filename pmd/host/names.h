/* names.h - numbers of tensors by name, in order of entering.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_HOST_NAMES_H
#define SW_PMD_HOST_NAMES_H

#include <stdint.h>

#include "pmd/client/edge.h"

enum { SW_NAMES_PLACES = 2 * SW_EDGE_TENSORS }; /* a power of two */

/* All zeros: empty.  The names are borrowed. */
struct sw_names {
	const char *names[SW_EDGE_TENSORS];
	uint16_t places[SW_NAMES_PLACES]; /* hash table: 1 + number */
	uint32_t n;
};

/* sw_names_find - 1 + the number of @name; 0: unknown. */
uint32_t sw_names_find(const struct sw_names *t, const char *name);

/* sw_names_add - give the next number to @name, which is unknown; at most
 * SW_EDGE_TENSORS times. */
void sw_names_add(struct sw_names *t, const char *name);

/* sw_names_change - number @i is that of @name now, which is unknown; NULL: of
 * none. */
void sw_names_change(struct sw_names *t, uint32_t i, const char *name);

/* sw_names_cut - forget all names from number @n on. */
void sw_names_cut(struct sw_names *t, uint32_t n);

#endif
