/* cost_instructions.h - instructions by stage, as a table.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_COST_COST_INSTRUCTIONS_H
#define SW_APPS_COST_COST_INSTRUCTIONS_H

#include "apps/cost/cost_nodes.h"

/* sw_cost_instructions - count and print @n shapes.  Prints errors.  Returns 0
 * or a negative error. */
int sw_cost_instructions(
	const struct cost_shape *shapes, uint32_t n, bool is_json);

/* sw_cost_stepped - do the run that sw_cost_count counts, and print the units
 * of each stage for it.  Prints errors.  Returns 0 or a negative error. */
int sw_cost_stepped(const struct cost_shape *shape);

#endif
