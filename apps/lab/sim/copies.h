/* copies.h - equal jobs, each on its own nodes ([job] copies).
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_LAB_SIM_COPIES_H
#define SW_APPS_LAB_SIM_COPIES_H

#include "apps/lab/sim/desc.h"
#include "apps/lab/sim/result.h"

/* sw_sim_copies_make - append the copies of all jobs.  Called before nodes are
 * named: node NAME of copy 2 is 2.NAME.  Returns the first job with too many
 * copies, or whose lists become too long; NULL: success. */
const struct sw_sim_desc_job *sw_sim_copies_make(struct sw_sim_desc *d);

/* sw_sim_copies_fold - replace each job by the mean of it and its copies, and
 * drop the copies. */
void sw_sim_copies_fold(const struct sw_sim_desc *d, struct sw_sim_result *r);

#endif
