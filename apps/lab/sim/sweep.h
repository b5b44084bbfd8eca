/* sweep.h - the points of a sweep on all cores, interrupted and resumed.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_LAB_SIM_SWEEP_H
#define SW_APPS_LAB_SIM_SWEEP_H

#include "apps/lab/sim/desc.h"
#include "apps/lab/sim/table.h"

struct sw_sim_sweep {
	struct sw_sim_file *file;
	const char *out;    /* file of the rows: a later run goes on there */
	const char *label;  /* begins the line of progress; NULL: nothing */
	bool drops_other;   /* rows of another description in @out */
	uint32_t n_threads; /* 0: one for each core */
	struct sw_sim_table table;
};

/* sw_sim_sweep_run - run all points that s->out lacks.  Errors are said on
 * stderr: SW_ECONF, SW_EIO. */
int sw_sim_sweep_run(struct sw_sim_sweep *s);

#endif
