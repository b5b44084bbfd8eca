/* flap.h - links that fail by schedule.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SW_APPS_LAB_SIM_FLAP_H
#define SW_APPS_LAB_SIM_FLAP_H

#include "apps/lab/sim/desc.h"
#include "apps/lab/sim/net.h"

struct sw_sim_flap {
	struct sw_sim_link *links[2];
	const struct sw_sim_desc_flap *desc;
	uint64_t begun_ns;
};

/* sw_sim_flaps_open - schedule all flaps of @d into @flaps.  Errors: SW_ECONF,
 * with one sentence in @why (SW_SIM_TEXT bytes). */
int sw_sim_flaps_open(struct sw_sim_net *net, const struct sw_sim_desc *d,
	struct sw_sim_flap flaps[SW_SIM_FLAPS], char *why);

#endif
