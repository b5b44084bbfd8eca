/* means.h - means over the seeds of a sweep, with confidence intervals.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_LAB_SIM_MEANS_H
#define SW_APPS_LAB_SIM_MEANS_H

#include "apps/lab/sim/table.h"

/* sw_sim_means_print - print the means of rows that differ only in their seed,
 * with half of the 95 % interval by Student's t.  Prints nothing if the sweep
 * has one seed.  Ignores points that did not complete. */
void sw_sim_means_print(
	const struct sw_sim_table *t, const struct sw_sim_file *f);

#endif
