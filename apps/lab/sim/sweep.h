/* sweep.h - run the points of a sweep on all cores, and resume a sweep.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_LAB_SIM_SWEEP_H
#define SW_APPS_LAB_SIM_SWEEP_H

#include "apps/lab/sim/desc.h"
#include "apps/lab/sim/table.h"

struct sw_sim_sweep {
	struct sw_sim_file *file;
	const char *out;    /* file of the rows; a later run continues it */
	const char *label;  /* prefix of the progress line; NULL: no progress */
	bool drops_other;   /* drop rows of another description in @out */
	uint32_t n_threads; /* 0: one for each core */
	struct sw_sim_table table;
};

/* sw_sim_sweep_run - run all points that s->out lacks.  Prints errors to
 * stderr.  Errors: SW_ECONF, SW_EIO. */
int sw_sim_sweep_run(struct sw_sim_sweep *s);

#endif
