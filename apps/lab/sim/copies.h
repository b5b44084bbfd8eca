/* copies.h - jobs alike, each on nodes of its own ([job] copies).
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_LAB_SIM_COPIES_H
#define SW_APPS_LAB_SIM_COPIES_H

#include "apps/lab/sim/desc.h"
#include "apps/lab/sim/result.h"

/* sw_sim_copies_make - append the copies of all jobs, before nodes are named:
 * node NAME of copy 2 is 2.NAME.  Returns the first job that has too many, or
 * whose lists are too long with them; NULL: there is room. */
const struct sw_sim_desc_job *sw_sim_copies_make(struct sw_sim_desc *d);

/* sw_sim_copies_fold - put the means of a job and its copies in place of the
 * job, and leave out the copies. */
void sw_sim_copies_fold(const struct sw_sim_desc *d, struct sw_sim_result *r);

#endif
