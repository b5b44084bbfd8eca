/* record.h - files that a run writes: figures over time, frames of a link.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_LAB_SIM_RECORD_H
#define SW_APPS_LAB_SIM_RECORD_H

#include "apps/lab/sim/sim.h"

struct sw_sim_record;

/* sw_sim_record_open - begin what [record] asks for; *@out is NULL if that is
 * nothing.  Errors: SW_ECONF, SW_EIO; s->why has one sentence. */
int sw_sim_record_open(struct sw_sim *s, struct sw_sim_record **out);

/* sw_sim_record_close - end the files.  If one is not complete, s->why says
 * so. */
void sw_sim_record_close(struct sw_sim *s, struct sw_sim_record *r);

/* sw_sim_record_tensor - note that a tensor is summed at an agent, and its
 * class when all of its tensors are. */
void sw_sim_record_tensor(
	struct sw_sim_record *r, struct sw_sim_agent *a, uint32_t tensor);

#endif
