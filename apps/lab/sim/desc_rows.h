/* desc_rows.h - the sections and keys of a description as tables.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_LAB_SIM_DESC_ROWS_H
#define SW_APPS_LAB_SIM_DESC_ROWS_H

#include <stddef.h>

#include "apps/lab/sim/desc.h"
#include "conf/options.h"

/* A section.  A row of type PATH accepts any text here. */
struct sw_sim_section {
	const char *name; /* NULL: end of the table */
	const struct sw_option *rows;
	uint32_t n_rows;
	size_t offset, bytes;
	/* Offset of the number of such sections, and their limit; 0, 0: a
	 * single section. */
	size_t n_offset;
	uint32_t most;
	const char *text;
};

struct sw_sim_borrowed {
	const char *section, *key;
};

extern const struct sw_sim_section sw_sim_sections[];
extern const struct sw_sim_borrowed sw_sim_borrowed[];
/* keys whose values are lists of nodes; NULL ends it */
extern const char *const sw_sim_lists[];

/* sw_sim_borrowed_at - return the offset in a [job] of the options of a
 * daemon's section. */
size_t sw_sim_borrowed_at(const char *section);

#endif
