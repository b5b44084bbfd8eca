/* traffic.h - other traffic: models of TCP flows, and datagrams at a rate.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_LAB_SIM_TRAFFIC_H
#define SW_APPS_LAB_SIM_TRAFFIC_H

#include "apps/lab/sim/desc.h"
#include "apps/lab/sim/net.h"
#include "apps/lab/sim/result.h"

struct sw_sim_traffic;

/* sw_sim_traffic_open - schedule all flows of @d.  Sets *@out to NULL if there
 * are none.  Errors: SW_ECONF, with one sentence in @why (SW_SIM_TEXT
 * bytes). */
int sw_sim_traffic_open(struct sw_sim_net *net, const struct sw_sim_desc *d,
	struct sw_sim_traffic **out, char *why);

/* sw_sim_traffic_count - fill the figures of traffic at the end of a run. */
void sw_sim_traffic_count(
	const struct sw_sim_traffic *t, struct sw_sim_result *r);

/* sw_sim_traffic_close - free all flows; NULL is accepted. */
void sw_sim_traffic_close(struct sw_sim_traffic *t);

#endif
