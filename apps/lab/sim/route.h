/* route.h - the links of a description, and the routes over them.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_LAB_SIM_ROUTE_H
#define SW_APPS_LAB_SIM_ROUTE_H

#include "apps/lab/sim/desc.h"
#include "apps/lab/sim/net.h"

/* sw_sim_build - build the network of @d into the zeroed @net.  Errors:
 * SW_ECONF, with one sentence in @why (SW_SIM_TEXT bytes). */
int sw_sim_build(
	struct sw_sim_net *net, const struct sw_sim_desc *d, char *why);

/* sw_sim_link_between - return the link between two nodes or switches, by name;
 * NULL: none. */
struct sw_sim_link *sw_sim_link_between(struct sw_sim_net *net,
	const struct sw_sim_desc *d, const char *from, const char *to);

/* sw_sim_name_of - return the name of a node or switch, in @buf. */
const char *sw_sim_name_of(const struct sw_sim_net *net,
	const struct sw_sim_desc *d, uint32_t i, char buf[SW_SIM_NAME]);

#endif
