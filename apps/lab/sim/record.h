/* record.h - the files of a run: figures over time, and frames of a link.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_LAB_SIM_RECORD_H
#define SW_APPS_LAB_SIM_RECORD_H

#include "apps/lab/sim/sim.h"

struct sw_sim_record;

/* sw_sim_record_open - begin the files of [record].  Sets *@out to NULL if it
 * asks for none.  Errors: SW_ECONF, SW_EIO; s->why has one sentence. */
int sw_sim_record_open(struct sw_sim *s, struct sw_sim_record **out);

/* sw_sim_record_close - end the files.  If a file is incomplete, s->why has the
 * reason. */
void sw_sim_record_close(struct sw_sim *s, struct sw_sim_record *r);

/* sw_sim_record_tensor - note that a tensor is summed at an agent, and when all
 * of its class are, also the class. */
void sw_sim_record_tensor(
	struct sw_sim_record *r, struct sw_sim_agent *a, uint32_t tensor);

#endif
