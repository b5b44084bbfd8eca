/* names.h - number tensors by name, in the order of entry.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_PMD_HOST_NAMES_H
#define SW_PMD_HOST_NAMES_H

#include <stdint.h>

#include "pmd/client/edge.h"

enum { SW_NAMES_PLACES = 2 * SW_EDGE_TENSORS }; /* a power of two */

/* Empty if zeroed. Names are borrowed. */
struct sw_names {
	const char *names[SW_EDGE_TENSORS];
	uint16_t places[SW_NAMES_PLACES]; /* hash table: 1 + number */
	uint32_t n;
};

/* sw_names_find - return 1 + the number of @name; 0 if unknown. */
uint32_t sw_names_find(const struct sw_names *t, const char *name);

/* sw_names_add - give the next number to @name, which must be unknown; at most
 * SW_EDGE_TENSORS times. */
void sw_names_add(struct sw_names *t, const char *name);

/* sw_names_change - give number @i to @name, which must be unknown; NULL: free
 * the number's name. */
void sw_names_change(struct sw_names *t, uint32_t i, const char *name);

/* sw_names_cut - forget all names from number @n on. */
void sw_names_cut(struct sw_names *t, uint32_t n);

#endif
